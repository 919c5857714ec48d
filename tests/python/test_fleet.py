"""Fleets on Ray: several local nodes of unequal cores, one of which dies while requests are on their way.

`make fleet-tests` runs them in an environment of their own, which has Ray.
"""

from __future__ import annotations

import json
import os
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy
import pytest

import needs
import placewright
import placewright.serving

ray = pytest.importorskip("ray", reason="Ray is not installed (make fleet-tests)")
cluster_utils = pytest.importorskip("ray.cluster_utils")
needs.extension()

PROGRAM = os.environ.get("PLACEWRIGHT_PROGRAM", "")
MODELS = ["tiny-branches", "tiny-pair"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The models, and a package that Ray's workers can import."""
    place: Path = tmp_path_factory.mktemp("fleet")
    for model in MODELS:
        subprocess.run([PROGRAM, "zoo", "make", model, "-o", place, "-q"], check=True)
    package = place / "package" / "placewright"
    package.mkdir(parents=True)
    for source in placewright.__path__:
        for file in Path(source).iterdir():
            if file.suffix in (".py", ".so") and not (package / file.name).exists():
                (package / file.name).symlink_to(file.resolve())
    return place


@pytest.fixture(scope="module")
def cluster(folder: Path) -> Iterator[Any]:
    """A head, and nodes 'large' (two cores) and 'small' (one)."""
    made = cluster_utils.Cluster(initialize_head=True, head_node_args={"num_cpus": 4, "include_dashboard": False})
    made.add_node(num_cpus=1, resources={"small": 1})
    nodes = {"large": made.add_node(num_cpus=2, resources={"large": 1})}
    path = os.pathsep.join([str(folder / "package"), os.environ.get("PYTHONPATH", "")])
    ray.init(address=made.address, runtime_env={"env_vars": {"PYTHONPATH": path}}, log_to_driver=False)
    made.nodes_by_name = nodes
    yield made
    ray.shutdown()
    made.shutdown()


def planned(folder: Path, **objectives: float) -> Path:
    """Half of the requests for each node."""
    kinds = {"core": 4.0, "cores": 2.0}
    for model in MODELS:
        document = {
            "placewright": "problem",
            "version": 1,
            "name": model,
            "unit": "ms",
            "kinds": [{"name": kind} for kind in kinds],
            "devices": [{"name": kind, "kind": kind} for kind in kinds],
            "interconnect": {"kind": "links", "all": {"latency": 0, "bandwidth": 1}},
            "models": [{"name": model, "source": {"path": f"{model}.xml", "digest": "0" * 64}}],
            "ops": [{"name": "all", "model": model, "memory": 1e6, "time": kinds}],
        }
        (folder / f"{model}.json").write_text(json.dumps(document))
    nodes = [{"name": "large", "kind": "cores", "cores": 2}, {"name": "small", "kind": "core", "cores": 1}]
    (folder / "nodes.json").write_text(json.dumps({"placewright": "nodes", "version": 1, "nodes": nodes}))
    problems = [folder / f"{model}.json" for model in MODELS]
    path = folder / "fleet.json"
    command = [PROGRAM, "fleet", *problems, "--nodes", folder / "nodes.json", "--rate", "60", "-o", path, "-q"]
    subprocess.run(list(map(str, command)), check=True)
    return path


def inputs(folder: Path, model: str) -> dict[str, Any]:
    import openvino

    ports = openvino.Core().read_model(folder / f"{model}.xml").inputs
    return {port.get_any_name(): numpy.full(list(port.get_shape()), 0.5, numpy.float32) for port in ports}


def test_a_plan_names_its_files(tmp_path: Path) -> None:
    (tmp_path / "other.json").write_text('{"placewright": "problem"}')
    with pytest.raises(ValueError, match="is no plan of a fleet"):
        placewright.serving.deploy(tmp_path / "other.json")


def test_a_node_that_dies_is_planned_around(folder: Path, cluster: Any) -> None:
    plan = planned(folder)
    given = {model: inputs(folder, model) for model in MODELS}
    answers: dict[str, list[dict[str, Any]]] = {model: [] for model in MODELS}
    errors: list[Exception] = []
    over = threading.Event()
    with placewright.serving.deploy(plan, patience=4) as fleet:
        assert {node for _, node in fleet.replicas} == {"large", "small"}
        with pytest.raises(ValueError, match="the fleet has no model 'nothing'"):
            fleet.infer("nothing", {})
        with pytest.raises(ValueError, match="nonsense"):
            fleet.infer(MODELS[0], {"nonsense": [1.0]})

        def client(model: str) -> None:
            while not over.is_set():
                try:
                    answers[model].append(fleet.infer(model, given[model], timeout=120))
                except Exception as error:
                    errors.append(error)
                over.wait(0.05)

        threads = [threading.Thread(target=client, args=(model,)) for model in MODELS for _ in range(2)]
        for thread in threads:
            thread.start()
        time.sleep(3)
        begin = time.monotonic()
        cluster.remove_node(cluster.nodes_by_name["large"], allow_graceful=False)
        while not any("planned again for small" in what for _, what in fleet.events):
            assert time.monotonic() - begin < 120, fleet.events
            time.sleep(0.05)
        print(f"planned again after {time.monotonic() - begin:.1f} s: {fleet.events}")
        assert {place for place in fleet.replicas} == {(model, "small") for model in MODELS}
        counts = {model: len(answers[model]) for model in MODELS}
        time.sleep(3)
        over.set()
        for thread in threads:
            thread.join()
        assert not errors, "every request is answered, on one node or the other"
        assert all(len(answers[model]) > counts[model] for model in MODELS)
    for model in MODELS:
        for answer in answers[model]:
            for name, values in answer.items():
                numpy.testing.assert_allclose(values, answers[model][0][name], rtol=0.05, atol=0.01)
