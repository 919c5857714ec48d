"""Problems, plans and planners: make a plan, check it, simulate it, explain it."""

from __future__ import annotations

import dataclasses
import html
import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from placewright import _native
from placewright.libraries import find_cp_sat

find_cp_sat()

Progress = Callable[[str, float, float, float], object]


def version() -> str:
    """The version of the library."""
    return _native.version()


@dataclasses.dataclass(frozen=True)
class Cluster:
    """Devices and how they reach each other, as in a cluster file: `kinds`, `devices` and `interconnect`."""

    kinds: Sequence[Mapping[str, Any]]
    devices: Sequence[Mapping[str, Any]]
    interconnect: Mapping[str, Any]

    @staticmethod
    def of(names: Sequence[str], latency: float = 0.0, bandwidth: float | None = None) -> Cluster:
        """Devices of these names, each a kind of its own, every pair joined by equal links."""
        every: dict[str, float] = {"latency": latency}
        if bandwidth is not None:
            every["bandwidth"] = bandwidth
        return Cluster(
            kinds=[{"name": name} for name in names],
            devices=[{"name": name, "kind": name} for name in names],
            interconnect={"kind": "links", "all": every},
        )


class Problem:
    """A checked placement problem: ops, tensors, devices, links, objective and rules."""

    def __init__(self, native: _native.Problem) -> None:
        self._native = native

    @staticmethod
    def read(
        path: str | os.PathLike[str],
        *,
        format: str = "",
        objective: str = "",
        cluster: str | os.PathLike[str] = "",
    ) -> Problem:
        """A problem from a file, of our own format or a published one."""
        return Problem(_native.Problem.read(os.fspath(path), format, objective, os.fspath(cluster)))

    @staticmethod
    def from_document(document: Mapping[str, Any]) -> Problem:
        """Makes a problem from the content of a problem file, as Python dictionaries and lists."""
        return Problem(_native.Problem.parse(json.dumps(document), "document"))

    @staticmethod
    def from_arrays(
        times: ArrayLike,
        edges: ArrayLike,
        cluster: Cluster,
        *,
        bytes: ArrayLike | None = None,
        names: Sequence[str] | None = None,
        name: str = "problem",
        unit: str = "none",
        objective: str = "latency",
    ) -> Problem:
        """A problem of one model from arrays: `times` is ops x kinds (infinite: not supported), `edges` rows of
        (producer, consumer), `bytes` the size of what each op produces."""
        table = np.asarray(times, dtype=float)
        pairs = np.asarray(edges, dtype=int).reshape(-1, 2)
        sizes = np.zeros(len(table)) if bytes is None else np.asarray(bytes, dtype=float)
        if table.ndim != 2 or table.shape[1] != len(cluster.kinds):
            raise ValueError(f"times must have a row for each op and {len(cluster.kinds)} columns, one for each kind")
        if len(sizes) != len(table):
            raise ValueError(f"bytes must have {len(table)} entries, one for each op")
        if pairs.size and not (pairs.min() >= 0 and pairs.max() < len(table)):
            raise ValueError(f"edges must name ops from 0 to {len(table) - 1}")
        labels = [f"op{i}" for i in range(len(table))] if names is None else list(names)
        consumers: dict[int, list[int]] = {}
        for producer, consumer in pairs.tolist():
            consumers.setdefault(producer, []).append(consumer)
        return Problem.from_document(
            {
                "placewright": "problem",
                "version": 1,
                "name": name,
                "unit": unit,
                "objective": objective,
                "kinds": list(cluster.kinds),
                "devices": list(cluster.devices),
                "interconnect": dict(cluster.interconnect),
                "models": [{"name": name}],
                "ops": [
                    {"name": label, "model": name, "time": [t if math.isfinite(t) else None for t in row]}
                    for label, row in zip(labels, table.tolist(), strict=True)
                ],
                "tensors": [
                    {"from": labels[producer], "to": [labels[c] for c in users], "bytes": float(sizes[producer])}
                    for producer, users in sorted(consumers.items())
                ],
            }
        )

    def to_document(self) -> dict[str, Any]:
        """Returns the content of a problem file for this problem."""
        document: dict[str, Any] = json.loads(self._native.text())
        return document

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the problem in our own format, whole or not at all."""
        self._native.save(os.fspath(path))

    @property
    def name(self) -> str:
        """The problem's name."""
        return self._native.name

    @property
    def objective(self) -> str:
        """`latency`, `throughput`, `call-latency` or `total-completion`."""
        return self._native.objective

    @property
    def unit(self) -> str:
        """The unit of its times: `s`, `ms`, `us` or `none`."""
        return self._native.unit

    @property
    def op_names(self) -> list[str]:
        """The ops, in the order of every array."""
        return self._native.op_names

    @property
    def device_names(self) -> list[str]:
        """The devices, in the order of every array."""
        return self._native.device_names

    @property
    def times(self) -> NDArray[np.float64]:
        """The time of each op on each device (ops x devices); infinite where the device cannot run the op."""
        return self._native.times

    def plan_for(self, placement: Mapping[str, str] | ArrayLike) -> Plan:
        """Makes the plan of a bare placement: op names mapped to device names, or one device index for each op. For
        latency and total completion a list scheduler adds the schedule. For throughput each device is a stage. Raises
        ValueError if the placement breaks a rule."""
        if isinstance(placement, Mapping):
            index = {device: i for i, device in enumerate(self.device_names)}
            unknown = [device for device in placement.values() if device not in index]
            if unknown:
                raise ValueError(f"no device is called '{unknown[0]}'")
            devices = np.array([index[placement[op]] if op in placement else -1 for op in self.op_names], np.int64)
        else:
            devices = np.ascontiguousarray(placement, dtype=np.int64)
        found = _native.plan_for(self._native, devices)
        if found is None:
            raise ValueError("the placement breaks a rule on links, contiguity or calls")
        return Plan(self, _native.result_of(self._native, found, "given"))

    def __repr__(self) -> str:
        return f"<Problem {self.name}: {len(self.op_names)} ops on {len(self.device_names)} devices, {self.objective}>"


