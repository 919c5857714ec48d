"""One sample over a GPU and cores of the CPU, as a plan says.

A segment is a run of atoms of one device: it begins before an atom that reads from the other device and ends after one
that the other device reads, so the graph of segments has no cycle and nothing waits longer than the plan says. Segments
of the GPU are CUDA graphs, launched by the calling thread; those of the CPU run in a worker pinned to the cores. What
crosses goes through pinned buffers that belong to the run.
"""

from __future__ import annotations

import dataclasses
import functools
import queue
import statistics
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.fx import Node

from placewright.torch.atoms import Atoms
from placewright.torch.capture import Captured
from placewright.torch.core_sets import dismiss, measure_core_sets, pin_this_thread
from placewright.torch.documents import Site, problem_document
from placewright.torch.kernels import Kernel, Program, compile_atoms, eager
from placewright.torch.schedules import Steps
from placewright.torch.streams import capturing
from placewright.torch.timing import AtomClock

GPU, CPU = 0, 1  # numbers of the devices in steps

# Ops that stand for the model's inputs and outputs.
ENDS = INPUTS, OUTPUTS = "inputs", "outputs"


@dataclasses.dataclass(frozen=True)
class Segment:
    """Atoms that one device runs without a pause. `reads` are the values that it takes from the other device."""

    device: int
    atoms: tuple[int, ...]
    reads: tuple[Node, ...]


def segments_of(atoms: Atoms, steps: Steps) -> list[Segment]:
    """The steps cut where values cross, in an order in which every segment comes after those that it reads from. The
    inputs of the model are the GPU's, and so are its outputs."""
    device_of = dict(steps)
    captured = atoms.captured
    made_on = {node: device_of[atom.index] for atom in atoms.atoms for node in atom.writes}
    made_on.update(dict.fromkeys(captured.inputs, GPU))
    crossing = {
        atom.index: [node for node in atom.reads if node in made_on and made_on[node] != device_of[atom.index]]
        for atom in atoms.atoms
    }
    read_elsewhere = {node for nodes in crossing.values() for node in nodes}
    open_segments: dict[int, list[int]] = {GPU: [], CPU: []}
    finished: list[Segment] = []

    def close(device: int) -> None:
        if mine := open_segments[device]:
            reads = dict.fromkeys(node for atom in mine for node in crossing[atom])
            finished.append(Segment(device, tuple(mine), tuple(reads)))
            open_segments[device] = []

    for atom, device in steps:
        if crossing[atom]:
            close(device)
        open_segments[device].append(atom)
        if read_elsewhere.intersection(atoms.atoms[atom].writes):
            close(device)
    close(CPU)
    close(GPU)
    return finished


def on_the_cpu(captured: Captured) -> Captured:
    """The same graph with its weights and examples on the CPU."""
    constants = {node: value.detach().cpu() for node, value in captured.constants.items()}
    return dataclasses.replace(
        captured, constants=constants, example_inputs=tuple(value.cpu() for value in captured.example_inputs)
    )


def eager_on_the_cpu(module: torch.fx.GraphModule, arguments: Sequence[torch.Tensor]) -> Kernel:
    """`module` operator by operator; what it creates, it creates on the CPU."""

    def moved(value: Any) -> Any:
        return torch.device("cpu") if isinstance(value, torch.device) else value

    for node in module.graph.nodes:
        node.args, node.kwargs = torch.fx.node.map_aggregate((node.args, node.kwargs), moved)
    module.recompile()
    return eager(module, arguments)


