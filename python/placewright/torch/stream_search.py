"""Which atom on which stream: searched by simulation and by the planner, decided by measurement.

The atoms are cut into blocks where everything before must end before anything after starts; a block is searched on its
own, and equal blocks once. In a block: the times of its atoms alone, the slow-down of every pair that may run side by
side, shares fitted to those; the best schedules by simulation, and what the planner makes of streams that share a GPU,
are measured as CUDA graphs, and the best of them is improved by measured moves. One stream and naive branches are
always among the measured, so a plan is no worse than those in each block, up to the noise of the clock.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from placewright.torch import profiles
from placewright.torch.documents import Site, problem_document, steps_of
from placewright.torch.kernels import Kernel, Program, fused_convolution
from placewright.torch.schedules import (
    Costs,
    Steps,
    blocks,
    candidates,
    canonical,
    chains,
    fit_shares,
    list_schedule,
    simulate,
    timeline,
)
from placewright.torch.streams import URGENT
from placewright.torch.timing import AtomClock

# Pairs are measured for this many of the latest earlier atoms that may run beside an atom: all of
# them in a block of branches, some where a whole model is one block.
_NEIGHBOURS = 16

# Seconds for the planner.
_PLANNING = 3.0

# A move must gain more than the clock's noise to be taken.
_GAIN = 0.003


@dataclasses.dataclass(frozen=True)
class BlockRow:
    """What was found for one block, in microseconds. `by_planner` is the planner's own schedule, `planned` the one that
    was kept; `pair_error` is the mean relative error of the fitted shares, `simulation_error` the median relative error
    of the simulated schedules against the measured ones."""

    first: int
    atoms: int
    single: float
    naive: float
    by_planner: float
    planned: float
    pair_error: float
    simulation_error: float


@dataclasses.dataclass(frozen=True)
class StreamPlan:
    """Steps for the whole program with what they are expected to take, and the costs behind it."""

    steps: Steps
    predicted: float
    costs: Costs
    rows: tuple[BlockRow, ...]

    @staticmethod
    def of(document: Mapping[str, Any]) -> StreamPlan:
        """The plan again from its fields as a profile keeps them."""
        return StreamPlan(
            steps=tuple((atom, stream) for atom, stream in document["steps"]),
            predicted=document["predicted"],
            costs=Costs(**{**document["costs"], "after": [tuple(before) for before in document["costs"]["after"]]}),
            rows=tuple(BlockRow(**row) for row in document["rows"]),
        )


@dataclasses.dataclass(frozen=True)
class Effort:
    """How much to measure: the most streams, simulated candidates that are measured, measured moves for each block."""

    streams: int = 4
    candidates: int = 16
    moves: int = 40
    seed: int = 1


def search_streams(program: Program, effort: Effort, *, fresh: bool = False) -> tuple[Program, StreamPlan]:
    """The program with its fastest kernels, and the best schedule found for it. What was found before under the same
    conditions is taken from the cache, unless it is to be `fresh`."""

    def measure() -> dict[str, Any]:
        fused = _choose_fused(program)
        plan = _Search(_with_fused(program, fused), effort).run()
        return {"fused": fused, "plan": dataclasses.asdict(plan)}

    device = profiles.gpu(program.atoms.captured.example_inputs[0].device)
    found = profiles.cached(program, device, {"effort": dataclasses.asdict(effort)}, measure, fresh)
    faster = _with_fused(program, found["fused"])
    faster.run(program.atoms.captured.example_inputs)  # before any capture: cuDNN chooses its engines here
    return faster, StreamPlan.of(found["plan"])


def _with_fused(program: Program, fused: Sequence[bool]) -> Program:
    """cuDNN's fused convolution for these atoms."""
    kernels = list(program.kernels)
    for atom in program.atoms.atoms:
        if fused[atom.index]:
            kernel = fused_convolution(atom)
            assert kernel is not None
            kernels[atom.index] = kernel
    return program.with_kernels(kernels)


