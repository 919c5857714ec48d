"""A `device_map` for Hugging Face's accelerate: which module's weights lie on which device.

    found = placewright.device_map(model, {"cuda:0": {"kind": "A100-40GB"}, "cuda:1": {"kind": "T4"},
                                           "cpu": {"memory": 64e9}, "disk": {}}, no_split=["LlamaDecoderLayer"])
    model = accelerate.dispatch_model(model, found, offload_dir="offload")

accelerate's own choice fills one device after the other and knows neither speeds nor links. Here every module that may
not be split is an op, called by its path, and the planner minimises the time of one forward pass. Modules on `cpu` and
`disk` run on the first GPU, which fetches their weights for every pass; without a GPU modules on `disk` run on the CPU.
The model may be on the device `meta`: weights are not looked at, only their shapes.

Estimates: a module takes two flops for each weight of a matrix and token; weights and what it returns are moved once.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from torch import nn

import placewright
from placewright import catalogue

# Bytes per second of a disk that states none.
_DISK = 2e9
# What a CPU that names no kind is taken for.
_CPU = "Xeon-Sapphire-Rapids-32"
_OFFLOADED = ("cpu", "disk")


class DeviceMap(dict[str, str]):
    """Module path to device, as accelerate takes it; `plan` is where it comes from."""

    def __init__(self, entries: Mapping[str, str], plan: placewright.Plan) -> None:
        super().__init__(entries)
        self.plan = plan


@dataclasses.dataclass(frozen=True)
class Unit:
    """A module that is placed as a whole: its bytes, those of its matrices' weights as numbers, and how wide what it
    returns is."""

    path: str
    bytes: float
    matrix_weights: float
    width: int
    gathers: bool


def device_map(
    model: nn.Module,
    devices: Mapping[str, Mapping[str, Any]],
    *,
    no_split: Sequence[str] = (),
    tokens: int = 512,
    bits: float | None = None,
    activations: float = 0.0,
    kv_cache: float = 0.0,
    link: str = "PCIe-4.0-x16",
    time_limit: float = 5.0,
) -> DeviceMap:
    """Places the modules of a model on `devices`, named as accelerate names them: 'cuda:0', ..., 'cpu', 'disk'. A
    device has a `kind` of the catalogue, `memory` in bytes (default: that of its kind; disk: without limit), the disk a
    `bandwidth`. Modules of the classes `no_split` stay whole, as do modules with weights of their own; modules that
    share weights stay together. `tokens` is the length of a pass; `bits` the size of a linear layer's weight where it
    will be quantised; `activations` the bytes to leave free on every device that computes; `kv_cache` those that each
    module of `no_split` needs for keys and values. Raises ValueError where the model does not fit."""
    problem = placewright.Problem.from_document(
        _document(model, devices, no_split, tokens, bits, activations, kv_cache, link)
    )
    plan = placewright.plan(problem, time_limit=time_limit)
    if plan.status not in ("optimal", "feasible"):
        raise ValueError(f"the model does not fit on these devices: {plan.reason}")
    return DeviceMap(plan.placement, plan)


def _document(
    model: nn.Module,
    devices: Mapping[str, Mapping[str, Any]],
    no_split: Sequence[str],
    tokens: int,
    bits: float | None,
    activations: float,
    kv_cache: float,
    link: str,
) -> dict[str, Any]:
    """What the problem file behind `device_map` holds; times in milliseconds."""
    units = units_of(model, no_split, bits)
    element = next((p.element_size() for p in model.parameters()), 4)
    kept = {path: kv_cache for path, module in model.named_modules() if type(module).__name__ in no_split}
    main = next((name for name in devices if name not in _OFFLOADED), "cpu")
    wire = catalogue.links()[link]
    tied = _tied(model, units)
    total = sum(unit.bytes for unit in units) - sum(size * (len(owners) - 1) for size, owners in tied)
    room = _room(total, max((unit.bytes for unit in units), default=0.0), devices, main, activations)
    elsewhere = {unit.path: sum(size for size, owners in tied if unit.path in owners) for unit in units}
    return {
        "placewright": "problem",
        "version": 1,
        "name": type(model).__name__,
        "unit": "ms",
        "objective": "latency",
        "kinds": [{"name": name} for name in devices],
        "devices": [{"name": name, "kind": name, **_memory(room[name])} for name in devices],
        "interconnect": {"kind": "links", "links": _links(list(devices), main, wire)},
        "ops": [
            {
                "name": unit.path,
                "memory": unit.bytes - elsewhere[unit.path] + kept.get(unit.path, 0.0),
                "time": [1e3 * _seconds(unit, name, devices, main, wire, tokens, element) for name in devices],
            }
            for unit in units
        ],
        "tensors": [
            {"from": before.path, "to": [after.path], "bytes": tokens * before.width * element}
            for before, after in itertools.pairwise(units)
        ],
        "colocate": list(dict.fromkeys(owners for _, owners in tied)),
        "weights": [{"bytes": size, "ops": owners} for size, owners in tied],
        "origin": ["op times: estimated from weights and tokens, not measured"],
    }


def units_of(model: nn.Module, no_split: Sequence[str], bits: float | None = None) -> list[Unit]:
    """The modules that are placed as a whole, in the order in which the model lists them."""
    units: list[Unit] = []
    uses = Counter(id(parameter) for _, parameter in model.named_parameters(remove_duplicate=False))
    tied = {parameter for parameter, count in uses.items() if count > 1}

    def visit(path: str, module: nn.Module) -> None:
        own = [*module.parameters(recurse=False), *module.buffers(recurse=False)]
        if own or type(module).__name__ in no_split or (not path and not list(module.children())):
            units.append(_unit(path, module, bits, tied))
            return
        for name, child in module.named_children():
            visit(f"{path}.{name}" if path else name, child)

    visit("", model)
    return [unit for unit in units if unit.bytes > 0]


def _unit(path: str, module: nn.Module, bits: float | None, tied: set[int]) -> Unit:
    """The unit at a path; weights in `tied` are not quantised, since not all of their readers could use them so."""
    size, matrices, width = 0.0, 0.0, 0
    counted: set[int] = set()
    for part in module.modules():
        tensors = [*part.parameters(recurse=False), *part.buffers(recurse=False)]
        for tensor in tensors:
            quantised = bits is not None and isinstance(part, nn.Linear) and tensor.dim() > 1 and id(tensor) not in tied
            if id(tensor) not in counted:
                size += tensor.numel() * (bits / 8 if quantised and bits else tensor.element_size())
            counted.add(id(tensor))
            if tensor.dim() > 1 and not isinstance(part, nn.Embedding):
                matrices += tensor.numel()
        if isinstance(part, nn.Embedding):
            width = part.embedding_dim
        elif tensors:
            width = tensors[0].shape[0] if tensors[0].dim() else width
    return Unit(path, size, matrices, width, isinstance(module, nn.Embedding))


def _tied(model: nn.Module, units: Sequence[Unit]) -> list[tuple[float, tuple[str, ...]]]:
    """The weights that several units share: bytes, and the paths of these units."""
    owners: dict[nn.Parameter, list[str]] = {}
    for unit in units:
        for parameter in model.get_submodule(unit.path).parameters():
            owners.setdefault(parameter, []).append(unit.path)
    return [(p.numel() * p.element_size(), tuple(paths)) for p, paths in owners.items() if len(paths) > 1]


def _room(
    total: float, largest: float, devices: Mapping[str, Mapping[str, Any]], main: str, activations: float
) -> dict[str, float | None]:
    """Bytes for weights on each device; None: without limit. Where not all modules, `total` bytes, fit on the GPUs, the
    one that fetches the rest keeps room for the largest module."""
    found: dict[str, float | None] = {}
    for name, stated in devices.items():
        memory = stated.get("memory", None if name == "disk" else _kind(name, stated).memory)
        computes = name not in _OFFLOADED or name == main
        found[name] = memory - activations if memory is not None and computes else memory
    computing = [memory for name, memory in found.items() if name not in _OFFLOADED or name == main]
    if None not in computing and sum(memory for memory in computing if memory) < total:
        found[main] = (found[main] or 0.0) - largest
    return {name: None if memory is None else max(0.0, memory) for name, memory in found.items()}


def _kind(name: str, stated: Mapping[str, Any]) -> catalogue.Kind:
    kind = stated.get("kind", _CPU if name in _OFFLOADED else None)
    if kind not in catalogue.kinds():
        raise ValueError(f"device '{name}' is of no kind of the catalogue ('placewright devices --catalogue')")
    return catalogue.kinds()[kind]


def _memory(room: float | None) -> dict[str, float]:
    return {} if room is None else {"memory": room}


def _links(names: Sequence[str], main: str, wire: catalogue.LinkKind) -> list[dict[str, Any]]:
    """What lies on the CPU or the disk runs on the main device, so its results are there."""
    entries = []
    for sender in names:
        for receiver in names:
            at = {main if name in _OFFLOADED else name for name in (sender, receiver)}
            cost = (
                {"latency": 0.0} if len(at) == 1 else {"latency": 1e3 * wire.latency, "bandwidth": wire.bandwidth / 1e3}
            )
            if sender != receiver:
                entries.append({"from": sender, "to": receiver, **cost})
    return entries


def _seconds(
    unit: Unit,
    name: str,
    devices: Mapping[str, Mapping[str, Any]],
    main: str,
    wire: catalogue.LinkKind,
    tokens: int,
    element: int,
) -> float:
    where = name if name not in _OFFLOADED else main
    written = tokens * unit.width * element
    touched = written if unit.gathers else unit.bytes + written
    work = catalogue.Work(2 * unit.matrix_weights * tokens, touched, of_matrices=True, in_half=element == 2)
    time = _kind(where, devices.get(where, {})).seconds(work)
    if name == "disk":
        time += unit.bytes / float(devices["disk"].get("bandwidth", _DISK))
    if name in _OFFLOADED and main not in _OFFLOADED:
        time += wire.latency + unit.bytes / wire.bandwidth
    return time
