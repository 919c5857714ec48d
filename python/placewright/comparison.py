"""Compares methods on one problem, or on all published problems.

A method is the name of a planner, a function from a problem to a placement or a plan, or a placement itself: a mapping
from ops to devices, or the number of a device for each op. The value of a placement is that of the plan which it stands
for (`Problem.plan_for`), so all methods are held to the same rules.
"""

from __future__ import annotations

import dataclasses
import functools
import html
import math
import os
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from placewright import _native
from placewright.planning import Plan, Problem, _threads
from placewright.planning import planners as planners_here

Placement = Mapping[str, str] | ArrayLike
Function = Callable[[Problem], Plan | Placement]
Method = str | Function | Plan | Placement

_METHODS = "methods are a list or a mapping: names of planners, functions, plans or placements"

# Values that differ by less are equal.
_EQUAL = 1e-9


@dataclasses.dataclass(frozen=True)
class Comparison:
    """Plans of several methods, best value first, and the best of their lower bounds."""

    plans: tuple[Plan, ...]
    lower_bound: float

    def _rows(self) -> list[tuple[str, ...]]:
        return [(p.planner, _number(p.value), _percent(p.gap), p.status, f"{p.seconds:.3g} s") for p in self.plans]

    def __str__(self) -> str:
        table = _table(("method", "value", "gap", "status", "time"), self._rows())
        reasons = [f"{plan.planner}: {plan.reason}" for plan in self.plans if plan.reason]
        return "\n".join([table, "", f"best lower bound: {_number(self.lower_bound)}", *reasons])

    def _repr_html_(self) -> str:
        rows = "".join("<tr>" + "".join(f"<td>{html.escape(c)}</td>" for c in row) + "</tr>" for row in self._rows())
        return f"<table><tr><th>method</th><th>value</th><th>gap</th><th>status</th><th>time</th></tr>{rows}</table>"


def compare(
    problem: Problem,
    methods: Sequence[Method] | Mapping[str, Method] | None = None,
    *,
    time_limit: float = 10.0,
    threads: int | None = None,
    seed: int = 1,
) -> Comparison:
    """Several methods on one problem; by default all planners that serve its objective. A mapping gives methods a name.

    Planners have an equal share of the time that is left when their turn comes, as `placewright compare` does;
    functions run until they return. A placement that breaks a rule has no plan, but a `reason`. Ctrl-C ends with what
    has been found."""
    named = {} if methods is None else _named(methods)
    own = {name: method for name, method in named.items() if not isinstance(method, str)}
    planners = [method for method in named.values() if isinstance(method, str)]
    made = [_own_plan(problem, name, method) for name, method in own.items()]
    if methods is None or planners:
        number = _threads(threads, None)
        results, bound, proof = _native.compare(problem._native, planners, float(time_limit), number, seed)
    else:
        results, (bound, proof) = [], _native.lower_bound(problem._native, float(time_limit))
    plans = [Plan(problem, result) for result in results]
    plans += [plan._with_bound(bound, proof) for plan in made]
    return Comparison(tuple(sorted(plans, key=lambda plan: plan.value)), bound)


def _named(methods: Sequence[Method] | Mapping[str, Method]) -> dict[str, Method]:
    if isinstance(methods, Mapping):
        return dict(methods)
    if isinstance(methods, str) or not isinstance(methods, Iterable):
        raise ValueError(_METHODS)
    named: dict[str, Method] = {}
    for method in methods:
        if isinstance(method, int | float | np.number):
            raise ValueError(f"{_METHODS}; a placement alone goes into a list of its own")
        name = _name_of(method)
        count = sum(known == name or known.startswith(name + " ") for known in named)
        named[name if count == 0 else f"{name} {count + 1}"] = method
    return named


def _name_of(method: Method) -> str:
    if isinstance(method, str):
        return method
    if isinstance(method, Plan):
        return method.planner
    if not callable(method):
        return "placement"
    name = str(getattr(method, "__name__", type(method).__name__))
    return "function" if name == "<lambda>" else name