def _choose_fused(program: Program) -> list[bool]:
    """For which atoms cuDNN's fused convolution is faster than Inductor's kernels."""
    clock = AtomClock(program)
    chosen: dict[str, bool] = {}
    for atom in program.atoms.atoms:
        signature = program.signatures[atom.index]
        if signature not in chosen:
            kernel = fused_convolution(atom)
            chosen[signature] = kernel is not None and _is_faster(clock, atom.index, kernel)
    return [chosen[signature] for signature in program.signatures]


def _is_faster(clock: AtomClock, index: int, other: Kernel) -> bool:
    program = clock.program
    kernels = list(program.kernels)
    kernels[index] = other
    trial = program.with_kernels(kernels)
    trial.launch(index, dict(clock.values))  # before any capture: cuDNN chooses its engine here
    torch.cuda.synchronize()
    step = ((index, 0),)
    before = clock.steps(step)
    clock.program = trial
    after = clock.steps(step)
    clock.program = program
    return after < before


# How many parts of a GPU a stream may stand for: the whole of it, a half, a quarter.
_PARTS = {1: "whole", 2: "half", 4: "quarter"}


def stream_site(streams: int, costs: Costs) -> Site:
    """Streams of one GPU as devices that share its multiprocessors.

    Kernels of two streams interleave: atoms that would take 1.2 of the GPU together both run, 1.2 times as long. A
    resource does not stretch what uses it, so every way to run is a kind of stream: alone on the GPU an atom takes its
    share d for its time t; on a k-th of it at most 1/k, for t x max(1, k d)."""
    parts = {count: name for count, name in _PARTS.items() if count <= streams}
    devices = [(f"{name}{i}", name) for count, name in parts.items() for i in range(count)]
    pairs = list(zip(costs.times, costs.shares, strict=True))
    return Site(
        devices=[name for name, _ in devices],
        kind_of=[kind for _, kind in devices],
        times={name: [time * max(1.0, count * share) for time, share in pairs] for count, name in parts.items()},
        handover=costs.handover,
        uses=[["multiprocessors"]] * len(devices),
        shares={name: [min(share, 1 / count) for share in costs.shares] for count, name in parts.items()},
    )


def devices_of(steps: Steps, costs: Costs, site: Site) -> list[str]:
    """The device of each atom on the site of the streams: the one on which it ends about when it ends in the simulation
    of the steps."""
    free = dict.fromkeys(site.devices, 0.0)
    kinds = dict(zip(site.devices, site.kind_of, strict=True))
    found = [""] * len(steps)
    for atom, (start, end) in sorted(timeline(steps, costs).items(), key=lambda entry: entry[1]):
        ends = {name: max(since, start) + site.times[kinds[name]][atom] for name, since in free.items()}
        found[atom] = min(ends, key=lambda name: abs(ends[name] - end))
        free[found[atom]] = end
    return found


