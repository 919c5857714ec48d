"""Pipelines with several samples in flight: `compile_pipeline`.

    pipeline = placewright.torch.compile_pipeline(model, (x,), devices=["cpu:0", "cpu:1"])
    for y in pipeline.map(samples):
        ...

Every device has a thread and runs one stage, a set of atoms, for sample after sample; the planner chooses the stages
for the shortest time of the busiest device. Devices are core sets, or partitions of a GPU ('cuda:0/64').

A sample travels in a slot, which holds its values. On a GPU a slot has memory of its own, and every stage a CUDA graph
for each slot: stages hand values over without copies, and events make a stage wait for the one before it.
"""

from __future__ import annotations

import dataclasses
import itertools
import queue
import threading
import time
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import torch
from torch.fx import Node
from torch.utils import _pytree as pytree

import placewright
from placewright.torch.atoms import Atoms, split_into_atoms
from placewright.torch.capture import capture
from placewright.torch.core_sets import cores_of, dismiss, measure_core_sets, pin_this_thread
from placewright.torch.documents import Site, problem_document
from placewright.torch.kernels import Compiler, Program, compile_atoms, inductor
from placewright.torch.partitions import Partition, multiprocessors_of, partition_gpu
from placewright.torch.placed import WrongOutputs, outputs_equal
from placewright.torch.streams import capturing
from placewright.torch.timing import Spread


class Slot:
    """A sample on its way: its values so far, and what went wrong."""

    def __init__(self) -> None:
        self.values: dict[Node, torch.Tensor] = {}
        self.error: BaseException | None = None


class Stage(Protocol):
    """What a device does with a sample."""

    def enter(self) -> None:
        """Called once, in the thread of the stage."""

    def run(self, slot: Slot) -> None:
        """Computes the values of the stage, or at least sees to it that they will be there for the next stage."""


class CoreStage:
    """Atoms on a core set."""

    def __init__(self, program: Program, atoms: Sequence[int], cores: Sequence[int]) -> None:
        self.program = program
        self.atoms = atoms
        self.cores = cores

    def enter(self) -> None:
        """Pins the thread to the cores."""
        pin_this_thread(self.cores)

    def run(self, slot: Slot) -> None:
        """Launches the atoms one after the other."""
        for atom in self.atoms:
            self.program.launch(atom, slot.values)


class GraphSlot(Slot):
    """A slot with memory of its own on the GPU; `ready` is when its values are there."""

    def __init__(self, program: Program) -> None:
        super().__init__()
        captured = program.atoms.captured
        self.inputs = [value.clone() for value in captured.example_inputs]
        self.values = dict(zip(captured.inputs, self.inputs, strict=True))
        self.ready = torch.cuda.Event()


class PartitionStage:
    """Atoms on a partition of the GPU: one CUDA graph for each slot. Stages are made in the order of the pipeline,
    since a graph reads where the graphs of the stages before it write."""

    def __init__(
        self, program: Program, atoms: Sequence[int], partition: Partition, slots: Sequence[GraphSlot]
    ) -> None:
        self.program = program  # kernels own constants that the graphs read
        self.partition = partition
        self.graphs = {slot: capture_atoms(program, atoms, partition, slot.values) for slot in slots}

    def enter(self) -> None:
        """Nothing: graphs remember where they were captured."""

    def run(self, slot: Slot) -> None:
        """Launches the graph of the slot behind the stage before; does not wait for its end."""
        assert isinstance(slot, GraphSlot)
        stream = self.partition.stream
        stream.wait_event(slot.ready)
        with torch.cuda.stream(stream):
            self.graphs[slot].replay()
        slot.ready = torch.cuda.Event()
        slot.ready.record(stream)


