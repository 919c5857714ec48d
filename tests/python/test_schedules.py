"""Shares, simulated schedules and blocks; no GPU and no torch needed for the arithmetic."""

from __future__ import annotations

import random

import pytest

pytest.importorskip("torch")

from placewright.torch.schedules import (
    Costs,
    Steps,
    blocks,
    candidates,
    canonical,
    chains,
    fit_shares,
    list_schedule,
    ranks,
    simulate,
)
from placewright.torch.streams import waits_of

# 0 forks into 1, 2 -> 3 and 4 -> 5 -> 6; 7 joins them.
AFTER = [(), (0,), (0,), (2,), (0,), (4,), (5,), (1, 3, 6)]
TIMES = [1.0, 4.0, 2.0, 2.0, 3.0, 1.0, 2.0, 1.0]


def random_graph(seed: int) -> Costs:
    pick = random.Random(seed)
    count = pick.randint(2, 12)
    after = [tuple(sorted(pick.sample(range(i), pick.randint(0, min(i, 3))))) for i in range(count)]
    return Costs([pick.uniform(0.1, 5) for _ in after], [pick.uniform(0.1, 1) for _ in after], after, 0.5)


def respects_order(steps: Steps, after: list[tuple[int, ...]]) -> bool:
    seen: set[int] = set()
    inside = {atom for atom, _ in steps}
    for atom, _ in steps:
        if any(p in inside and p not in seen for p in after[atom]):
            return False
        seen.add(atom)
    return seen == inside


def test_atoms_of_small_share_do_not_disturb_each_other() -> None:
    costs = Costs(TIMES, [0.3] * 8, AFTER)
    steps = ((0, 0), (1, 0), (2, 1), (3, 1), (4, 2), (5, 2), (6, 2), (7, 0))
    assert simulate(steps, costs) == pytest.approx(1 + 6 + 1)  # the longest path


def test_atoms_that_fill_the_gpu_gain_nothing_from_streams() -> None:
    costs = Costs(TIMES, [1.0] * 8, AFTER)
    steps = ((0, 0), (1, 0), (2, 1), (3, 1), (4, 2), (5, 2), (6, 2), (7, 0))
    assert simulate(steps, costs) == pytest.approx(sum(TIMES))
    assert simulate(tuple((atom, 0) for atom in range(8)), costs) == pytest.approx(sum(TIMES))


def test_handover_counts_between_streams_alone() -> None:
    costs = Costs([1.0, 1.0], [1.0, 1.0], [(), (0,)], handover=0.25)
    assert simulate(((0, 0), (1, 0)), costs) == pytest.approx(2.0)
    assert simulate(((0, 0), (1, 1)), costs) == pytest.approx(2.25)


def test_shares_are_found_again_from_the_slow_downs_they_cause() -> None:
    shares = [0.3, 0.6, 0.9, 0.5]
    pairs = {(i, j): max(1.0, shares[i] + shares[j]) for j in range(4) for i in range(j)}
    fitted, error = fit_shares(pairs, 4)
    assert error < 1e-9
    assert all(max(1.0, fitted[i] + fitted[j]) == pytest.approx(slow) for (i, j), slow in pairs.items())


@pytest.mark.parametrize("seed", range(50))
def test_candidates_respect_the_order_and_are_sorted(seed: int) -> None:
    costs = random_graph(seed)
    atoms = range(len(costs.times))
    found = candidates(atoms, costs, 4, 8, seed=seed, trials=40)
    assert found and [value for value, _ in found] == sorted(value for value, _ in found)
    for value, steps in found:
        assert respects_order(steps, list(costs.after))
        assert value == pytest.approx(simulate(steps, costs))
        longest = max(ranks(atoms, costs).values())
        assert longest - 1e-9 <= value
    one = list_schedule(atoms, costs, 1, ranks(atoms, costs))
    assert simulate(one, costs) == pytest.approx(sum(costs.times))
    assert found[0][0] <= sum(costs.times) + 1e-9


def test_naive_branches_get_streams_of_their_own() -> None:
    steps = dict(chains(range(8), AFTER, 4))
    assert len({steps[1], steps[2], steps[4]}) == 3
    assert steps[2] == steps[3] and steps[4] == steps[5] == steps[6]


def test_names_of_streams_do_not_matter() -> None:
    assert canonical(((0, 5), (1, 2), (2, 5))) == ((0, 0), (1, 1), (2, 0))


def test_blocks_are_cut_where_everything_waits() -> None:
    assert blocks(AFTER) == [[0], [1, 2, 3, 4, 5, 6], [7]]
    assert blocks([(), (0,), (0,), (1,)]) == [[0], [1, 2, 3]]


@pytest.mark.parametrize("seed", range(50))
def test_waits_imply_every_edge(seed: int) -> None:
    """Whatever an atom reads has ended before it starts, by its stream's order and the waits alone."""
    costs = random_graph(seed)
    pick = random.Random(seed)
    steps = tuple((atom, pick.randrange(3)) for atom in range(len(costs.times)))
    waits = waits_of(steps, costs.after)
    ended_before: dict[int, set[int]] = {}
    last: dict[int, int] = {}
    for (atom, stream), producers in zip(steps, waits, strict=True):
        sources = [*producers, *([last[stream]] if stream in last else [])]
        ended_before[atom] = set(sources).union(*(ended_before[s] for s in sources))
        last[stream] = atom
        assert set(costs.after[atom]) <= ended_before[atom]
        assert all(stream != dict(steps)[p] for p in producers)
        # No wait is implied by the others.
        for producer in producers:
            others = [s for s in sources if s != producer]
            assert producer not in set(others).union(*(ended_before[s] for s in others))
