"""Plans over a GPU and the CPU: segments and problems; the runs themselves are in test_gpu.py."""

from __future__ import annotations

import random

import pytest

torch = pytest.importorskip("torch")

import models
import needs
import placewright
from placewright.torch.atoms import split_into_atoms
from placewright.torch.capture import capture
from placewright.torch.cpu_and_gpu import CPU, GPU, eager_on_the_cpu, problem_with_ends, segments_of
from placewright.torch.documents import Site

needs.extension()


@pytest.mark.parametrize("make", models.ALL)
@pytest.mark.parametrize("seed", range(10))
def test_a_segment_waits_at_its_begin_and_hands_over_at_its_end(make, seed: int) -> None:
    atoms = split_into_atoms(capture(*make()))
    pick = random.Random(seed)
    steps = tuple((atom.index, pick.choice([GPU, CPU])) for atom in atoms.atoms)
    segments = segments_of(atoms, steps)
    assert sorted(atom for segment in segments for atom in segment.atoms) == list(range(len(atoms.atoms)))
    there = {CPU: set(), GPU: set(atoms.captured.inputs)}
    written = set(atoms.captured.inputs)
    for segment in segments:
        assert set(segment.reads) <= written  # all of it exists before the segment starts
        there[segment.device] |= set(segment.reads)
        for atom in segment.atoms:
            assert dict(steps)[atom] == segment.device
            values = set(atoms.atoms[atom].reads) - set(atoms.captured.constants)
            assert values <= there[segment.device]
            there[segment.device] |= set(atoms.atoms[atom].writes)
            written |= set(atoms.atoms[atom].writes)


def plan_with(cpu: float, gpu: float) -> placewright.Plan:
    atoms = split_into_atoms(capture(*models.branches()))
    count = len(atoms.atoms)
    times = {"cuda:0": [gpu] * count, "cpu:0": [cpu] * count}
    site = Site(["cuda:0", "cpu:0"], ["cuda:0", "cpu:0"], times, spaces=["g", "m"], latency=10.0, bandwidth=1e4)
    problem = placewright.Problem.from_document(problem_with_ends("branches", atoms, site))
    plan = placewright.plan(problem, time_limit=5)
    assert plan.check() == []
    return plan


def test_a_gpu_that_is_much_faster_runs_everything() -> None:
    assert set(plan_with(cpu=300.0, gpu=10.0).placement.values()) == {"cuda:0"}


def test_inputs_and_outputs_are_on_the_gpu_even_if_the_cpu_is_faster() -> None:
    plan = plan_with(cpu=10.0, gpu=1000.0)
    assert plan.placement["inputs"] == plan.placement["outputs"] == "cuda:0"
    others = {device for op, device in plan.placement.items() if op not in ("inputs", "outputs")}
    assert others == {"cpu:0"}
    assert plan.value > 2 * 10.0 + 10.0 * 12  # there, the longest path, and back


def test_what_an_atom_creates_on_the_gpu_it_creates_on_the_cpu_there() -> None:
    graph = torch.fx.Graph()
    read = graph.placeholder("read")
    elsewhere = {"dtype": torch.float32, "device": torch.device("meta")}
    ones = graph.call_function(torch.ops.aten.full.default, ([2, 3], 1.0), elsewhere)
    graph.output((graph.call_function(torch.ops.aten.add.Tensor, (read, ones)),))
    x = torch.randn(2, 3)
    (got,) = eager_on_the_cpu(torch.fx.GraphModule({}, graph), [x])(x)
    torch.testing.assert_close(got, x + 1)