def capture_atoms(
    program: Program, atoms: Sequence[int], partition: Partition, values: dict[Node, torch.Tensor], repeats: int = 1
) -> torch.cuda.CUDAGraph:
    """Atoms on a partition as a CUDA graph; `values` receives what they compute."""
    graph = torch.cuda.CUDAGraph()
    with capturing(graph, partition.stream):
        for _ in range(repeats):
            for atom in atoms:
                program.launch(atom, values)
    return graph


class StageThreads:
    """Stages as threads, joined by queues: slots enter at the first and leave at the last, in order."""

    def __init__(self, stages: Sequence[Stage]) -> None:
        self.queues: list[queue.SimpleQueue[Slot | None]] = [queue.SimpleQueue() for _ in range(len(stages) + 1)]
        threads = []
        for position, stage in enumerate(stages):
            arguments = (stage, self.queues[position], self.queues[position + 1])
            threads.append(threading.Thread(target=_work, args=arguments, daemon=True))
            threads[-1].start()
        weakref.finalize(self, dismiss, self.queues[:1], threads)  # each stage tells the next

    def put(self, slot: Slot) -> None:
        """Sends a slot on its way."""
        self.queues[0].put(slot)

    def get(self) -> Slot:
        """The next slot that has passed all stages. Raises what a stage raised."""
        slot = self.queues[-1].get()
        assert slot is not None
        if slot.error is not None:
            raise slot.error
        return slot


def _work(stage: Stage, before: queue.SimpleQueue[Slot | None], after: queue.SimpleQueue[Slot | None]) -> None:
    stage.enter()
    with torch.no_grad():
        while (slot := before.get()) is not None:
            if slot.error is None:
                try:
                    stage.run(slot)
                except BaseException as error:  # the caller raises it
                    slot.error = error
            after.put(slot)
            del slot
    after.put(None)


class PipelineRun:
    """Stages at work on sample after sample, with at most `in_flight` samples on their way."""

    def __init__(self, program: Program, stages: Sequence[tuple[str, Sequence[int]]], site: PipelineSite) -> None:
        self.program = program
        in_flight = len(stages) + 2
        self.slots: list[Slot]
        works: list[Stage]
        if site.partitions:
            slots = [GraphSlot(program) for _ in range(in_flight)]
            works = [PartitionStage(program, atoms, site.partitions[name], slots) for name, atoms in stages]
            self.slots = list(slots)
        else:
            works = [CoreStage(program, atoms, cores_of(name)) for name, atoms in stages]
            self.slots = [Slot() for _ in range(in_flight)]
        self.threads = StageThreads(works)

    def map(self, samples: Iterable[Sequence[torch.Tensor]]) -> Iterator[list[torch.Tensor]]:
        """The flat outputs for flat inputs, in order. Inputs are taken as slots become free."""
        free = list(self.slots)
        in_flight = 0
        waiting = iter(samples)
        more = True
        try:
            while more or in_flight:
                while more and free:
                    sample = next(waiting, None)
                    if sample is None:
                        more = False
                    else:
                        self._fill(free[-1], sample)
                        self.threads.put(free.pop())
                        in_flight += 1
                if in_flight:
                    in_flight -= 1
                    slot = self.threads.get()
                    outputs = self._take(slot)
                    free.append(slot)
                    yield outputs
        finally:
            for _ in range(in_flight):  # after an error, or where the caller stopped early
                self.threads.queues[-1].get()

    def _fill(self, slot: Slot, sample: Sequence[torch.Tensor]) -> None:
        slot.error = None
        if isinstance(slot, GraphSlot):
            for place, value in zip(slot.inputs, sample, strict=True):
                place.copy_(value)
            slot.ready = torch.cuda.Event()
            slot.ready.record()
        else:
            slot.values = dict(zip(self.program.atoms.captured.inputs, sample, strict=True))

    def _take(self, slot: Slot) -> list[torch.Tensor]:
        outputs = self.program.outputs(slot.values)
        if isinstance(slot, GraphSlot):
            slot.ready.synchronize()
            return [value.clone() for value in outputs]
        return outputs


