"""Which atom on which stream: searched by simulation, decided by measurement.

The atoms are cut into blocks where everything before must end before anything after starts; a block is searched on its
own, and equal blocks once. In a block: the times of its atoms alone, the slow-down of every pair that may run side by
side, shares fitted to those; the best schedules by simulation are measured as CUDA graphs, and the best of them is
improved by measured moves. One stream and naive branches are always among the measured, so a plan is no worse than
those in each block, up to the noise of the clock.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Sequence

import torch

from placewright.torch.kernels import Kernel, Program, fused_convolution
from placewright.torch.schedules import Costs, Steps, blocks, candidates, canonical, chains, fit_shares, simulate
from placewright.torch.streams import URGENT
from placewright.torch.timing import AtomClock

# Pairs are measured for this many of the latest earlier atoms that may run beside an atom: all of them in a block of
# branches, some where a whole model is one block.
_NEIGHBOURS = 16

# A move must gain more than the clock's noise to be taken.
_GAIN = 0.003


@dataclasses.dataclass(frozen=True)
class BlockRow:
    """What was found for one block, in microseconds. `pair_error` is the mean relative error of the fitted shares,
    `simulation_error` the median relative error of the simulated schedules against the measured ones."""

    first: int
    atoms: int
    single: float
    naive: float
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


@dataclasses.dataclass(frozen=True)
class Effort:
    """How much to measure: the most streams, simulated candidates that are measured, measured moves for each block."""

    streams: int = 4
    candidates: int = 16
    moves: int = 40
    seed: int = 1


def choose_kernels(program: Program) -> Program:
    """The same program with cuDNN's fused convolution wherever it is faster than Inductor's kernels."""
    clock = AtomClock(program)
    chosen: dict[str, Kernel] = {}
    kernels = list(program.kernels)
    for atom in program.atoms.atoms:
        signature = program.signatures[atom.index]
        if signature not in chosen:
            chosen[signature] = _faster(clock, atom.index, fused_convolution(atom))
        kernels[atom.index] = chosen[signature]
    return program.with_kernels(kernels)


def _faster(clock: AtomClock, index: int, other: Kernel | None) -> Kernel:
    program = clock.program
    if other is None:
        return program.kernels[index]
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
    return other if after < before else program.kernels[index]


def search_streams(program: Program, effort: Effort) -> StreamPlan:
    """The best schedule found for the program."""
    return _Search(program, effort).run()


class _Search:
    def __init__(self, program: Program, effort: Effort) -> None:
        self.program = program
        self.effort = effort
        self.clock = AtomClock(program)
        self.after = program.atoms.after
        self.times = self._times_alone()
        self.shares = [1.0] * len(self.times)
        self.slowdowns: dict[tuple[str, str], float] = {}
        self.rows: list[BlockRow] = []

    def _times_alone(self) -> list[float]:
        known: dict[str, float] = {}
        for index, signature in enumerate(self.program.signatures):
            if signature not in known:
                known[signature] = self.clock.steps(((index, 0),))
        return [known[signature] for signature in self.program.signatures]

    def run(self) -> StreamPlan:
        known: dict[object, tuple[Steps, float, list[float]]] = {}
        steps: list[tuple[int, int]] = []
        predicted = 0.0
        for block in blocks(self.after):
            first = block[0]
            key = tuple(
                (self.program.signatures[atom], tuple(p - first for p in self.after[atom] if p >= first))
                for atom in block
            )
            if key not in known:
                known[key] = self._search_block(block)
            relative, value, shares = known[key]
            self.shares[first : first + len(block)] = shares
            steps += [(atom + first, stream) for atom, stream in relative]
            predicted += value
        costs = Costs(self.times, self.shares, self.after, handover=1.0)
        return StreamPlan(tuple(steps), predicted, costs, tuple(self.rows))

    def _search_block(self, block: Sequence[int]) -> tuple[Steps, float, list[float]]:
        """Steps counted from the block's first atom, their measured time, the atoms' shares."""
        first = block[0]
        if len(block) == 1:
            return ((0, 0),), self.times[first], [1.0]
        pair_error = self._fit(block)
        costs = Costs(self.times, self.shares, self.after, handover=1.0)
        naive, single = canonical(chains(block, self.after, self.effort.streams)), tuple((atom, 0) for atom in block)
        proposed = [steps for _, steps in candidates(block, costs, self.effort.streams, self.effort.candidates)]
        measured = {steps: self.clock.steps(steps) for steps in dict.fromkeys([naive, single, *proposed])}
        errors = sorted(abs(simulate(steps, costs) / value - 1) for steps, value in measured.items())
        best = self._improve(measured)
        self.rows.append(
            BlockRow(
                first=first,
                atoms=len(block),
                single=measured[single],
                naive=measured[naive],
                planned=measured[best],
                pair_error=pair_error,
                simulation_error=errors[len(errors) // 2],
            )
        )
        shares = self.shares[first : first + len(block)]
        return tuple((atom - first, stream) for atom, stream in best), measured[best], shares

    def _fit(self, block: Sequence[int]) -> float:
        """Sets the shares of the block's atoms from measured pairs and returns the error of the fit."""
        first = block[0]
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