def _own_plan(problem: Problem, name: str, method: Function | Plan | Placement) -> Plan:
    begin = time.perf_counter()
    answer = method(problem) if callable(method) else method
    seconds = time.perf_counter() - begin
    try:
        found = answer._found() if isinstance(answer, Plan) else problem.plan_for(answer)._found()
        return Plan(problem, _native.result_of(problem._native, found, name, seconds))
    except (TypeError, ValueError) as error:
        reason = "the function returned nothing" if answer is None else str(error)
        return Plan(problem, _native.result_of(problem._native, None, name, seconds, reason=reason))


@functools.cache
def published() -> Mapping[str, Path]:
    """The published inputs that come with the package, by name."""
    installed = Path(__file__).parent / "published"
    folder = installed if installed.exists() else Path(__file__).parents[2] / "examples"
    files = [path for paper in ("moirai", "msr", "talos") for path in sorted((folder / paper).rglob("*.json"))]
    kept = [path for path in files if "human-experts" not in path.parts]
    if not kept:
        raise FileNotFoundError(f"the published inputs are not in {folder}")
    return {path.relative_to(folder).with_suffix("").as_posix(): path for path in kept}


def _read(path: Path) -> Problem:
    """The files of MSR do not say what they were published for, their folder does."""
    return Problem.read(path, objective="call-latency" if path.parts[-3:-2] == ("latency",) else "")


@dataclasses.dataclass(frozen=True)
class Bench:
    """A method beside planners on several inputs: `print` it for its tables, `plot` it for a chart."""

    method: str
    comparisons: Mapping[str, Comparison]  # by input

    def ratios(self) -> dict[str, dict[str, float]]:
        """The value of each method on each input over the best of all methods; inputs without a plan are left out."""
        found: dict[str, dict[str, float]] = {}
        for name, comparison in self.comparisons.items():
            best = comparison.plans[0].value
            for plan in comparison.plans:
                ratio = 1.0 if plan.value <= best else plan.value / best if best > 0 else math.inf
                found.setdefault(plan.planner, {}).update({name: ratio} if math.isfinite(plan.value) else {})
        return found

    def _input_rows(self) -> list[tuple[str, ...]]:
        rows: list[tuple[str, ...]] = []
        for name, comparison in self.comparisons.items():
            own = next(plan for plan in comparison.plans if plan.planner == self.method)
            best = comparison.plans[0]
            ahead = sum(plan.value < own.value * (1 - _EQUAL) for plan in comparison.plans)
            place = f"{ahead + 1} of {len(comparison.plans)}" if math.isfinite(own.value) else "-"
            figures = (_number(own.value), place, _number(best.value), best.planner, _percent(own.gap))
            rows.append((name, best.problem.objective, *figures))
        return rows

    def _method_rows(self) -> list[tuple[str, ...]]:
        rows = []
        for method, ratios in self.ratios().items():
            asked = sum(any(p.planner == method for p in c.plans) for c in self.comparisons.values())
            best = sum(ratio <= 1 + _EQUAL for ratio in ratios.values())
            mean = statistics.geometric_mean(ratios.values()) if ratios else math.inf
            rows.append((-len(ratios) / asked, mean, (method, f"{len(ratios)} of {asked}", _number(mean), str(best))))
        return [row for _, _, row in sorted(rows)]

    def _reasons(self) -> list[str]:
        reasons = [plan.reason for c in self.comparisons.values() for plan in c.plans if plan.planner == self.method]
        return [f"no plan on {reasons.count(reason)} inputs: {reason}" for reason in dict.fromkeys(reasons) if reason]

    def __str__(self) -> str:
        inputs = ("input", "objective", self.method, "place", "best", "by", "gap")
        methods = ("method", "plans", "mean of value / best", "best on")
        parts = [_table(inputs, self._input_rows()), *self._reasons(), "", _table(methods, self._method_rows())]
        return "\n".join(parts)

    def plot(self, path: str | os.PathLike[str]) -> None:
        """Draws an SVG file: a line for each input, a dot for each method, farther right the worse."""
        left, width, step, most = 330, 560, 24, 10.0
        names = list(self.comparisons)
        parts = []
        for ratio in (1, 1.25, 1.5, 2, 3, 5, 10):
            x = left + width * math.log(ratio) / math.log(most)
            parts.append(f"<line x1='{x:.1f}' y1='30' x2='{x:.1f}' y2='{40 + step * len(names)}' stroke='#ddd'/>")
            label = f"{ratio:g} x" if ratio < most else f"{most:g} x or more"
            parts.append(f"<text x='{x:.1f}' y='22' text-anchor='middle'>{label}</text>")
        for row, name in enumerate(names):
            y = 48 + step * row
            parts.append(f"<text x='{left - 14}' y='{y + 4}' text-anchor='end'>{html.escape(name)}</text>")
            ratios = {method: found[name] for method, found in self.ratios().items() if name in found}
            for method, ratio in sorted(ratios.items(), key=lambda item: item[0] == self.method):
                x = left + width * math.log(min(ratio, most)) / math.log(most)
                colour, radius = ("#c0392b", 6) if method == self.method else ("#4878a8", 3.5)
                title = f"<title>{html.escape(method)}: {ratio:.3g} times the best</title>"
                dot = f"<circle cx='{x:.1f}' cy='{y}' r='{radius}' fill='{colour}' fill-opacity='0.75'>{title}</circle>"
                parts.append(dot)
        head = f"value / best value; red: {html.escape(self.method)}"
        height = 70 + step * len(names)
        parts.append(f"<text x='{left}' y='{height - 8}'>{head}</text>")
        size = f"width='{left + width + 70}' height='{height}'"
        text = f"<svg xmlns='http://www.w3.org/2000/svg' {size} font-family='sans-serif' font-size='12'>"
        text += "<rect width='100%' height='100%' fill='white'/>" + "".join(parts) + "</svg>\n"
        temporary = Path(f"{os.fspath(path)}.tmp")
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(path)