@dataclasses.dataclass(frozen=True)
class PipelineSite:
    """The devices of a pipeline, measured: the time of each atom on each, and the partitions behind their names."""

    site: Site
    partitions: Mapping[str, Partition]


def measure_devices(program: Program, devices: Sequence[str]) -> PipelineSite:
    """The time of every atom on every device: core sets, or partitions of the GPU."""
    if not program.atoms.captured.example_inputs[0].is_cuda:
        return PipelineSite(measure_core_sets(program, devices), {})
    partitions = dict(zip(devices, partition_gpu([multiprocessors_of(device) for device in devices]), strict=True))
    alone = [_times_on(program, partition) for partition in partitions.values()]
    whole = _whole_model_on_all(program, list(partitions.values()), [sum(times) for times in alone])
    times = {
        name: [time * total / sum(column) for time in column]
        for name, column, total in zip(devices, alone, whole, strict=True)
    }
    return PipelineSite(Site(devices, devices, times), partitions)


def _times_on(program: Program, partition: Partition, repeats: int = 8) -> list[float]:
    """Microseconds for each atom alone on the partition, again and again; equal atoms are measured once."""
    values = program.run(program.atoms.captured.example_inputs)
    known: dict[str, float] = {}
    for atom, signature in enumerate(program.signatures):
        if signature not in known:
            graph = capture_atoms(program, [atom], partition, dict(values), repeats)
            known[signature] = min(_replays([graph], [partition], [2])[0] for _ in range(3)) / repeats
    return [known[signature] for signature in program.signatures]


def _whole_model_on_all(program: Program, partitions: Sequence[Partition], expected: Sequence[float]) -> list[float]:
    """Microseconds for the whole model on each partition while all are busy: they share the memory, and weights come
    from there, which atoms measured again and again do not show."""
    everything = [atom.index for atom in program.atoms.atoms]
    graphs = []
    for partition in partitions:
        values = dict(zip(program.atoms.captured.inputs, program.atoms.captured.example_inputs, strict=True))
        graphs.append(capture_atoms(program, everything, partition, values))
    counts = [max(1, round(2 * max(expected) / time)) for time in expected]
    _replays(graphs, partitions, counts)
    samples = [_replays(graphs, partitions, counts) for _ in range(3)]
    return [sorted(column)[1] for column in zip(*samples, strict=True)]


def _replays(
    graphs: Sequence[torch.cuda.CUDAGraph], partitions: Sequence[Partition], counts: Sequence[int]
) -> list[float]:
    """Microseconds for one replay of each graph, all of them at once, each so many times."""
    torch.cuda.synchronize()
    events = []
    for graph, partition, count in zip(graphs, partitions, counts, strict=True):
        with torch.cuda.stream(partition.stream):
            graph.replay()  # keeps the partition busy while the next launches are prepared
            start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            start.record()
            for _ in range(count):
                graph.replay()
            end.record()
        events.append((start, end))
    torch.cuda.synchronize()
    return [1e3 * start.elapsed_time(end) / count for (start, end), count in zip(events, counts, strict=True)]


def stages_of(atoms: Atoms, device_of: Sequence[str]) -> list[tuple[str, list[int]]]:
    """Atoms by device, in an order in which every stage reads only what earlier ones compute. Raises ValueError where
    there is none: two devices that wait for each other."""
    members: dict[str, list[int]] = {}
    for atom, device in enumerate(device_of):
        members.setdefault(device, []).append(atom)
    stages = []
    done: set[int] = set()
    while members:
        ready = [d for d, mine in members.items() if all(set(atoms.after[a]) <= done | set(mine) for a in mine)]
        if not ready:
            raise ValueError(f"the devices {', '.join(sorted(members))} wait for each other")
        stages.append((ready[0], members.pop(ready[0])))
        done.update(stages[-1][1])
    return stages


