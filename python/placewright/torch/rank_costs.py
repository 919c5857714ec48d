"""What a model costs on the ranks of a job: every rank is a device of a problem about a chain of atoms (chain.py).

Single atoms are timed in processor time, which a busy neighbour does not lengthen (on a GPU: by the clock); then the
whole model is run for a while on all ranks at once, and its wall-clock time, neighbours and all, is shared out in these
proportions. Links are timed with tensors that go from rank to rank and back.
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
from torch.fx import Node

import placewright
from placewright.torch.chain import Chain, StageModule, chain_document, chain_in_training, chain_of

# How many micro-batches a stage holds, by the semantics. Zero-bubble delays the gradients of weights, and holds what
# they need until then: at most the whole step.
_MEMORY_RULES = {"gpipe": "gpipe", "1f1b": "1f1b", "interleaved": "interleaved", "zero-bubble": "gpipe"}

Clock = Callable[[], float]


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
    """The problem of cutting the model into stages for the ranks of this job; called by all of them together. `name`
    is that of this rank's device (default: its host and its number there), `memory` what it has in bytes. Atoms are
    timed on all ranks at once, so that what ranks take from each other, or others from them, is in the times.
    In training a weight counts for itself, its gradient and `optimizer_states` more."""
    chain = chain_of(model, example_inputs)
    where = device_of(model)
    forward, backward = _times_here(chain, model, training, seconds, where)
    device: dict[str, Any] = {"name": name or _device_name()}
    if memory is not None:
        device["memory"] = memory
    everyone: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(everyone, (device, forward, backward))
    names = [entry[0]["name"] for entry in everyone]
    if len(set(names)) < len(names):
        raise ValueError("two ranks have devices of one name: " + ", ".join(sorted(names)))
    latency, bandwidth = _measure_links(where)
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


def goes_through_host(device: torch.device, group: dist.ProcessGroup | None = None) -> bool:
    """Whether tensors of a device must be copied to the host to be sent: gloo sends no others."""
    return device.type != "cpu" and dist.get_backend(group) == "gloo"


def on_host(value: torch.Tensor) -> torch.Tensor:
    """A copy in pinned memory, which a GPU reads and writes at the full speed of its link."""
    host = torch.empty(value.shape, dtype=value.dtype, pin_memory=True)
    return host.copy_(value)


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


def _times_here(
    chain: Chain, model: torch.nn.Module, training: bool, seconds: float, device: torch.device
) -> tuple[list[float], list[float]]:
    """Microseconds of each atom on this rank, forward and backward."""
    of_atoms, on_wall = _clocks(device)
    rows = _atom_times(chain, training, of_atoms)
    own = sum(forward + backward for forward, backward in rows)
    whole = StageModule(chain, model, [], range(len(chain.atoms.atoms)))
    dist.barrier()
    factor = _wall_time(whole, chain.captured.example_inputs, training, seconds, on_wall) / own
    for parameter in model.parameters():
        parameter.grad = None
    return [factor * forward for forward, _ in rows], [factor * backward for _, backward in rows]


def _atom_times(chain: Chain, training: bool, clock: Clock, repeats: int = 9) -> list[tuple[float, float]]:
    """Of each atom alone the time of its forward and its backward pass, in proportion."""
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
    """Microseconds of a pass, over some seconds of passes; the first is not counted."""
    _one_pass(module, values, training, time.perf_counter)
    begin, passes = clock(), 0
    while passes < 3 or clock() - begin < seconds:
        _one_pass(module, values, training, time.perf_counter)
        passes += 1
    return 1e6 * (clock() - begin) / passes


def _measure_links(device: torch.device, repeats: int = 10, size: int = 1 << 20) -> tuple[float, float]:
    """Latency in microseconds and bandwidth in bytes per microsecond between neighbouring ranks: the medians over the
    ring of what small and large tensors take there and back."""
    rank, world = dist.get_rank(), dist.get_world_size()
    found: list[tuple[float, float]] = []
    for left in range(world if world > 2 else world - 1):
        right = (left + 1) % world
        small, large = (_echo(rank, left, right, count, repeats, device) for count in (1, size))
        if rank == left:
            found.append((small, max(1e-6, (large - small) / size)))
    everyone: list[Any] = [None] * world
    dist.all_gather_object(everyone, found)
    pairs = [pair for entry in everyone for pair in entry] or [(0.0, 1e-6)]
    return statistics.median(p[0] for p in pairs), 1 / statistics.median(p[1] for p in pairs)


def _echo(rank: int, left: int, right: int, count: int, repeats: int, device: torch.device) -> float:
    """Microseconds for `count` bytes from a rank to another; 0 on ranks that have no part in it."""
    if rank not in (left, right):
        return 0.0
    _, clock = _clocks(device)
    value = torch.zeros(count, dtype=torch.uint8, device=device)
    samples = []
    for _ in range(repeats + 1):
        begin = clock()
        for sender in (left, right):
            _hand_over(value, sender, right if sender == left else left)
        samples.append(1e6 * (clock() - begin) / 2)
    return statistics.median(samples[1:])


def _hand_over(value: torch.Tensor, sender: int, receiver: int) -> None:
    """As the engine does it: by the backend, where that cannot send the tensor by way of the host."""
    sends = dist.get_rank() == sender
    through_host = goes_through_host(value.device)
    moved = on_host(value) if through_host else value
    if sends:
        dist.send(moved, receiver)
        return
    dist.recv(moved, sender)
    if through_host:
        value.copy_(moved)