def bench(
    method: Function,
    inputs: Sequence[str | os.PathLike[str] | Problem] | None = None,
    *,
    name: str = "",
    planners: Sequence[str] | None = None,
    time_limit: float = 10.0,
    threads: int | None = None,
    seed: int = 1,
    progress: Callable[[str], object] | None = None,
) -> Bench:
    """Runs a method on all published inputs beside the planners that serve each; they share `time_limit` seconds.

    `inputs` are names of published inputs, paths of problem files, or problems; `planners` those to run instead of
    all. `progress` is told each input before it begins."""
    if not callable(method):
        raise ValueError("a method to bench is a function from a problem to a placement")
    label = name or _name_of(method)
    if any(planner.name == label for planner in planners_here()):
        label += " (own)"
    known = published() if inputs is None or any(isinstance(given, str) for given in inputs) else {}
    comparisons: dict[str, Comparison] = {}
    for given in known if inputs is None else inputs:
        title = given.name if isinstance(given, Problem) else os.fspath(given)
        if progress is not None:
            progress(title)
        problem = given if isinstance(given, Problem) else _read(known.get(title, Path(title)))
        own = _own_plan(problem, label, method)
        beside = compare(problem, planners, time_limit=time_limit, threads=threads, seed=seed)
        joined = [*beside.plans, own._with_bound(beside.lower_bound, "best of all planners")]
        ordered = tuple(sorted(joined, key=lambda plan: plan.value))
        comparisons[title] = Comparison(ordered, beside.lower_bound)
    return Bench(label, comparisons)


def _number(value: float) -> str:
    return f"{value:.6g}" if math.isfinite(value) else "-"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %" if math.isfinite(share) else "-"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns as wide as they need be; all but the first are aligned to the right."""
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]
    lines = []
    for row in (head, *rows):
        cells = [row[0].ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(row[1:], widths[1:], strict=True))]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)