class Pipeline:
    """A model as a pipeline. `plan` is the plan of its stages. `times` are the milliseconds between two finished
    samples of each variant, and `chosen` is the name of the best one."""

    def __init__(self, model: torch.nn.Module, program: Program, site: PipelineSite, plan: placewright.Plan) -> None:
        self.model = model
        self.program = program
        self.site = site
        self.plan = plan
        self.predicted = plan.value / 1e3
        self.variants: dict[str, PipelineRun] = {}
        self.times: dict[str, Spread] = {}
        self.chosen = ""
        self.note = ""

    def map(self, samples: Iterable[Sequence[Any]]) -> Iterator[Any]:
        """What the model returns for each tuple of arguments, in order, while later samples are on their way."""
        captured = self.program.atoms.captured
        flat = (pytree.tree_leaves((tuple(sample), {})) for sample in samples)
        for outputs in self.variants[self.chosen].map(flat):
            yield pytree.tree_unflatten(outputs, captured.out_spec)

    def add(self, name: str, device_of: Sequence[str]) -> None:
        """Another variant: the device of each atom."""
        stages = stages_of(self.program.atoms, device_of)
        self.variants[name] = PipelineRun(self.program, stages, self.site)

    def measure(self, blocks: int = 8, length: int = 8) -> dict[str, Spread]:
        """Milliseconds between two finished samples of each variant, in blocks of samples, after a warm-up."""
        for name, run in self.variants.items():
            inputs = self.program.atoms.captured.example_inputs
            stamps = [time.perf_counter() for _ in run.map([inputs] * (length * (blocks + 2)))]
            marks = stamps[length::length]  # the first block fills the pipeline; in the last one it runs empty
            periods = [1e3 * (b - a) / length for a, b in itertools.pairwise(marks)]
            self.times[name] = Spread.of(periods)
        return {**self.times, "predicted": Spread(self.predicted, self.predicted, self.predicted)}


def compile_pipeline(
    model: torch.nn.Module,
    example_inputs: Sequence[Any],
    *,
    devices: Sequence[str],
    compiler: Compiler | None = None,
    time_limit: float = 5.0,
) -> Pipeline:
    """Makes a model a pipeline over devices: core sets ('cpu:0', 'cpu:1-3') for inputs on the CPU, partitions of the
    GPU ('cuda:0/64', ...) for inputs there. If one device alone gives more samples, only that device is used."""
    captured = capture(model, example_inputs)
    program = compile_atoms(split_into_atoms(captured), compiler or inductor)
    site = measure_devices(program, devices)
    document = problem_document(type(model).__name__, program.atoms, site.site, "throughput")
    problem = placewright.Problem.from_document(document)
    plan = placewright.plan(problem, time_limit=time_limit)
    pipeline = Pipeline(model, program, site, plan)
    pipeline.add("planned", [devices[device] for device in plan.devices])
    kinds = dict(zip(devices, site.site.kind_of, strict=True))
    fastest = min(devices, key=lambda device: sum(site.site.times[kinds[device]]))
    pipeline.add("one device", [fastest] * len(program.atoms.atoms))
    _check_outputs(pipeline)
    times = pipeline.measure()
    pipeline.chosen = min(pipeline.variants, key=lambda name: times[name].median)
    pipeline.note = ", ".join(f"{name}: {times[name].median:.3f} ms between samples" for name in pipeline.variants)
    return pipeline


def _check_outputs(pipeline: Pipeline) -> None:
    examples = pipeline.program.atoms.captured.example_inputs
    with torch.no_grad():
        args, kwargs = pytree.tree_unflatten(list(examples), pipeline.program.atoms.captured.in_spec)
        wanted = pytree.tree_leaves(pipeline.model(*args, **kwargs))
    for name, run in pipeline.variants.items():
        for outputs in run.map([examples] * 3):
            if not all(outputs_equal(got, expected) for got, expected in zip(outputs, wanted, strict=True)):
                raise WrongOutputs(f"the pipeline '{name}' computes something else than the model")
