"""Problem and run files about PyTorch models, as the program `placewright` reads them.

Every atom is an op; devices of one kind have equal times. Values stay in one memory, so a tensor that crosses devices
costs a hand-over and no copy. Times of problems are microseconds, those of runs milliseconds.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch

from placewright.torch.atoms import Atom, Atoms
from placewright.torch.timing import Spread

if TYPE_CHECKING:
    import placewright


@dataclasses.dataclass(frozen=True)
class Site:
    """The devices of a problem: their names, the kind of each, the time of every atom on each kind, and the time from
    the end of an atom to the start of one that waits for it on another device."""

    devices: Sequence[str]
    kind_of: Sequence[str]
    times: Mapping[str, Sequence[float]]
    handover: float = 0.0


def problem_document(
    name: str,
    atoms: Atoms,
    site: Site,
    objective: str,
    model_of: Sequence[int] | None = None,
    arrivals: Sequence[float] = (0.0,),
) -> dict[str, Any]:
    """What a problem file about the atoms holds. `model_of` gives the model of each atom, numbered as `arrivals`."""
    owner = model_of or [0] * len(atoms.atoms)
    weights = atoms.captured.constants
    return {
        "placewright": "problem",
        "version": 1,
        "name": name,
        "unit": "us",
        "objective": objective,
        "kinds": [{"name": kind} for kind in site.times],
        "devices": [{"name": n, "kind": kind} for n, kind in zip(site.devices, site.kind_of, strict=True)],
        "interconnect": {"kind": "links", "all": {"latency": site.handover}},
        "rules": {"congestion": False},
        "models": [{"name": f"model{i}", "arrival": arrival} for i, arrival in enumerate(arrivals)],
        "ops": [
            {
                "name": atom.name,
                "type": "+".join(str(getattr(node.target, "__name__", node.target)) for node in atom.nodes),
                "model": f"model{owner[atom.index]}",
                "memory": sum(weights[n].numel() * weights[n].element_size() for n in atom.reads if n in weights),
                "flops": atom.flops,
                "time": [times[atom.index] for times in site.times.values()],
            }
            for atom in atoms.atoms
        ],
        "tensors": [entry for atom in atoms.atoms for entry in _tensors(atom, atoms)],
        "origin": ["times: each atom alone, median; what atoms side by side cost each other is not in them"],
    }


def _tensors(atom: Atom, atoms: Atoms) -> list[dict[str, Any]]:
    entries = []
    for node in atom.writes:
        users = [other.name for other in atoms.atoms if node in other.reads]
        if users:
            value: torch.Tensor = node.meta["val"]
            size = value.numel() * value.element_size()
            entries.append({"name": node.name, "from": atom.name, "to": users, "bytes": size})
    return entries


def run_document(
    plan: placewright.Plan,
    measured: Spread,
    spans: Mapping[int, tuple[float, float]],
    baselines: Mapping[str, Spread],
) -> dict[str, Any]:
    """What a run file about a plan holds: `spans` are the start and the end of each op in one call, in microseconds,
    empty where they are not known; every op is a segment of its own. `measured` and `baselines` are milliseconds."""
    problem = plan.problem
    devices = [problem.device_names[device] for device in plan.devices]
    predicted = problem.times[range(len(devices)), plan.devices] / 1e3
    order = sorted(spans, key=lambda op: spans[op])
    lengths = {op: (spans[op][1] - spans[op][0]) / 1e3 for op in order}
    segments = [
        {
            "device": devices[op],
            "ops": 1,
            "first_op": problem.op_names[op],
            "last_op": problem.op_names[op],
            "predicted": float(predicted[op]),
            "measured": _measured(Spread.of([lengths[op]])),
        }
        for op in order
    ]
    return {
        "placewright": "run",
        "version": 1,
        "objective": problem.objective,
        "unit": "ms",
        "predicted": plan.value / 1e3,
        "measured": _measured(measured),
        "interrupted": False,
        "models": [],
        "devices": [
            {"name": name, "busy": sum(lengths[op] for op in order if devices[op] == name)}
            for name in problem.device_names
        ],
        "segments": segments,
        "timeline": [
            {
                "device": devices[op],
                "segment": i + 1,
                "sample": 0,
                "start": spans[op][0] / 1e3,
                "end": spans[op][1] / 1e3,
            }
            for i, op in enumerate(order)
        ],
        "baselines": [
            {"name": name, "latency": _measured(spread), "per_sample": _measured(spread)}
            for name, spread in baselines.items()
        ],
    }


def _measured(spread: Spread) -> dict[str, Any]:
    figures = {"median": spread.median, "low": spread.low, "high": spread.high}
    return {"valid": True, **figures, "kept": spread.count, "rejected": 0, "watched": False}
