"""Times on a GPU: of calls, of single atoms, of pairs side by side and of whole blocks, all as CUDA graphs."""

from __future__ import annotations

import dataclasses
import functools
import statistics
import time
from collections.abc import Callable, Mapping, Sequence

import torch
from torch.fx import Node

from placewright.torch.kernels import Program
from placewright.torch.schedules import Steps
from placewright.torch.streams import capture_steps, capturing, make_streams

# Clocks do not tell apart what differs by less.
_TOLD_APART = 0.995


@dataclasses.dataclass(frozen=True)
class Spread:
    """Milliseconds: median, first and last decile of `count` samples."""

    median: float
    low: float
    high: float
    count: int = 1

    @staticmethod
    def of(values: Sequence[float]) -> Spread:
        """The spread of some samples."""
        ordered = sorted(values)
        low, high = ordered[len(ordered) // 10], ordered[(9 * len(ordered)) // 10]
        return Spread(statistics.median(ordered), low, high, len(ordered))

    def clearly_below(self, other: Spread) -> bool:
        """Whether the difference is beyond the noise: nine tenths of these samples are below nine tenths of those,
        and the medians differ by what a clock can tell apart."""
        return self.high < other.low and self.median < _TOLD_APART * other.median

    def __str__(self) -> str:
        return f"{self.median:.3f} ms ({self.low:.3f} to {self.high:.3f})"


def compare_calls(
    calls: Mapping[str, Callable[[], object]], *, on_gpu: bool, rounds: int = 15, repeats: int = 30
) -> dict[str, Spread]:
    """The time of each call, back to back, over rounds in which the calls take turns. On a GPU it is the GPU's time."""
    for call in calls.values():
        for _ in range(5 if on_gpu else 1):
            call()
    samples: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            samples[name].append((_gpu_time if on_gpu else _clock_time)(call, repeats))
    return {name: Spread.of(values) for name, values in samples.items()}


def _gpu_time(call: Callable[[], object], repeats: int) -> float:
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    call()  # keeps the GPU busy while the next launches are prepared
    start.record()
    for _ in range(repeats):
        call()
    end.record()
    end.synchronize()
    elapsed: float = start.elapsed_time(end)
    return elapsed / repeats


def _clock_time(call: Callable[[], object], repeats: int) -> float:
    start = time.perf_counter()
    for _ in range(repeats):
        call()
    return 1e3 * (time.perf_counter() - start) / repeats


# Atoms in one CUDA graph that is replayed to time some of them.
_LAUNCHES = 400


class AtomClock:
    """Times parts of a program on the GPU, on the values of one run of it."""

    def __init__(self, program: Program, repeats: int = 12) -> None:
        self.program = program
        self.repeats = repeats
        # A run before any capture: compiled kernels are loaded and cuDNN chooses its engines here.
        self.values = program.run(program.atoms.captured.example_inputs)
        torch.cuda.synchronize()

    def steps(self, steps: Steps) -> float:
        """Microseconds for the steps, one round after the other; long ones need fewer rounds."""
        streams = make_streams(1 + max(stream for _, stream in steps))
        repeats = max(1, min(self.repeats, _LAUNCHES // len(steps)))

        def rounds() -> None:
            for _ in range(repeats):
                capture_steps(self.program, steps, streams, dict(self.values))

        return _replay(rounds, streams[0]) / repeats

    def times_alone(self) -> list[float]:
        """Microseconds for each atom alone; equal atoms are measured once."""
        known: dict[str, float] = {}
        for index, signature in enumerate(self.program.signatures):
            if signature not in known:
                known[signature] = self.steps(((index, 0),))
        return [known[signature] for signature in self.program.signatures]

    def slowdown(self, first: int, second: int, times: Sequence[float]) -> float:
        """How much longer two atoms take side by side than alone, each repeated so that both are busy equally long.
        1: they do not disturb each other; 2: no better than one after the other."""
        total = self.repeats * max(times[first], times[second])
        counts = {atom: max(1, round(total / times[atom])) for atom in (first, second)}
        streams = make_streams(2)
        kept: list[dict[Node, torch.Tensor]] = []

        def side_by_side() -> None:
            start = torch.cuda.Event()
            start.record(streams[0])
            streams[1].wait_event(start)
            for atom, stream in ((first, streams[0]), (second, streams[1])):
                with torch.cuda.stream(stream):
                    for _ in range(counts[atom]):
                        kept.append(dict(self.values))
                        self.program.launch(atom, kept[-1])
            end = torch.cuda.Event()
            end.record(streams[1])
            streams[0].wait_event(end)

        together = _replay(side_by_side, streams[0], rounds=3)  # pairs are many, and their shares smooth the noise
        return together / max(counts[first] * times[first], counts[second] * times[second])


@functools.cache
def _keeper() -> torch.cuda.CUDAGraph:
    """A graph that lives as long as the process, and with it the memory pool that graphs for timing share."""
    graph = torch.cuda.CUDAGraph()
    with capturing(graph, make_streams(1)[0]):
        torch.zeros(1, device="cuda")
    return graph


def _replay(work: Callable[[], None], stream: torch.cuda.Stream, rounds: int = 9) -> float:
    """Microseconds for the work as a CUDA graph. Such graphs live one after the other, so they share their memory."""
    graph = torch.cuda.CUDAGraph()
    with capturing(graph, stream, _keeper().pool()):
        work()
    graph.replay()
    samples: list[float] = []
    for _ in range(rounds):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        graph.replay()  # keeps the GPU busy while the next launches are prepared
        start.record()
        graph.replay()
        graph.replay()
        end.record()
        end.synchronize()
        samples.append(1e3 * start.elapsed_time(end) / 2)
    return statistics.median(samples)


# Cycles of the GPU, about four milliseconds: longer than it takes to launch a few graphs again and
# again.
_LAUNCHING = 8_000_000


def slowdown_of_graphs(graphs: Sequence[torch.cuda.CUDAGraph], alone: Sequence[float], busy: float = 6.0) -> float:
    """How much longer graphs take side by side than alone (`alone`: milliseconds for each), each repeated so that all
    are busy for equally long."""
    counts = [max(1, round(busy / time)) for time in alone]
    streams = [torch.cuda.Stream() for _ in graphs]
    samples = []
    for _ in range(3):
        torch.cuda._sleep(_LAUNCHING)
        start = torch.cuda.Event(enable_timing=True)
        start.record()
        ends = []
        for graph, count, stream in zip(graphs, counts, streams, strict=True):
            stream.wait_event(start)
            with torch.cuda.stream(stream):
                for _ in range(count):
                    graph.replay()
            ends.append(torch.cuda.Event(enable_timing=True))
            ends[-1].record(stream)
        torch.cuda.synchronize()
        samples.append(max(start.elapsed_time(end) for end in ends))
    together: float = statistics.median(samples)
    return together / max(count * time for count, time in zip(counts, alone, strict=True))
