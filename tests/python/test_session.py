"""A model from its file to results on NumPy arrays, with OpenVINO's own package as the judge."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from pathlib import Path

import numpy as np
import pytest

import needs
import placewright

needs.extension()
openvino = pytest.importorskip("openvino", reason="the Python package openvino is missing")
from openvino import opset13 as ops

DEVICES = needs.two_cores()


@pytest.fixture(scope="module")
def branches(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two branches of a convolution each, joined; and a second output of integers."""
    draw = np.random.default_rng(1)
    image = ops.parameter([1, 3, 16, 16], np.float32)
    image.output(0).set_names({"image"})
    convolved = []
    for size in (3, 5):
        weights = ops.constant(draw.standard_normal((8, 3, size, size), np.float32))
        pads = [size // 2] * 2
        convolved.append(ops.relu(ops.convolution(image, weights, [1, 1], pads, pads, [1, 1])))
    joined = ops.concat(convolved, 1)
    joined.output(0).set_names({"joined"})
    largest = ops.convert(ops.reduce_max(joined, [1, 2, 3]), "i32")
    largest.output(0).set_names({"largest"})
    model = openvino.Model([ops.result(joined), ops.result(largest)], [image], "branches")
    path = tmp_path_factory.mktemp("models") / "branches.xml"
    openvino.save_model(model, path, compress_to_fp16=False)
    return path


@pytest.fixture(scope="module")
def problem(branches: Path) -> placewright.Problem:
    return placewright.measure(branches, devices=DEVICES, repeat=2, precision="f32")


def judged(path: Path, image: np.ndarray) -> list[np.ndarray]:
    compiled = openvino.Core().compile_model(path, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    return [np.array(value) for value in compiled([image]).values()]


def split(problem: placewright.Problem) -> placewright.Plan:
    """The first ops on one device, the others on the other; cut where no fused ops are parted."""
    count = len(problem.op_names)
    for first in range(count // 2, 0, -1):
        with contextlib.suppress(ValueError):
            return problem.plan_for([0] * first + [1] * (count - first))
    raise AssertionError("no cut is allowed")


def test_a_sample_runs_in_the_variant_of_its_shapes(branches: Path, problem: placewright.Problem) -> None:
    large = placewright.measure(branches, devices=DEVICES, repeat=2, shapes=["image=1x3x24x24"])
    session = placewright.Session(split(problem), split(large))
    for size in (16, 24):
        image = np.random.default_rng(size).standard_normal((1, 3, size, size), np.float32)
        assert session.run({"image": image})["joined"].shape == (1, 16, size, size)
    with pytest.raises(ValueError, match="no variant takes inputs of these shapes; there are: image=1x3x16x16; image="):
        session.run({"image": np.zeros((1, 3, 8, 8), np.float32)})


def test_a_split_model_computes_what_the_whole_one_computes(branches: Path, problem: placewright.Problem) -> None:
    session = placewright.Session(split(problem))
    assert session.inputs["image"].shape == (1, 3, 16, 16) and session.inputs["image"].element == "f32"
    assert session.outputs["largest"].element == "i32"
    image = np.random.default_rng(2).standard_normal((1, 3, 16, 16), np.float32)
    outputs = session.run({"image": image})
    joined, largest = judged(branches, image)
    np.testing.assert_allclose(outputs["joined"], joined, rtol=1e-5, atol=1e-5)
    assert outputs["largest"].dtype == np.int32 and outputs["largest"].tolist() == largest.tolist()


def test_a_pipeline_keeps_the_order_of_samples(branches: Path) -> None:
    problem = placewright.measure(str(branches), devices=DEVICES, objective="throughput", repeat=2, precision="f32")
    session = placewright.Session(placewright.plan(problem, time_limit=1))
    images = [np.full((1, 3, 16, 16), value, np.float32) for value in (1, 5, 2, 4)]
    found = session.run_all([{"image": image} for image in images])
    for image, outputs in zip(images, found, strict=True):
        np.testing.assert_allclose(outputs["joined"], judged(branches, image)[0], rtol=1e-5, atol=1e-4)


def test_a_session_computes_in_what_was_measured_or_in_the_precision_given(
    branches: Path, problem: placewright.Problem
) -> None:
    image = np.random.default_rng(3).standard_normal((1, 3, 16, 16), np.float32)
    exact = judged(branches, image)[0]
    usual = np.array(openvino.Core().compile_model(branches, "CPU")([image])[0])
    own = placewright.Session(split(problem), precision="default").run({"image": image})["joined"]
    assert np.abs(own - usual).max() <= np.abs(usual - exact).max() + 1e-5 * np.abs(exact).max()
    with pytest.raises(ValueError, match="'f8' is no precision: default, f32, bf16 or f16"):
        placewright.measure(branches, devices=DEVICES, precision="f8")  # type: ignore[arg-type]


def test_a_saved_plan_is_opened_again(problem: placewright.Problem, tmp_path: Path) -> None:
    plan = placewright.plan(problem, time_limit=1)
    plan.save(tmp_path / "plan.json")
    session = placewright.Session.open(tmp_path / "plan.json")
    assert session.run({"image": np.zeros((3, 16, 16))})["joined"].shape == (1, 16, 16, 16)


def test_bad_input_is_told_in_a_sentence(problem: placewright.Problem, tmp_path: Path) -> None:
    session = placewright.Session(placewright.plan(problem, time_limit=1))
    with pytest.raises(ValueError, match="picture"):
        session.run({"picture": np.zeros((1, 3, 16, 16))})
    with pytest.raises(ValueError, match="image"):
        session.run({"image": np.zeros((1, 3, 8, 8))})
    with pytest.raises(ValueError, match="complex128"):
        session.run({"image": np.zeros((1, 3, 16, 16), complex)})
    with pytest.raises(RuntimeError, match=r"none\.onnx"):
        placewright.measure(tmp_path / "none.onnx", devices=DEVICES)
    with pytest.raises(ValueError, match="no model"):
        placewright.measure([])


def test_progress_is_told_and_may_end_it(branches: Path) -> None:
    told: list[str] = []
    placewright.measure(branches, devices=DEVICES[:1], repeat=2, progress=told.append)
    assert told

    def refuse(what: str) -> None:
        raise ZeroDivisionError(what)

    with pytest.raises(ZeroDivisionError):
        placewright.measure(branches, devices=DEVICES, repeat=2, progress=refuse)


@pytest.mark.skipif(threading.current_thread() is not threading.main_thread(), reason="signals go to the main thread")
def test_ctrl_c_ends_a_measurement(branches: Path) -> None:
    def interrupt(_: str) -> None:
        os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        placewright.measure(branches, devices=DEVICES, repeat=5000, progress=interrupt)
