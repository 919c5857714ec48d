"""One CUDA graph over several streams.

Steps say for each atom on which stream it runs, and in which order the atoms of a stream follow each other. Capturing
them forks the side streams off the first with an event, makes an atom wait for the events of its producers on
other streams, and joins all streams at the end. A wait that an earlier wait of the same stream implies is left out:
edges of a CUDA graph are not free.

Tensors that cross streams stay referenced until the capture ends; the allocator would otherwise hand their memory to a
later atom of the producing stream while another stream still reads it.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch.fx import Node

from placewright.torch.kernels import Program
from placewright.torch.schedules import Steps

# Streams with this number or a higher one have priority over the others when multiprocessors are
# short.
URGENT = 8

# Priorities of streams that PyTorch tells apart: 0 is the lowest.
PRIORITIES = 4


class _Clocks:
    """Which events a stream knows to have happened: for each stream the number of its atoms that have ended."""

    def __init__(self, streams: int) -> None:
        self.known = [[0] * streams for _ in range(streams)]
        self.position: dict[int, tuple[int, list[int]]] = {}
        self.stream_of: dict[int, int] = {}

    def waits(self, stream: int, producers: Sequence[int]) -> list[int]:
        """The producers that the stream must wait for; afterwards it knows all that they knew."""
        unknown = [p for p in producers if p in self.position and not self._is_known(p, self.known[stream])]
        needed = [p for p in unknown if not any(self._is_known(p, self.position[q][1]) for q in unknown if q != p)]
        for producer in needed:
            knew = self.position[producer][1]
            self.known[stream] = [max(a, b) for a, b in zip(self.known[stream], knew, strict=True)]
        return needed

    def _is_known(self, atom: int, known: Sequence[int]) -> bool:
        return known[self.stream_of[atom]] >= self.position[atom][0]

    def ended(self, atom: int, stream: int) -> None:
        self.known[stream][stream] += 1
        self.stream_of[atom] = stream
        self.position[atom] = (self.known[stream][stream], list(self.known[stream]))


def waits_of(steps: Steps, after: Sequence[Sequence[int]]) -> list[list[int]]:
    """For each step the atoms of other streams whose end it must wait for, without those that are implied."""
    clocks = _Clocks(1 + max(stream for _, stream in steps))
    result = []
    for atom, stream in steps:
        result.append(clocks.waits(stream, after[atom]))
        clocks.ended(atom, stream)
    return result


class StreamGraph:
    """A program as one CUDA graph. A call copies the inputs in and replays; the outputs are overwritten by the next
    call. Graphs of a higher priority go first where multiprocessors are short."""

    def __init__(self, program: Program, steps: Steps, priority: int = 0) -> None:
        captured = program.atoms.captured
        self.program = program  # kernels own constants that the graph reads
        self.inputs = [value.clone() for value in captured.example_inputs]
        streams = make_streams(1 + max(stream for _, stream in steps), priority)
        values = dict(zip(captured.inputs, self.inputs, strict=True))
        self.graph = torch.cuda.CUDAGraph()
        with capturing(self.graph, streams[0]):
            capture_steps(program, steps, streams, values)
        self.outputs = program.outputs(values)

    def __call__(self, *inputs: torch.Tensor) -> list[torch.Tensor]:
        """The outputs for these inputs, once the current stream has reached them."""
        for place, value in zip(self.inputs, inputs, strict=True):
            place.copy_(value)
        self.graph.replay()
        return self.outputs


@contextlib.contextmanager
def capturing(graph: torch.cuda.CUDAGraph, stream: torch.cuda.Stream, pool: Any = None) -> Iterator[None]:
    """Captures what is launched into a graph, as torch.cuda.graph does, but without collecting garbage and emptying the
    memory cache each time: graphs are made by the hundred here. The collector rests meanwhile, since it might free
    another graph, which must not happen during a capture."""
    resting = not gc.isenabled()
    gc.disable()
    torch.cuda.synchronize()
    try:
        with torch.no_grad(), torch.cuda.stream(stream):
            graph.capture_begin(*([] if pool is None else [pool]))
            try:
                yield
            finally:
                graph.capture_end()
    finally:
        if not resting:
            gc.enable()


_streams: list[list[torch.cuda.Stream]] = [[] for _ in range(PRIORITIES)]


def make_streams(count: int, priority: int = 0) -> list[torch.cuda.Stream]:
    """The first `count` streams of the process with this priority: those from `URGENT` on have the next higher one."""
    streams = _streams[priority]
    while len(streams) < count:
        level = priority + (len(streams) >= URGENT)
        streams.append(torch.cuda.Stream(priority=-min(level, PRIORITIES - 1)))
    return streams[:count]


def capture_steps(
    program: Program,
    steps: Steps,
    streams: Sequence[torch.cuda.Stream],
    values: dict[Node, torch.Tensor],
) -> None:
    """Launches the steps on their streams, between a fork from the first stream and a join to it. `values` holds the
    inputs and receives every value, so that it keeps alive what crosses streams."""
    start = torch.cuda.Event()
    start.record(streams[0])
    forked = {0}
    waits = waits_of(steps, program.atoms.after)
    awaited = {producer for producers in waits for producer in producers}
    events: dict[int, torch.cuda.Event] = {}
    for (atom, stream), producers in zip(steps, waits, strict=True):
        here = streams[stream]
        if stream not in forked and not producers:
            here.wait_event(start)
        forked.add(stream)
        for producer in producers:
            here.wait_event(events[producer])
        with torch.cuda.stream(here):
            program.launch(atom, values)
            if atom in awaited:
                events[atom] = torch.cuda.Event()
                events[atom].record(here)
    for stream in forked - {0}:
        end = torch.cuda.Event()
        end.record(streams[stream])
        streams[0].wait_event(end)
