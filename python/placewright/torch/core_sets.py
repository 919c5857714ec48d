"""Atoms on sets of CPU cores: one worker thread for each set, pinned to it.

A worker runs its atoms in order; before an atom it waits for the producers that other workers run. PyTorch's operators
release the interpreter lock while they compute, so workers compute side by side. `torch.set_num_threads` counts for the
calling thread, so every worker has as many threads as its set has cores, and those inherit its cores.
"""

from __future__ import annotations

import os
import queue
import statistics
import threading
import time
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch.fx import Node

from placewright.torch import profiles
from placewright.torch.documents import Site
from placewright.torch.kernels import Program
from placewright.torch.schedules import Steps
from placewright.torch.streams import waits_of

if TYPE_CHECKING:
    import placewright

# Microseconds from the end of an atom in one worker to the start of one that waits for it in
# another.
HANDOVER = 30.0


def cores_of(device: str) -> tuple[int, ...]:
    """The cores of a device such as 'cpu:0', 'cpu:0-3' or 'cpu:0,2'. Raises ValueError for anything else."""
    kind, _, text = device.partition(":")
    cores: list[int] = []
    try:
        if kind != "cpu":
            raise ValueError
        for part in text.split(","):
            first, _, last = part.partition("-")
            cores.extend(range(int(first), int(last or first) + 1))
    except ValueError:
        raise ValueError(f"'{device}' names no cores; expected cpu:0, cpu:0-3 or cpu:0,2") from None
    missing = set(cores) - os.sched_getaffinity(0)
    if missing or not cores or len(set(cores)) != len(cores):
        raise ValueError(f"'{device}' has cores that this process cannot use, or one twice")
    return tuple(cores)


def pin_this_thread(cores: Sequence[int]) -> None:
    """Keeps the calling thread, and those that it will start, on the cores, with as many threads for an operator."""
    os.sched_setaffinity(0, cores)
    torch.set_num_threads(len(cores))


def union_of(core_sets: Sequence[Sequence[int]]) -> list[int]:
    """All cores of some sets, each once."""
    return sorted({core for cores in core_sets for core in cores})


class _Job:
    """One call: the values so far, when each atom ran, and an event for each atom that another worker waits for."""

    def __init__(self, values: dict[Node, torch.Tensor], awaited: set[int], workers: int) -> None:
        self.values = values
        self.begin = time.perf_counter()
        self.spans: dict[int, tuple[float, float]] = {}
        self.events = {atom: threading.Event() for atom in awaited}
        self.left = workers
        self.lock = threading.Lock()
        self.done = threading.Event()
        self.error: BaseException | None = None

    def fail(self, error: BaseException) -> None:
        self.error = self.error or error
        for event in self.events.values():
            event.set()

    def leave(self) -> None:
        with self.lock:
            self.left -= 1
            if self.left == 0:
                self.done.set()


class CoreSetRun:
    """A program whose atoms run on core sets; `steps` name the position of the set in `core_sets` for each atom.

    `spans` are the start and the end of each atom in the last call, in microseconds from the call."""

    def __init__(self, program: Program, steps: Steps, core_sets: Sequence[Sequence[int]]) -> None:
        self.program = program
        self.spans: dict[int, tuple[float, float]] = {}
        waits = dict(zip((atom for atom, _ in steps), waits_of(steps, program.atoms.after), strict=True))
        self.awaited = {producer for producers in waits.values() for producer in producers}
        self.jobs: list[queue.SimpleQueue[_Job | None]] = []
        threads = []
        for position, cores in enumerate(core_sets):
            mine = [atom for atom, worker in steps if worker == position]
            if mine:
                jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
                self.jobs.append(jobs)
                arguments = (program, mine, waits, cores, jobs)
                threads.append(threading.Thread(target=_work, args=arguments, daemon=True))
                threads[-1].start()
        weakref.finalize(self, dismiss, self.jobs, threads)

    def __call__(self, *inputs: torch.Tensor) -> list[torch.Tensor]:
        """The outputs for these inputs."""
        values = dict(zip(self.program.atoms.captured.inputs, inputs, strict=True))
        job = _Job(values, self.awaited, len(self.jobs))
        for jobs in self.jobs:
            jobs.put(job)
        job.done.wait()
        if job.error is not None:
            raise job.error
        self.spans = {a: (1e6 * (s - job.begin), 1e6 * (e - job.begin)) for a, (s, e) in job.spans.items()}
        return self.program.outputs(job.values)


def dismiss(queues: Sequence[queue.SimpleQueue[Any]], threads: Sequence[threading.Thread]) -> None:
    """Ends threads that end when a queue gives them None, and waits for them: at the end of the process a thread that
    is still on its way out of torch would be killed there, which aborts the process."""
    for each in queues:
        each.put(None)
    for thread in threads:
        if thread is not threading.current_thread():
            thread.join()


def _work(
    program: Program,
    atoms: Sequence[int],
    waits: dict[int, list[int]],
    cores: Sequence[int],
    jobs: queue.SimpleQueue[_Job | None],
) -> None:
    pin_this_thread(cores)
    with torch.no_grad():
        while (job := jobs.get()) is not None:
            try:
                for atom in atoms:
                    for producer in waits[atom]:
                        job.events[producer].wait()
                    if job.error is not None:
                        break
                    start = time.perf_counter()
                    program.launch(atom, job.values)
                    job.spans[atom] = (start, time.perf_counter())
                    if atom in job.events:
                        job.events[atom].set()
            except BaseException as error:  # the caller raises it
                job.fail(error)
            job.leave()
            del job


def measure_core_sets(program: Program, devices: Sequence[str], *, fresh: bool = False) -> Site:
    """The devices with the time of every atom alone on them; sets of equally many cores are one kind. Sets may have
    cores in common. Times from before are taken from the cache, unless they are to be `fresh`."""
    core_sets = [cores_of(device) for device in devices]
    kinds = [f"{len(cores)} cores" for cores in core_sets]
    sizes = sorted({len(cores) for cores in core_sets})

    def measure() -> dict[str, Any]:
        return {kind: _times_on(program, core_sets[kinds.index(kind)]) for kind in dict.fromkeys(kinds)}

    times = profiles.cached(program, profiles.cores(sizes), {}, measure, fresh)
    uses = [[f"core {core}" for core in cores] for cores in core_sets]
    return Site(devices, kinds, times, HANDOVER, uses)


def _times_on(program: Program, cores: Sequence[int], repeats: int = 5) -> list[float]:
    """Microseconds for each atom alone on the cores."""
    run = CoreSetRun(program, tuple((atom.index, 0) for atom in program.atoms.atoms), [cores])
    samples: list[list[float]] = [[] for _ in program.atoms.atoms]
    for call in range(repeats + 1):
        run(*program.atoms.captured.example_inputs)
        for atom, (start, end) in run.spans.items():
            if call > 0:
                samples[atom].append(end - start)
    return [statistics.median(values) for values in samples]


def planned_times(plan: placewright.Plan) -> list[float]:
    """The time of each atom on the device that the plan gives it."""
    times: list[float] = plan.problem.times[range(len(plan.devices)), plan.devices].tolist()
    return times
