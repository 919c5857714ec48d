"""What a model costs on the ranks of a job: every rank is a device of a problem about a chain of atoms (chain.py).

Single atoms are timed in processor time, which a busy neighbour does not lengthen (on a GPU: by the clock); then the
whole model is run for a while on all ranks at once, and its wall-clock time, neighbours and all, is shared out in these
proportions. What it takes to hand a tensor over is timed in pipelines of two stages that do nothing else, so it has
what the engine itself does for each micro-batch, and the work of the threads that move the tensors.
"""

from __future__ import annotations

import os
import socket
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.pipelining import Schedule1F1B, ScheduleGPipe
from torch.fx import Node

import placewright
from placewright.torch.chain import Chain, StageModule, chain_document, chain_in_training, chain_of
from placewright.torch.engine import engine_stage

# How many micro-batches a stage holds, by the semantics. Zero-bubble delays the gradients of
# weights, and holds what they need until then: at most the whole step.
_MEMORY_RULES = {"gpipe": "gpipe", "1f1b": "1f1b", "interleaved": "interleaved", "zero-bubble": "gpipe"}

Clock = Callable[[], float]

# How hand-overs are timed: tensors of so few and so many elements, of so many bytes each, so many
# in a step.
_ELEMENTS = (64, 1 << 18)
_BYTES = 4
_TENSORS = 8


def measure_ranks(
    model: torch.nn.Module,
    example_inputs: Sequence[Any],
    *,
    micro_batches: int,
    training: bool = False,
    schedule: str = "1f1b",
    name: str | None = None,
    memory: float | None = None,
    max_replicas: int = 1,
    optimizer_states: int = 2,
    seconds: float = 1.0,
) -> placewright.Problem:
    """Measures the model on the ranks of this job; all ranks call it together. The result is the problem of cutting
    the model into stages.

    `name` is that of this rank's device (default: its host and its number there), and `memory` its bytes. Atoms are
    timed on all ranks at once, so the times contain what ranks and other programs take from each other. In training a
    weight counts for itself, its gradient and `optimizer_states` more.
    """
    chain = chain_of(model, example_inputs)
    where = device_of(model)
    rows = _atom_times(chain, training, _clocks(where)[0])
    factor = _slowdown(chain, model, training, seconds, where, sum(map(sum, rows)))
    forward, backward = ([1e6 * factor * time for time in column] for column in zip(*rows, strict=True))
    device: dict[str, Any] = {"name": name or _device_name()}
    if memory is not None:
        device["memory"] = memory
    everyone: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(everyone, (device, forward, backward))
    names = [entry[0]["name"] for entry in everyone]
    if len(set(names)) < len(names):
        raise ValueError("two ranks have devices of one name: " + ", ".join(sorted(names)))
    latency, bandwidth = _hand_over(where, training, factor if where.type == "cpu" else 1.0)  # a GPU's is on the wall
    rules: dict[str, Any] = {
        "training": "phased" if schedule == "gpipe" else "interleaved",
        "memory": "resident" if memory is None else "peak",
        "schedule": _MEMORY_RULES[schedule],
        "micro_batches": micro_batches,
    }
    if max_replicas > 1:
        rules.update(max_replicas=max_replicas, replica_bandwidth=bandwidth)
    document = chain_document(
        type(model).__name__,
        chain,
        [{**entry[0], "kind": entry[0]["name"]} for entry in everyone],
        {"kind": "links", "all": {"latency": latency, "bandwidth": bandwidth}},
        [entry[1] for entry in everyone],
        rules=rules,
    )
    if training:
        document = chain_in_training(document, chain, [entry[2] for entry in everyone], optimizer_states)
    return placewright.Problem.from_document(document)


def device_of(model: torch.nn.Module) -> torch.device:
    """Where the weights of a model lie."""
    return next((parameter.device for parameter in model.parameters()), torch.device("cpu"))


def _device_name() -> str:
    return f"{socket.gethostname()}/{os.environ.get('LOCAL_RANK', dist.get_rank())}"


def _clocks(device: torch.device) -> tuple[Clock, Clock]:
    """The clock for single atoms and the clock on the wall."""
    if device.type == "cpu":
        return time.process_time, time.perf_counter

    def synchronized() -> float:
        torch.cuda.synchronize(device)
        return time.perf_counter()

    return synchronized, synchronized


def _slowdown(
    chain: Chain, model: torch.nn.Module, training: bool, seconds: float, device: torch.device, own: float
) -> float:
    """By how much longer the model takes, while all ranks run it, than its atoms by their clock, `own` together."""
    whole = StageModule(chain, model, [], range(len(chain.atoms.atoms)))
    dist.barrier()
    wall = _wall_time(whole, chain.captured.example_inputs, training, seconds, _clocks(device)[1])
    for parameter in model.parameters():
        parameter.grad = None
    return wall / own