class _Search:
    def __init__(self, program: Program, effort: Effort) -> None:
        self.program = program
        self.effort = effort
        self.clock = AtomClock(program)
        self.after = program.atoms.after
        self.times = self.clock.times_alone()
        self.shares = [1.0] * len(self.times)
        self.slowdowns: dict[tuple[str, str], float] = {}
        self.rows: list[BlockRow] = []

    def run(self) -> StreamPlan:
        found = blocks(self.after)
        pair_errors = {block[0]: self._fit(block) for block in found}
        costs = Costs(self.times, self.shares, self.after, handover=1.0)
        proposed = self._from_the_planner(costs)
        known: dict[object, tuple[Steps, float]] = {}
        steps: list[tuple[int, int]] = []
        predicted = 0.0
        for block in found:
            first = block[0]
            key = tuple(
                (self.program.signatures[atom], tuple(p - first for p in self.after[atom] if p >= first))
                for atom in block
            )
            if key not in known:
                inside = set(block)
                mine = canonical(tuple(step for step in proposed if step[0] in inside))
                known[key] = self._search_block(block, costs, mine, pair_errors[first])
            relative, value = known[key]
            steps += [(atom + first, stream) for atom, stream in relative]
            predicted += value
        return StreamPlan(tuple(steps), predicted, costs, tuple(self.rows))

    def _from_the_planner(self, costs: Costs) -> Steps:
        """The order in which the planner starts the atoms on streams that share the GPU, dealt to the streams."""
        import placewright

        site = stream_site(self.effort.streams, costs)
        document = problem_document("streams", self.program.atoms, site, "latency")
        problem = placewright.Problem.from_document(document)
        order = steps_of(placewright.plan(problem, time_limit=_PLANNING, seed=self.effort.seed))
        sooner = {atom: -float(position) for position, (atom, _) in enumerate(order)}
        return list_schedule(range(len(order)), costs, self.effort.streams, sooner)

    def _search_block(
        self, block: Sequence[int], costs: Costs, planned: Steps, pair_error: float
    ) -> tuple[Steps, float]:
        """Steps counted from the block's first atom, and their measured time; `planned` are those of the planner."""
        first = block[0]
        if len(block) == 1:
            return ((0, 0),), self.times[first]
        naive, single = canonical(chains(block, self.after, self.effort.streams)), tuple((atom, 0) for atom in block)
        proposed = [steps for _, steps in candidates(block, costs, self.effort.streams, self.effort.candidates)]
        measured = {steps: self.clock.steps(steps) for steps in dict.fromkeys([naive, single, planned, *proposed])}
        errors = sorted(abs(simulate(steps, costs) / value - 1) for steps, value in measured.items())
        best = self._improve(measured)
        self.rows.append(
            BlockRow(
                first=first,
                atoms=len(block),
                single=measured[single],
                naive=measured[naive],
                by_planner=measured[planned],
                planned=measured[best],
                pair_error=pair_error,
                simulation_error=errors[len(errors) // 2],
            )
        )
        return tuple((atom - first, stream) for atom, stream in best), measured[best]

    def _fit(self, block: Sequence[int]) -> float:
        """Sets the shares of the block's atoms from measured pairs and returns the error of the fit. An atom that never
        runs beside another one has the whole GPU."""
        first = block[0]
        if len(block) == 1:
            return 0.0
        ancestors: dict[int, set[int]] = {}
        slowdowns: dict[tuple[int, int], float] = {}
        for atom in block:
            producers = [p for p in self.after[atom] if p >= first]
            ancestors[atom] = set(producers).union(*(ancestors[p] for p in producers))
            beside = [other for other in range(first, atom) if other not in ancestors[atom]]
            for other in beside[-_NEIGHBOURS:]:
                slowdowns[other - first, atom - first] = self._slowdown(other, atom)
        shares, error = fit_shares(slowdowns, len(block))
        self.shares[first : first + len(block)] = shares
        return error

    def _slowdown(self, first: int, second: int) -> float:
        """Pairs of equal atoms are measured once."""
        pair = (self.program.signatures[first], self.program.signatures[second])
        if pair not in self.slowdowns:
            self.slowdowns[pair] = self.clock.slowdown(first, second, self.times)
        return self.slowdowns[pair]

    def _improve(self, measured: dict[Steps, float]) -> Steps:
        """Random moves from the best schedule, each measured; `measured` receives them."""
        pick = random.Random(self.effort.seed)
        best = min(measured, key=lambda steps: measured[steps])
        for _ in range(self.effort.moves):
            steps = self._move(best, pick)
            if steps not in measured:
                measured[steps] = self.clock.steps(steps)
                if measured[steps] < measured[best] * (1 - _GAIN):
                    best = steps
        return best

    def _move(self, steps: Steps, pick: random.Random) -> Steps:
        """An atom at another place in the order, perhaps on another stream; or a stream with another priority."""
        moved = list(steps)
        kind = pick.random()
        if kind < 0.25:
            changed = pick.choice(sorted({stream for _, stream in moved}))
            other = changed - URGENT if changed >= URGENT else changed + URGENT
            return tuple((atom, other if stream == changed else stream) for atom, stream in moved)
        atom, stream = moved.pop(pick.randrange(len(moved)))
        if kind < 0.7:
            used = {stream for _, stream in moved}
            stream = pick.choice(sorted(used | {min(max(s % URGENT for s in used) + 1, self.effort.streams)}))
        earliest = max((i + 1 for i, (a, _) in enumerate(moved) if a in self.after[atom]), default=0)
        latest = min((i for i, (a, _) in enumerate(moved) if atom in self.after[a]), default=len(moved))
        moved.insert(pick.randint(earliest, latest), (atom, stream))
        return tuple(moved)
