"""Problem and run files about PyTorch models, as the program `placewright` reads them.

Every atom is an op; devices of one kind have equal times. Devices of one memory space hand values over without a copy.
Streams of a GPU are devices that share its multiprocessors: a resource of which an atom takes its fitted share; core
sets that have cores in common share those. Times of problems are microseconds, those of runs milliseconds.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch

from placewright.torch.atoms import Atom, Atoms
from placewright.torch.schedules import Steps
from placewright.torch.timing import Spread

if TYPE_CHECKING:
    import placewright


@dataclasses.dataclass(frozen=True)
class Site:
    """The devices of a problem, with the time of every atom on each kind of them.

    `handover` is what it costs a device to take a value from another one of its memory. `uses` are the resources of
    each device and the amounts that it takes of them (one unit each is there), `shares` what an atom takes of that on
    a kind: everything where it is not stated. `spaces` is the memory of each device, by default one for all; `latency`
    and `bandwidth` (bytes per microsecond) are those of copies between memories."""

    devices: Sequence[str]
    kind_of: Sequence[str]
    times: Mapping[str, Sequence[float]]
    handover: float = 0.0
    uses: Sequence[Sequence[str]] = ()
    shares: Mapping[str, Sequence[float]] = dataclasses.field(default_factory=dict)
    spaces: Sequence[str] = ()
    latency: float = 0.0
    bandwidth: float | None = None

    def cluster(self) -> dict[str, Any]:
        """Kinds, resources, spaces, devices and interconnect, as a problem file holds them. Resources that one device
        has for itself are left out: they decide nothing."""
        uses = self.uses or [()] * len(self.devices)
        shared = [r for r, count in Counter(r for mine in uses for r in mine).items() if count > 1]
        spaces = self.spaces or ["memory"] * len(self.devices)
        link = {"latency": self.latency, **({} if self.bandwidth is None else {"bandwidth": self.bandwidth})}
        return {
            "kinds": [{"name": kind} for kind in self.times],
            "resources": [{"name": resource, "capacity": 1} for resource in shared],
            "spaces": [{"name": space} for space in dict.fromkeys(spaces)],
            "devices": [
                {
                    "name": name,
                    "kind": kind,
                    "space": space,
                    "receive_overhead": self.handover,
                    "uses": [{"resource": resource, "amount": 1} for resource in mine if resource in shared],
                }
                for name, kind, space, mine in zip(self.devices, self.kind_of, spaces, uses, strict=True)
            ],
            "interconnect": {"kind": "links", "all": link},
        }


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
    return {
        "placewright": "problem",
        "version": 2,
        "name": name,
        "unit": "us",
        "objective": objective,
        **site.cluster(),
        "rules": {"congestion": False},
        "models": [{"name": f"model{i}", "arrival": arrival} for i, arrival in enumerate(arrivals)],
        "ops": [_op(atom, atoms, site, f"model{owner[atom.index]}") for atom in atoms.atoms],
        "tensors": [entry for atom in atoms.atoms for entry in _tensors(atom, atoms)],
        "origin": [
            "times: each atom alone, median",
            *(["shares: fitted to pairs side by side"] if site.shares else []),
        ],
    }


def _op(atom: Atom, atoms: Atoms, site: Site, model: str) -> dict[str, Any]:
    weights = atoms.captured.constants
    entry = {
        "name": atom.name,
        "type": "+".join(str(getattr(node.target, "__name__", node.target)) for node in atom.nodes),
        "model": model,
        "memory": sum(weights[n].numel() * weights[n].element_size() for n in atom.reads if n in weights),
        "flops": atom.flops,
        "time": [times[atom.index] for times in site.times.values()],
    }
    if site.shares:
        entry["share"] = {kind: shares[atom.index] for kind, shares in site.shares.items()}
    return entry


def _tensors(atom: Atom, atoms: Atoms) -> list[dict[str, Any]]:
    entries = []
    for node in atom.writes:
        users = [other.name for other in atoms.atoms if node in other.reads]
        if users:
            value: torch.Tensor = node.meta["val"]
            size = value.numel() * value.element_size()
            entries.append({"name": node.name, "from": atom.name, "to": users, "bytes": size})
    return entries


def steps_of(plan: placewright.Plan) -> Steps:
    """The steps that a schedule stands for. Raises ValueError where no plan was found."""
    if plan.start is None:
        raise ValueError(f"no plan was found: {plan.reason}")
    start, devices = plan.start.tolist(), plan.devices.tolist()
    return tuple((atom, devices[atom]) for atom in sorted(range(len(start)), key=lambda atom: (start[atom], atom)))


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