def _atom_times(chain: Chain, training: bool, clock: Clock, repeats: int = 9) -> list[tuple[float, float]]:
    """Seconds of each atom alone, of its forward and its backward pass."""
    values: dict[Node, torch.Tensor] = dict(chain.captured.constants)
    values.update(zip(chain.captured.inputs, chain.captured.example_inputs, strict=True))
    rows = []
    for atom in chain.atoms.atoms:
        module = atom.graph_module()
        reads = [values[node] for node in atom.reads]
        samples = []
        for _ in range(repeats):
            begin = clock()
            middle = _one_pass(module, reads, training, clock)
            samples.append((middle - begin, clock() - middle))
        forward, backward = (statistics.median(column) for column in zip(*samples, strict=True))
        rows.append((forward, backward))
        with torch.no_grad():
            results = module(*reads)
        values.update((node, _leaf(value, training)) for node, value in zip(atom.writes, results, strict=True))
    return rows


def _leaf(value: torch.Tensor, training: bool) -> torch.Tensor:
    return value.detach().requires_grad_(training and value.is_floating_point())


def _one_pass(module: torch.nn.Module, values: Sequence[torch.Tensor], training: bool, clock: Clock) -> float:
    """Forward, and in training backward; returns the time between the two. Gradients of weights are added up, as over
    the micro-batches of a step."""
    if not training:
        with torch.no_grad():
            module(*values)
        return clock()
    for value in values:
        if not isinstance(value, torch.nn.Parameter):
            value.grad = None
    with torch.enable_grad():
        outputs = [value for value in module(*values) if value.requires_grad]
        middle = clock()
        torch.autograd.backward(outputs, [torch.ones_like(value) for value in outputs])
    return middle


def _wall_time(
    module: torch.nn.Module, values: Sequence[torch.Tensor], training: bool, seconds: float, clock: Clock
) -> float:
    """Seconds of a pass: the median over parts of the time, so that what disturbs some of them does not count; in a
    part it is the mean, since a busy neighbour on the core disturbs one pass and not the next."""
    _one_pass(module, values, training, time.perf_counter)
    means: list[float] = []
    end = clock() + seconds
    while len(means) < 3 or clock() < end:
        begin, passes = clock(), 0
        while passes == 0 or clock() - begin < seconds / 20:
            _one_pass(module, values, training, time.perf_counter)
            passes += 1
        means.append((clock() - begin) / passes)
    return statistics.median(means)


def _hand_over(device: torch.device, training: bool, factor: float) -> tuple[float, float]:
    """Latency in microseconds and bandwidth in bytes per microsecond of handing a tensor from a stage to the next: the
    medians over the ranks, each as a neighbour of the next one. A rank is charged the time that it is busy with it, not
    the time until the tensor is there, in which it computes."""
    rank, world = dist.get_rank(), dist.get_world_size()
    found: list[tuple[float, float]] = []
    for left in range(world if world > 2 else world - 1):
        pair = sorted((left, (left + 1) % world))
        group = dist.new_group(pair)
        if rank in pair:
            small, large = (factor * _busy_time(pair.index(rank), group, device, training, n) for n in _ELEMENTS)
            found.append((small, max(1e-6, (large - small) / (_BYTES * (_ELEMENTS[1] - _ELEMENTS[0])))))
    everyone: list[Any] = [None] * world
    dist.all_gather_object(everyone, found)
    pairs = [pair for entry in everyone for pair in entry] or [(0.0, 1e-6)]
    return statistics.median(p[0] for p in pairs), 1 / statistics.median(p[1] for p in pairs)


class _Scaling(torch.nn.Module):
    """A stage with as little to do as a stage can have, so that the engine's work and that of moving tensors remain."""

    def __init__(self, device: torch.device) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(1, device=device))

    def forward(self, value: torch.Tensor) -> tuple[torch.Tensor]:
        """As large as what it is given."""
        return (value * self.weight,)


def _busy_time(
    number: int, group: dist.ProcessGroup, device: torch.device, training: bool, elements: int, repeats: int = 3
) -> float:
    """Microseconds that stage `number` of a pipeline of two is busy with each tensor that is handed over."""
    stage = engine_stage(_Scaling(device), number, [0, 1], device, group)
    engine: Any
    if training:
        engine = Schedule1F1B(stage, _TENSORS, loss_fn=lambda outputs, _: outputs[0].mean())
    else:
        engine = ScheduleGPipe(stage, _TENSORS)
    batch = torch.zeros(_TENSORS, elements, device=device)
    clock, _ = _clocks(device)
    samples = []
    for _ in range(repeats + 1):  # in the first the engine learns the shapes
        begin = clock()
        with torch.set_grad_enabled(training):
            engine.step(*([batch] if number == 0 else []), target=batch if training and number == 1 else None)
        samples.append(1e6 * (clock() - begin) / _TENSORS)
    handed = 2 if training else 1  # gradients go back
    return statistics.median(samples[1:]) / handed