class Plan:
    """The answer of a planner. `status` is `optimal`, `feasible`, `infeasible` (proved) or `unknown`. With the last two
    there is no placement but a `reason`."""

    def __init__(self, problem: Problem, native: _native.Result) -> None:
        self.problem = problem
        self._result = native
        self._native = native.plan

    @staticmethod
    def read(path: str | os.PathLike[str]) -> Plan:
        """A plan file with its problem: the one inside, or the file that it names."""
        problem, plan = _native.open_plan(os.fspath(path))
        return Plan(Problem(problem), _native.result_of(problem, plan, "read"))

    @property
    def status(self) -> str:
        """`optimal`, `feasible`, `infeasible` or `unknown`."""
        return self._result.status

    @property
    def value(self) -> float:
        """The objective's value; infinite without a plan."""
        return math.inf if self._native is None else self._native.value

    @property
    def lower_bound(self) -> float:
        """No plan has a value below this."""
        return self._result.lower_bound

    @property
    def bound_method(self) -> str:
        """How the bound was obtained."""
        return self._result.bound_method

    @property
    def gap(self) -> float:
        """(value - lower bound) / value."""
        return self._result.gap

    @property
    def planner(self) -> str:
        """The name of the planner that made the plan."""
        return self._result.planner

    @property
    def seconds(self) -> float:
        """How many seconds planning took."""
        return self._result.seconds

    @property
    def reason(self) -> str:
        """Why there is no plan; empty where there is one."""
        return self._result.reason

    @property
    def notes(self) -> list[str]:
        """Remarks of the planner, each a sentence."""
        return self._result.notes

    def _with_bound(self, bound: float, proof: str) -> Plan:
        """The same plan, beside a bound that was found elsewhere."""
        known = self._result
        made = (self._native, known.planner, known.seconds, known.reason, bound, proof)
        return Plan(self.problem, _native.result_of(self.problem._native, *made))

    def _found(self) -> _native.Plan:
        if self._native is None:
            raise ValueError(f"there is no plan: {self.reason or self.status}")
        return self._native

    @property
    def devices(self) -> NDArray[np.int64]:
        """The index of the device of each op."""
        return self._found().placement

    @property
    def placement(self) -> dict[str, str]:
        """Op to device, by name."""
        names = self.problem.device_names
        return {op: names[device] for op, device in zip(self.problem.op_names, self.devices, strict=True)}

    @property
    def start(self) -> NDArray[np.float64] | None:
        """The start of each op, for schedules."""
        return self._found().start

    @property
    def end(self) -> NDArray[np.float64] | None:
        """The end of each op, for schedules."""
        return self._found().end

    @property
    def stages(self) -> list[tuple[list[int], list[int], float]]:
        """For pipelines: devices, ops and load of each stage."""
        return self._found().stages

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a plan file that holds its problem, as `placewright plan --embed -o` does."""
        self._found()
        _native.save_result(os.fspath(path), self.problem._native, self._result)

    def check(self) -> list[tuple[str, str]]:
        """See `check`."""
        return check(self)

    def simulate(self) -> list[dict[str, Any]]:
        """See `simulate`."""
        return simulate(self)

    def explain(self, op: str | None = None) -> list[dict[str, Any]]:
        """See `explain`."""
        return explain(self, op)

    def report(self, path: str | os.PathLike[str]) -> None:
        """See `report`."""
        report([self], path)

    def __repr__(self) -> str:
        if self._native is None:
            return f"<Plan {self.status}: {self.reason}>"
        return f"<Plan {self.status}: {self.problem.objective} {self.value:g}, gap {self.gap:.2%}, by {self.planner}>"

    def _repr_html_(self) -> str:
        """How a notebook shows it: the figures, and a bar for each device."""
        if self._native is None:
            return f"<p>{html.escape(self.status)}: {html.escape(self.reason)}</p>"
        rows = []
        summaries = self.simulate()
        longest = max((row["busy"] for row in summaries), default=0) or 1
        for row in summaries:
            width = 100 * row["busy"] / longest
            bar = f"<div style='background:#4878a8;height:1em;width:{width:.1f}%'></div>"
            cells = f"<td>{html.escape(row['device'])}</td><td>{row['ops']}</td><td>{row['busy']:g}</td>"
            rows.append(f"<tr>{cells}<td style='width:20em'>{bar}</td></tr>")
        unit = "" if self.problem.unit == "none" else " " + self.problem.unit
        head = (
            f"{html.escape(self.problem.name)}: {self.problem.objective} {self.value:g}{unit}, at least "
            f"{self.lower_bound:g}{unit} ({self.status}, {html.escape(self.planner)})"
        )
        return (
            f"<table><caption>{head}</caption><tr><th>device</th><th>ops</th><th>busy</th><th></th></tr>"
            + "".join(rows)
            + "</table>"
        )


@dataclasses.dataclass(frozen=True)
class Planner:
    """A planner as `placewright planners` lists it; `options` are the keywords that `plan` takes for it."""

    name: str
    summary: str
    objectives: tuple[str, ...]
    exact: bool
    options: Mapping[str, str]


def planners() -> list[Planner]:
    """All planners."""
    return [
        Planner(name, summary, tuple(objectives), exact, options)
        for name, summary, objectives, exact, options in _native.planners()
    ]


def plan(
    problem: Problem,
    planner: str = "auto",
    *,
    time_limit: float = 10.0,
    steps: int | None = None,
    threads: int | None = None,
    seed: int = 1,
    start: Plan | None = None,
    progress: Progress | None = None,
    **options: object,
) -> Plan:
    """Makes a plan. `steps` limits the work instead of the time, so that runs can be repeated; `start` is a plan to
    improve; `threads` defaults to the cores of the process, and to one with `steps`; `progress(planner, seconds, value,
    lower_bound)` is called as the search advances, from another thread; further keywords are options of the planner.
    Ctrl-C ends the search with the best plan so far."""
    texts = {name.replace("_", "-"): _text(value) for name, value in options.items()}
    begin = None if start is None else start._found()
    number = _threads(threads, steps)
    result = _native.solve(problem._native, planner, texts, float(time_limit), steps, number, seed, begin, progress)
    return Plan(problem, result)


def _threads(asked: int | None, steps: int | None) -> int:
    """As `--threads`: what is asked for, else what the environment says, else a thread for each core of the process."""
    if asked is not None:
        return asked
    if "PLACEWRIGHT_THREADS" in os.environ:
        return int(os.environ["PLACEWRIGHT_THREADS"])
    return 1 if steps is not None else len(os.sched_getaffinity(0))


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def check(plan: Plan) -> list[tuple[str, str]]:
    """Lists the rules that a plan breaks, as pairs (code, sentence). A valid plan gives an empty list."""
    return _native.check(plan.problem._native, plan._found())


def simulate(plan: Plan) -> list[dict[str, Any]]:
    """Returns for each device its ops, busy and idle time, time sending and receiving, resident and peak bytes."""
    return _native.simulate(plan.problem._native, plan._found())


def explain(plan: Plan, op: str | None = None) -> list[dict[str, Any]]:
    """Returns the critical path of a plan, step by step; for an op, the value after moving it to each device."""
    if op is None:
        return _native.critical_path(plan.problem._native, plan._found())
    return _native.moves(plan.problem._native, plan._found(), op)


def report(plans: Sequence[Plan], path: str | os.PathLike[str], runs: Sequence[str] = ()) -> None:
    """Writes one HTML page about plans of one problem. `runs` are the texts of run files, one for each plan."""
    if not plans:
        raise ValueError("a report needs at least one plan")
    labels: list[str] = []
    for made in plans:
        made._found()
        count = sum(label == made.planner or label.startswith(made.planner + " ") for label in labels)
        labels.append(made.planner if count == 0 else f"{made.planner} {count + 1}")
    texts = [*runs, *[""] * (len(plans) - len(runs))]
    entries = [(label, made._result, run) for label, made, run in zip(labels, plans, texts, strict=True)]
    page = _native.report(plans[0].problem._native, entries)
    temporary = Path(f"{os.fspath(path)}.tmp")
    temporary.write_text(page, encoding="utf-8")
    temporary.replace(path)
