"""Whole way on the CPU: capture, measure, plan with the planner, run on two core sets, files for the program."""

from __future__ import annotations

import json
import os

import pytest

torch = pytest.importorskip("torch")

import models
import needs
import placewright
import placewright.torch as placed_torch
from placewright.torch.kernels import eager
from placewright.torch.timing import Spread

needs.extension()
DEVICES = needs.two_cores()


@pytest.mark.parametrize("make", models.ALL)
def test_every_variant_computes_what_the_model_computes(make) -> None:
    model, inputs = make()
    fast = placed_torch.compile(model, inputs, devices=DEVICES, compiler=eager)
    assert fast.note and set(fast.variants) == {"planned", "unsplit"}
    for name in fast.variants:
        fast.chosen = name
        fresh = tuple(torch.randn_like(value) for value in inputs)
        torch.testing.assert_close(fast(*fresh), model(*(value.clone() for value in fresh)))


def test_files_report_and_trace(tmp_path) -> None:
    model, inputs = models.branches()
    fast = placed_torch.compile(model, inputs, devices=DEVICES, compiler=eager)
    fast.save(str(tmp_path))
    again = placewright.Plan.read(tmp_path / "plan.json")
    assert again.check() == []
    assert list(again.placement) == [atom.name for atom in fast.atoms.atoms]
    assert set(again.placement.values()) <= set(DEVICES)
    fast.report(str(tmp_path / "report.html"))
    assert (tmp_path / "report.html").stat().st_size > 10_000
    fast.trace(str(tmp_path / "trace.json"))
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    for kind in ("planned", "measured"):
        assert [event["pid"] for event in events].count(kind) == len(fast.atoms.atoms)
    run = json.loads((tmp_path / "run.json").read_text())
    assert len(run["segments"]) == len(fast.atoms.atoms)
    assert run["predicted"] == pytest.approx(again.value / 1e3)
    with pytest.raises(ValueError, match="the run was of a plan of"):
        placewright.report([again], tmp_path / "wrong.html", [json.dumps({**run, "predicted": 1e9})])
    times = fast.measure()
    assert set(times) == {"planned", "unsplit", "eager", "predicted"}


def test_a_new_shape_is_planned_anew_where_that_is_asked_for() -> None:
    model, inputs = models.branches()
    fast = placed_torch.compile(model, inputs, devices=DEVICES, compiler=eager, on_new_shape="replan")
    wider = (torch.randn(1, 3, 32, 32),)
    torch.testing.assert_close(fast(*wider), model(*wider))
    assert fast.planned_for(*wider) is fast.planned_for(*wider)
    assert fast.planned_for(*inputs) is fast
    torch.testing.assert_close(fast(*inputs), model(*inputs))


def test_wrong_requests_are_told_in_a_sentence() -> None:
    model, inputs = models.branches()
    with pytest.raises(ValueError, match="inputs on the CPU need devices"):
        placed_torch.compile(model, inputs)
    with pytest.raises(ValueError, match="on_new_shape is 'error' or 'replan', not 'ignore'"):
        placed_torch.compile(model, inputs, devices=DEVICES, on_new_shape="ignore")
    with pytest.raises(ValueError, match="names no cores"):
        placed_torch.compile(model, inputs, devices=["npu:0"], compiler=eager)
    fast = placed_torch.compile(model, inputs, devices=DEVICES, compiler=eager)
    with pytest.raises(placed_torch.NewShape, match="input 0 was 1x3x16x16 float32 on cpu"):
        fast(torch.randn(1, 3, 32, 32))
    with pytest.raises(placed_torch.NewShape, match="compile it again"):
        fast(*inputs, *inputs)


def test_a_saved_plan_is_run_where_it_fits(tmp_path) -> None:
    model, inputs = models.branches()
    fast = placed_torch.compile(model, inputs, devices=DEVICES, compiler=eager)
    fast.save(str(tmp_path))
    plan = placewright.Plan.read(tmp_path / "plan.json")
    again = placed_torch.compile(model, inputs, devices=DEVICES, compiler=eager, plan=plan)
    assert list(again.devices) == list(fast.devices)
    with pytest.raises(ValueError, match="the plan is of another model"):
        placed_torch.compile(*models.transformer(), devices=DEVICES, compiler=eager, plan=plan)
    used = plan.placement[fast.atoms.atoms[0].name]
    other = next(device for device in DEVICES if device != used)
    with pytest.raises(ValueError, match=f"the plan is for other hardware: it uses {used}"):
        placed_torch.compile(model, inputs, devices=[other], compiler=eager, plan=plan)


def test_a_full_gpu_is_told_in_a_sentence() -> None:
    def too_large(module, arguments):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")

    model, inputs = models.branches()
    with pytest.raises(placed_torch.OutOfMemory, match="the GPU has too little free memory"):
        placed_torch.compile(model, inputs, devices=DEVICES, compiler=too_large)


def test_a_model_that_is_split_wrongly_is_not_handed_out() -> None:
    def off_by_one(module, arguments):
        return lambda *tensors: [value + 1 for value in module(*tensors)]

    model, inputs = models.branches()
    with pytest.raises(placed_torch.WrongOutputs, match="output 0 of 'planned' differs"):
        placed_torch.compile(model, inputs, devices=DEVICES, compiler=off_by_one)


def test_the_command_line(tmp_path, capsys, monkeypatch) -> None:
    from placewright.torch.__main__ import main

    monkeypatch.chdir(os.path.dirname(__file__))
    assert main(["plan", "nothing"]) == 3
    assert "expected module:factory" in capsys.readouterr().err
    assert main(["plan", "models:branches", "models:transformer"]) == 3
    assert "takes one factory" in capsys.readouterr().err
    assert main(["plan", "models:branches", "--devices", "npu:0"]) == 3
    assert "names no cores" in capsys.readouterr().err


def test_bench_does_not_measure_a_row_again(tmp_path, capsys) -> None:
    from placewright.torch.__main__ import main

    spread = {"median": 2.0, "low": 1.9, "high": 2.1, "count": 5}
    row = {
        "model": "known",
        "seconds": 3,
        "chosen": "planned",
        "milliseconds": {"planned": {**spread, "median": 0.5}, "eager": spread},
    }
    (tmp_path / "nowhere.known.json").write_text(json.dumps(row))
    assert main(["bench", "nowhere:known", "-o", str(tmp_path)]) == 0
    assert "| chosen, factor | 4.00 |" in capsys.readouterr().out


def test_a_split_stays_only_beyond_the_noise() -> None:
    kept = Spread(median=9.99, low=9.6, high=10.8)
    assert not kept.clearly_below(Spread(median=10.36, low=10.0, high=11.3)), "nobody knows which is faster"
    assert Spread(median=9.0, low=8.8, high=9.4).clearly_below(Spread(median=10.36, low=10.0, high=11.3))
    assert not Spread(median=9.99, low=9.99, high=9.99).clearly_below(Spread(median=10, low=10, high=10)), "a step"
    assert str(kept) == "9.990 ms (9.600 to 10.800)"