class CpuAndGpuRun:
    """A program over the GPU and cores of the CPU. `on_gpu` and `on_cpu` are the same atoms on either."""

    def __init__(self, on_gpu: Program, on_cpu: Program, steps: Steps, cores: Sequence[int]) -> None:
        self.on_gpu = on_gpu
        self.on_cpu = on_cpu
        self.segments = segments_of(on_gpu.atoms, steps)
        captured = on_gpu.atoms.captured
        self.inputs = [value.clone() for value in captured.example_inputs]
        self.on_device = dict(zip(captured.inputs, self.inputs, strict=True))
        outputs = {node for node in captured.outputs if node not in captured.constants}
        self.segment_of = {
            node: number
            for number, segment in enumerate(self.segments)
            for atom in segment.atoms
            for node in on_gpu.atoms.atoms[atom].writes
        }
        self.late = [node for node in outputs if self._made_on_cpu(node)]
        crossing = dict.fromkeys([*(node for segment in self.segments for node in segment.reads), *self.late])
        examples = on_gpu.run(captured.example_inputs)
        self.pinned = {node: torch.empty_like(examples[node], device="cpu").pin_memory() for node in crossing}
        self.on_device.update({n: torch.empty_like(examples[n]) for n in crossing if self._made_on_cpu(n)})
        self.graphs = {
            number: self._captured(segment) for number, segment in enumerate(self.segments) if segment.device == GPU
        }
        self.outputs = on_gpu.outputs(self.on_device)
        self.ended = torch.cuda.Event()
        self.jobs: queue.SimpleQueue[_Call | None] = queue.SimpleQueue()
        worker = threading.Thread(target=_work, args=(weakref.ref(self), self.jobs, cores), daemon=True)
        worker.start()
        weakref.finalize(self, dismiss, [self.jobs], [worker])

    def _made_on_cpu(self, node: Node) -> bool:
        return node in self.segment_of and self.segments[self.segment_of[node]].device == CPU

    def _captured(self, segment: Segment) -> torch.cuda.CUDAGraph:
        graph = torch.cuda.CUDAGraph()
        with capturing(graph, torch.cuda.Stream()):
            for atom in segment.atoms:
                self.on_gpu.launch(atom, self.on_device)
        return graph

    def __call__(self, *inputs: torch.Tensor) -> list[torch.Tensor]:
        """The outputs, on the GPU, once the current stream has reached them; the next call overwrites them."""
        for place, value in zip(self.inputs, inputs, strict=True):
            place.copy_(value, non_blocking=True)
        call = _Call(len(self.segments), self.ended)
        given = [node for node in self.on_gpu.atoms.captured.inputs if node in self.pinned]
        self._send(given)
        call.inputs_sent.record()
        if any(segment.device == CPU for segment in self.segments):
            self.jobs.put(call)
        for number, graph in self.graphs.items():
            self._receive(self.segments[number].reads, call)
            graph.replay()
            self._send([node for node in self.pinned if self.segment_of.get(node) == number])
            call.sent[number].record()
            call.done[number].set()
        self._receive(self.late, call)
        self.ended.record()
        return self.outputs

    def _send(self, nodes: Sequence[Node]) -> None:
        for node in nodes:
            self.pinned[node].copy_(self.on_device[node], non_blocking=True)

    def _receive(self, nodes: Sequence[Node], call: _Call) -> None:
        for number in {self.segment_of[node] for node in nodes}:
            call.done[number].wait()
        if call.error is not None:
            raise call.error
        for node in nodes:
            self.on_device[node].copy_(self.pinned[node], non_blocking=True)

    def run_on_cpu(self, call: _Call) -> None:
        """The CPU's part of a call; the worker's thread runs it."""
        captured = self.on_cpu.atoms.captured
        call.before.synchronize()  # the pinned buffers are free again
        call.inputs_sent.synchronize()
        values = {node: self.pinned[node] for node in captured.inputs if node in self.pinned}
        for number, segment in enumerate(self.segments):
            if segment.device != CPU:
                continue
            for producer in {self.segment_of[node] for node in segment.reads if node in self.segment_of}:
                call.done[producer].wait()
                call.sent[producer].synchronize()
            values.update({node: self.pinned[node] for node in segment.reads})
            for atom in segment.atoms:
                self.on_cpu.launch(atom, values)
            for node in self.pinned:
                if self.segment_of.get(node) == number:
                    self.pinned[node].copy_(values[node])
            call.done[number].set()


