"""Problems about PyTorch models: devices that share a GPU or cores, and copies between memories."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

import models
import needs
import placewright
import placewright.torch as placed_torch
from placewright.torch.atoms import split_into_atoms
from placewright.torch.capture import capture
from placewright.torch.documents import Site, problem_document
from placewright.torch.kernels import eager
from placewright.torch.schedules import Costs, chains, simulate
from placewright.torch.stream_search import devices_of, stream_site

needs.extension()


class Two(torch.nn.Module):
    """Two layers side by side."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = torch.nn.Linear(8, 8), torch.nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return self.first(x), self.second(x)


def two_on_streams(share: float) -> placewright.Plan:
    atoms = split_into_atoms(capture(Two().eval(), (torch.randn(2, 8),)))
    costs = Costs([10.0, 10.0], [share, share], atoms.after)
    document = problem_document("two", atoms, stream_site(2, costs), "latency")
    plan = placewright.plan(placewright.Problem.from_document(document), time_limit=5)
    assert plan.check() == []
    return plan


def test_atoms_on_streams_run_side_by_side_where_the_gpu_has_room_for_both() -> None:
    assert two_on_streams(0.5).value == pytest.approx(10)


def test_atoms_on_streams_slow_each_other_down_where_it_has_not() -> None:
    assert two_on_streams(0.6).value == pytest.approx(12)
    assert two_on_streams(1.0).value == pytest.approx(20)


@pytest.mark.parametrize("share", [0.2, 0.6, 1.0])
def test_the_plan_of_a_schedule_takes_about_as_long_as_its_simulation(share: float) -> None:
    model, inputs = models.branches()
    atoms = split_into_atoms(capture(model, inputs))
    count = len(atoms.atoms)
    costs = Costs([float(5 + index % 7) for index in range(count)], [share] * count, atoms.after)
    steps = chains(range(count), atoms.after, 4)
    site = stream_site(4, costs)
    problem = placewright.Problem.from_document(problem_document("steps", atoms, site, "latency"))
    names = [atom.name for atom in atoms.atoms]
    plan = problem.plan_for(dict(zip(names, devices_of(steps, costs, site), strict=True)))
    assert plan.check() == []
    assert plan.value == pytest.approx(simulate(steps, costs), rel=0.25)


@pytest.mark.skipif(len(needs.CORES) < 2, reason="two cores are needed")
def test_core_sets_may_have_cores_in_common() -> None:
    model, inputs = models.branches()
    devices = [f"cpu:{needs.CORES[0]}", f"cpu:{needs.CORES[1]}", f"cpu:{needs.CORES[0]},{needs.CORES[1]}"]
    fast = placed_torch.compile(model, inputs, devices=devices, compiler=eager)
    document = fast.problem_document()
    assert [entry["name"] for entry in document["resources"]] == [f"core {core}" for core in needs.CORES[:2]]
    assert fast.plan.check() == []
    torch.testing.assert_close(fast.variants["planned"](*inputs)[0], model(*inputs))


def test_what_one_device_has_for_itself_is_no_resource() -> None:
    site = Site(["a", "b"], ["x", "x"], {"x": []}, uses=[["core 0"], ["core 1"]])
    assert site.cluster()["resources"] == []


def test_copies_between_memories_take_their_time() -> None:
    atoms = split_into_atoms(capture(torch.nn.Sequential(Two(), Joined()).eval(), (torch.randn(2, 8),)))
    times = {"gpu": [10.0] * len(atoms.atoms), "cpu": [10.0] * len(atoms.atoms)}
    site = Site(["gpu", "cpu"], ["gpu", "cpu"], times, spaces=["gpu", "host"], latency=5.0, bandwidth=64.0)
    problem = placewright.Problem.from_document(problem_document("two", atoms, site, "latency"))
    assert [atom.after for atom in atoms.atoms] == [(), (), (0, 1)]
    assert problem.plan_for([0, 0, 0]).value == pytest.approx(30)
    assert problem.plan_for([0, 1, 0]).value == pytest.approx(10 + 5 + 2 * 8 * 4 / 64 + 10)


class Joined(torch.nn.Module):
    def forward(self, both: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        return both[0] @ both[1].t()
