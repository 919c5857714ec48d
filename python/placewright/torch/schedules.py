"""Schedules of atoms on streams, and what they are expected to take.

Streams share the multiprocessors of their GPU. An atom has a time when it runs alone and a share of the GPU that it
then uses. While the shares of the running atoms sum to at most 1, each runs as if alone; beyond that all slow down by
the sum. `fit_shares` finds the shares from measured pairs, `simulate` applies them, and `candidates` searches schedules
with them: list schedules of random priorities, each simulated, best first.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import random
from collections.abc import Mapping, Sequence

import numpy as np

Steps = tuple[tuple[int, int], ...]  # (atom, stream) in the order of launch

# Random schedules that are simulated: at least so many, and so many atoms in all of them.
_FEWEST_TRIALS = 40
_TRIED_ATOMS = 20_000


@dataclasses.dataclass(frozen=True)
class Costs:
    """Times alone and shares of the atoms, and the time from the end of an atom to the start of one that waits for it
    on another stream."""

    times: Sequence[float]
    shares: Sequence[float]
    after: Sequence[Sequence[int]]
    handover: float = 0.0


def fit_shares(pairs: Mapping[tuple[int, int], float], count: int, sweeps: int = 200) -> tuple[list[float], float]:
    """Shares d with max(1, d[i] + d[j]) near the measured slow-down of each pair; and the mean relative error.

    Coordinate descent on the squared error: each share in turn takes the best of a grid around the others."""
    shares = np.full(count, 0.5)
    partners: list[list[int]] = [[] for _ in range(count)]
    slowdowns: list[list[float]] = [[] for _ in range(count)]
    for (first, second), slowdown in pairs.items():
        for atom, other in ((first, second), (second, first)):
            partners[atom].append(other)
            slowdowns[atom].append(slowdown)
    grid = np.arange(1, 51) / 50
    for _ in range(sweeps):
        before = shares.copy()
        for atom in range(count):
            if partners[atom]:
                sums = grid[:, None] + shares[partners[atom]]
                errors = ((np.maximum(1.0, sums) - slowdowns[atom]) ** 2).sum(axis=1)
                shares[atom] = grid[errors.argmin()]
        if (shares == before).all():
            break
    fitted = [float(share) for share in shares]
    misses = [abs(max(1.0, fitted[i] + fitted[j]) / slow - 1) for (i, j), slow in pairs.items()]
    return fitted, sum(misses) / len(misses) if misses else 0.0


def simulate(steps: Steps, costs: Costs) -> float:
    """The makespan of a schedule."""
    return max(end for _, end in timeline(steps, costs).values())


def timeline(steps: Steps, costs: Costs) -> dict[int, tuple[float, float]]:
    """When each atom of a schedule starts and ends."""
    queues: dict[int, list[int]] = {}
    for atom, stream in steps:
        queues.setdefault(stream, []).append(atom)
    stream_of = dict(steps)
    started: dict[int, float] = {}
    ended: dict[int, float] = {}
    heads = {stream: 0 for stream in queues}
    left: dict[int, float] = {}  # running atoms: work still to do
    now = 0.0
    while len(ended) < len(steps):
        next_start = math.inf
        for stream, queue in queues.items():
            if heads[stream] == len(queue) or queue[heads[stream]] in left:
                continue
            atom = queue[heads[stream]]
            producers = [p for p in costs.after[atom] if p in stream_of]
            if any(p not in ended for p in producers):
                continue
            start = max(
                (ended[p] + (costs.handover if stream_of[p] != stream else 0.0) for p in producers), default=0.0
            )
            if start <= now + 1e-12:
                left[atom] = costs.times[atom]
                started[atom] = now
            else:
                next_start = min(next_start, start)
        slow = max(1.0, sum(costs.shares[atom] for atom in left))
        step = min((work * slow for work in left.values()), default=math.inf)
        step = min(step, next_start - now)
        assert step < math.inf, "a schedule must respect the order of the atoms"
        now += step
        for atom in list(left):
            left[atom] -= step / slow
            if left[atom] <= 1e-12:
                del left[atom]
                ended[atom] = now
                heads[stream_of[atom]] += 1
    return {atom: (started[atom], ended[atom]) for atom, _ in steps}


def canonical(steps: Steps) -> Steps:
    """Streams renumbered by first use: equal for schedules that differ in the names of streams only."""
    names: dict[int, int] = {}
    return tuple((atom, names.setdefault(stream, len(names))) for atom, stream in steps)


def ranks(atoms: Sequence[int], costs: Costs) -> dict[int, float]:
    """For each atom the longest time from its start to the end of all."""
    inside = set(atoms)
    rank: dict[int, float] = {}
    below: dict[int, float] = {}
    for atom in sorted(atoms, reverse=True):
        rank[atom] = costs.times[atom] + below.get(atom, 0.0)
        for producer in costs.after[atom]:
            if producer in inside:
                below[producer] = max(below.get(producer, 0.0), rank[atom])
    return rank


def list_schedule(
    atoms: Sequence[int], costs: Costs, streams: int, priority: Mapping[int, float], pick: random.Random | None = None
) -> Steps:
    """The ready atom of the highest priority goes to the stream where it can start first. With `pick`, now and then to
    a random one."""
    inside = set(atoms)
    waiting = {atom: sum(p in inside for p in costs.after[atom]) for atom in atoms}
    users: dict[int, list[int]] = {atom: [] for atom in atoms}
    for atom in atoms:
        for producer in costs.after[atom]:
            if producer in inside:
                users[producer].append(atom)
    ready = [atom for atom in atoms if waiting[atom] == 0]
    free = [0.0] * streams
    ended: dict[int, float] = {}
    placed: dict[int, int] = {}
    steps: list[tuple[int, int]] = []
    while ready:
        atom = max(ready, key=lambda candidate: priority[candidate])
        ready.remove(atom)

        def start_on(stream: int, atom: int = atom) -> float:
            arrivals = [
                ended[p] + (costs.handover if placed[p] != stream else 0.0) for p in costs.after[atom] if p in inside
            ]
            return max([free[stream], *arrivals])

        stream = min(range(streams), key=start_on)
        if pick is not None and pick.random() < 0.1:
            stream = pick.randrange(streams)
        ended[atom] = free[stream] = start_on(stream) + costs.times[atom]
        placed[atom] = stream
        steps.append((atom, stream))
        for user in users[atom]:
            waiting[user] -= 1
            if waiting[user] == 0:
                ready.append(user)
    return tuple(steps)


def candidates(
    atoms: Sequence[int], costs: Costs, streams: int, count: int, seed: int = 1, trials: int = 600
) -> list[tuple[float, Steps]]:
    """Distinct schedules with their simulated makespans, best first, at most `count`. Of many atoms fewer are tried: a
    trial takes time with their number, and random priorities find less among many."""
    pick = random.Random(seed)
    trials = min(trials, max(_FEWEST_TRIALS, _TRIED_ATOMS // len(atoms)))
    rank = ranks(atoms, costs)
    found: dict[Steps, float] = {}
    for trial in range(trials):
        width = 1 + trial % streams
        noise = 0.0 if trial < streams else pick.choice([0.1, 0.3, 0.8])
        priority = {atom: rank[atom] * math.exp(noise * pick.gauss(0, 1)) for atom in atoms}
        steps = canonical(list_schedule(atoms, costs, width, priority, pick if trial >= streams else None))
        if steps not in found:
            found[steps] = simulate(steps, costs)
    return sorted(((value, steps) for steps, value in found.items()), key=lambda entry: entry[0])[:count]


def chains(atoms: Sequence[int], after: Sequence[Sequence[int]], streams: int) -> Steps:
    """Every branch on a stream of its own, without any planning: an atom follows its producer unless another did."""
    ancestors: dict[int, set[int]] = {}
    last: dict[int, int] = {}
    stream_of: dict[int, int] = {}
    steps = []
    for atom in atoms:
        producers = [p for p in after[atom] if p in stream_of]
        ancestors[atom] = set(producers).union(*(ancestors[p] for p in producers))
        free = [s for s, final in last.items() if final in producers]
        free += [s for s, final in last.items() if final in ancestors[atom] and s not in free]
        if free:
            stream = free[0]
        elif len(last) < streams:
            stream = len(last)
        else:
            stream = min(last, key=lambda s: last[s])
        stream_of[atom] = stream
        last[stream] = atom
        steps.append((atom, stream))
    return tuple(steps)


def blocks(after: Sequence[Sequence[int]]) -> list[list[int]]:
    """The atoms cut where everything before must end before anything after starts."""
    ancestors: list[set[int]] = []
    for producers in after:
        ancestors.append(set(producers).union(*(ancestors[p] for p in producers)))
    count = len(after)
    cuts = [0]
    for position in range(1, count):
        before = set(range(position))
        if all(before <= ancestors[atom] for atom in range(position, count)):
            cuts.append(position)
    cuts.append(count)
    return [list(range(start, end)) for start, end in itertools.pairwise(cuts)]