class _Call:
    """One call: `done` when a segment has run (on the CPU) or was launched (on the GPU, `sent` then tells its end)."""

    def __init__(self, segments: int, before: torch.cuda.Event) -> None:
        self.before = before
        self.inputs_sent = torch.cuda.Event()
        self.done = [threading.Event() for _ in range(segments)]
        self.sent = [torch.cuda.Event() for _ in range(segments)]
        self.error: BaseException | None = None


def _work(owner: weakref.ref[CpuAndGpuRun], jobs: queue.SimpleQueue[_Call | None], cores: Sequence[int]) -> None:
    pin_this_thread(cores)
    with torch.no_grad():
        while (call := jobs.get()) is not None:
            run = owner()
            if run is None:  # the call was given up
                continue
            try:
                run.run_on_cpu(call)
            except BaseException as error:  # the caller raises it
                call.error = error
                for event in call.done:
                    event.set()
            del run, call


def measure_cpu_and_gpu(on_gpu: Program, gpu: str, cores: str, *, fresh: bool = False) -> tuple[Site, Program]:
    """The GPU and a core set as devices with memories of their own, and the program on the CPU."""
    on_cpu = compile_atoms(Atoms(on_the_cpu(on_gpu.atoms.captured), on_gpu.atoms.atoms), eager_on_the_cpu)
    host = measure_core_sets(on_cpu, [cores], fresh=fresh)
    (cpu_times,) = host.times.values()
    times = {gpu: AtomClock(on_gpu).times_alone(), cores: cpu_times}
    latency, bandwidth = _copies()
    devices, spaces = [gpu, cores], ["GPU memory", "main memory"]
    return Site(devices, devices, times, spaces=spaces, latency=latency, bandwidth=bandwidth), on_cpu


def _copies(small: int = 1 << 12, large: int = 1 << 24) -> tuple[float, float]:
    """Microseconds until a small value is on the other side and known to be there, and bytes per microsecond of large
    ones; of both directions the worse."""
    latencies, bandwidths = [], []
    for to_gpu in (False, True):
        times = {}
        for size in (small, large):
            host = torch.empty(size, dtype=torch.uint8).pin_memory()
            device = torch.empty(size, dtype=torch.uint8, device="cuda")
            target, source = (device, host) if to_gpu else (host, device)
            times[size] = _microseconds(functools.partial(target.copy_, source, non_blocking=True))
        latencies.append(times[small])
        bandwidths.append((large - small) / max(times[large] - times[small], 1e-3))
    return max(latencies), min(bandwidths)


def _microseconds(copy: Callable[[], object], repeats: int = 20) -> float:
    samples = []
    for _ in range(repeats):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        copy()
        torch.cuda.current_stream().synchronize()
        samples.append(1e6 * (time.perf_counter() - begin))
    return statistics.median(samples)


def problem_with_ends(name: str, atoms: Atoms, site: Site) -> dict[str, Any]:
    """The problem of a sample whose inputs come from, and whose outputs go to, the GPU's memory: two ops that take no
    time stand there for them."""
    document = problem_document(name, atoms, site, "latency")
    gpu = site.devices[GPU]
    captured = atoms.captured
    tensors = {entry["name"]: entry for entry in document["tensors"]}
    writer = {node: atom.name for atom in atoms.atoms for node in atom.writes}
    for node in captured.inputs:
        users = [atom.name for atom in atoms.atoms if node in atom.reads]
        if users:
            document["tensors"].append(_tensor(node, INPUTS, users))
    for node in dict.fromkeys(captured.outputs):
        if node.name in tensors:
            tensors[node.name]["to"].append(OUTPUTS)
        elif node in writer:
            document["tensors"].append(_tensor(node, writer[node], [OUTPUTS]))
    for end in ENDS:
        document["ops"].append({"name": end, "model": "model0", "time": [0.0, 0.0], "pin": gpu})
    return document


def _tensor(node: Node, producer: str, users: Sequence[str]) -> dict[str, Any]:
    value: torch.Tensor = node.meta["val"]
    return {"name": node.name, "from": producer, "to": list(users), "bytes": value.numel() * value.element_size()}
