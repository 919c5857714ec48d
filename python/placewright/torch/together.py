"""Several models at once: `compile_together`.

    together = placewright.torch.compile_together([(first, (x,)), (second, (y,))])
    a, b = together((x,), (y,))

Minimised is the sum of the models' completion times. On a GPU every model is a CUDA graph; a **deal** gives each model
a mode (its atoms on one stream, or on several as `compile` planned them), a lane (models of a lane run one after the
other) and a priority (what the GPU's scheduler prefers when multiprocessors are short). Deals are searched with each
mode's time alone and shares fitted to the slow-down of pairs; the best are measured and improved by measured moves.

On the CPU the atoms of all models are one problem for the planner, with core sets as devices.

What does not beat the models unplanned (all at once, each on a lane of its own, and one after the other, shortest
first) is not used.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import random
import statistics
from collections.abc import Sequence
from typing import Any, Protocol

import torch
from torch.utils import _pytree as pytree

from placewright.torch.atoms import Atoms, as_one_atom, split_into_atoms
from placewright.torch.capture import capture
from placewright.torch.core_sets import CoreSetRun, cores_of, measure_core_sets, union_of
from placewright.torch.documents import problem_document, steps_of
from placewright.torch.kernels import Compiler, Program, compile_atoms, inductor
from placewright.torch.placed import Placed, WrongOutputs, compile, outputs_equal
from placewright.torch.schedules import Costs, Steps, fit_shares, timeline
from placewright.torch.stream_search import Effort
from placewright.torch.streams import PRIORITIES, StreamGraph
from placewright.torch.timing import Spread, slowdown_of_graphs

Models = Sequence[tuple[torch.nn.Module, Sequence[Any]]]


class JointRun(Protocol):
    """A way to run all models once."""

    def __call__(self, inputs: Sequence[Sequence[torch.Tensor]]) -> list[list[torch.Tensor]]:
        """The flat outputs of each model for its flat inputs."""

    def completions(self, inputs: Sequence[Sequence[torch.Tensor]]) -> list[float]:
        """Milliseconds from the start of all to the end of each model, in one run."""


class Together:
    """Models that run at once by plan. `variants` are all ways to run them that were measured, `chosen` is the name of
    the best, `totals` the sum of completion times of each in milliseconds, `predicted` that of the plan."""

    def __init__(self, models: Models) -> None:
        self.models = models
        self.examples = [pytree.tree_leaves((tuple(inputs), {})) for _, inputs in models]
        self.variants: dict[str, JointRun] = {}
        self.totals: dict[str, Spread] = {}
        self.chosen = ""
        self.note = ""
        self.predicted = 0.0

    def __call__(self, *inputs: Sequence[Any]) -> list[Any]:
        """What each model returns, for the tuple of arguments of each. On a GPU the next call overwrites it."""
        if len(inputs) != len(self.models):
            raise ValueError(f"{len(self.models)} models need as many tuples of arguments, not {len(inputs)}")
        flat = [pytree.tree_leaves((tuple(arguments), {})) for arguments in inputs]
        outputs = self.variants[self.chosen](flat)
        return [pytree.tree_unflatten(values, spec) for values, spec in zip(outputs, self.out_specs, strict=True)]

    @functools.cached_property
    def out_specs(self) -> list[Any]:
        """How the outputs of each model are nested."""
        with torch.no_grad():
            return [pytree.tree_structure(model(*inputs)) for model, inputs in self.models]

    def measure(self, rounds: int = 15) -> dict[str, Spread]:
        """The sum of completion times of each variant in milliseconds, over rounds in which they take turns."""
        samples: dict[str, list[float]] = {name: [] for name in self.variants}
        for _ in range(rounds):
            for name, run in self.variants.items():
                samples[name].append(sum(run.completions(self.examples)))
        self.totals = {name: Spread.of(values) for name, values in samples.items()}
        return {**self.totals, "predicted": Spread(self.predicted, self.predicted, self.predicted)}


def compile_together(
    models: Models,
    *,
    devices: Sequence[str] | None = None,
    effort: Effort | None = None,
    compiler: Compiler | None = None,
) -> Together:
    """Models, each with its example inputs, that run at once for the least sum of completion times.

    `devices` are core sets for inputs on the CPU; without it, streams of the GPU that the inputs are on."""
    if not models:
        raise ValueError("there are no models")
    together = Together(models)
    on_gpu = {value.is_cuda for inputs in together.examples for value in inputs}
    if len(on_gpu) != 1:
        raise ValueError("the inputs of all models must be on one GPU, or all on the CPU")
    if on_gpu == {True}:
        if devices is not None:
            raise ValueError("devices are core sets; inputs on a GPU run on its streams")
        _on_lanes(together, effort or Effort(), compiler or inductor)
    else:
        if devices is None:
            raise ValueError("inputs on the CPU need devices, such as ['cpu:0', 'cpu:1']")
        _on_core_sets(together, devices, compiler or inductor)
    _check_outputs(together)
    _choose(together)
    return together


def _check_outputs(together: Together) -> None:
    with torch.no_grad():
        wanted = [pytree.tree_leaves(model(*inputs)) for model, inputs in together.models]
    for name, run in together.variants.items():
        for number, (got, expected) in enumerate(zip(run(together.examples), wanted, strict=True)):
            if not all(outputs_equal(g, e) for g, e in zip(got, expected, strict=True)):
                raise WrongOutputs(f"model {number} computes something else in '{name}'")


def _choose(together: Together) -> None:
    totals = together.measure()
    unplanned = min((n for n in together.variants if n != "planned"), key=lambda name: totals[name].median)
    planned, best = totals["planned"], totals[unplanned]
    if planned.clearly_below(best):
        together.chosen = "planned"
        together.note = f"planned: {planned} in total; the best unplanned way ({unplanned}) takes {best}"
    else:
        together.chosen = unplanned
        reason = ": no gain beyond the noise" if planned.median < best.median else ""
        together.note = f"not planned: planned takes {planned} in total, {unplanned} {best}{reason}"


# --- on a GPU
# --------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Deal:
    """For each model its mode, lane and priority; `order` is that of launching, which models of a lane follow."""

    modes: tuple[int, ...]
    lanes: tuple[int, ...]
    priorities: tuple[int, ...]
    order: tuple[int, ...]


class LaneRun:
    """One CUDA graph for each model, launched on lanes: streams that wait for the caller's and that it waits for."""

    def __init__(self, graphs: Sequence[StreamGraph], lanes: Sequence[int], order: Sequence[int]) -> None:
        self.graphs = graphs
        self.lanes = lanes
        self.order = order
        self.streams = {lane: torch.cuda.Stream() for lane in sorted(set(lanes))}

    def __call__(self, inputs: Sequence[Sequence[torch.Tensor]]) -> list[list[torch.Tensor]]:
        """The outputs of each model, once the current stream has reached them."""
        self._launch(inputs)
        return [graph.outputs for graph in self.graphs]

    def completions(self, inputs: Sequence[Sequence[torch.Tensor]]) -> list[float]:
        """The GPU's times. It sleeps while the launches are prepared, so that these do not count."""
        torch.cuda._sleep(_LAUNCHES)
        start, ends = self._launch(inputs)
        torch.cuda.synchronize()
        return [start.elapsed_time(end) for end in ends]

    def _launch(self, inputs: Sequence[Sequence[torch.Tensor]]) -> tuple[torch.cuda.Event, list[torch.cuda.Event]]:
        here = torch.cuda.current_stream()
        start = torch.cuda.Event(enable_timing=True)
        start.record(here)
        for stream in self.streams.values():
            stream.wait_event(start)
        ends = [torch.cuda.Event(enable_timing=True) for _ in self.graphs]
        for model in self.order:
            stream = self.streams[self.lanes[model]]
            with torch.cuda.stream(stream):
                self.graphs[model](*inputs[model])
                ends[model].record(stream)
        for end in ends:
            here.wait_event(end)
        return start, ends


# Cycles of the GPU, about a millisecond: longer than it takes to launch a graph for each model.
_LAUNCHES = 2_000_000


class _Graphs:
    """The CUDA graphs of the models in every mode and at every priority, captured when first asked for."""

    def __init__(self, modes: Sequence[Sequence[tuple[Program, Steps]]]) -> None:
        self.modes = modes
        self.captured: dict[tuple[int, int, int], StreamGraph] = {}

    def graph(self, model: int, mode: int, priority: int) -> StreamGraph:
        key = (model, mode, priority)
        if key not in self.captured:
            program, steps = self.modes[model][mode]
            self.captured[key] = StreamGraph(program, steps, priority)
        return self.captured[key]

    def run(self, deal: Deal) -> LaneRun:
        count = range(len(self.modes))
        graphs = [self.graph(model, deal.modes[model], deal.priorities[model]) for model in count]
        return LaneRun(graphs, deal.lanes, deal.order)


def _on_lanes(together: Together, effort: Effort, compiler: Compiler) -> None:
    placed = [compile(model, inputs, effort=effort, compiler=compiler) for model, inputs in together.models]
    graphs = _Graphs([[_one_stream(p), _planned(p), _unsplit(p, compiler)] for p in placed])
    alone = [[p.times[name].median for name in ("one stream, atoms", "planned")] for p in placed]
    search = _DealSearch(graphs, alone, together.examples, effort)
    best = search.run()
    together.predicted = search.predicted(best)
    together.variants["planned"] = graphs.run(best)
    count = len(placed)
    level, own_lane, one_lane = (0,) * count, tuple(range(count)), (0,) * count
    shortest_first = tuple(sorted(range(count), key=lambda model: alone[model][0]))
    for name, mode in (("atoms", 0), ("Inductor", 2)):
        modes = (mode,) * count
        together.variants[f"all at once, {name}"] = graphs.run(Deal(modes, own_lane, level, shortest_first))
        in_turn = Deal(modes, one_lane, level, shortest_first)
        together.variants[f"one after the other, shortest first, {name}"] = graphs.run(in_turn)


def _planned(placed: Placed) -> tuple[Program, Steps]:
    assert placed.program is not None
    return placed.program, placed.steps


def _one_stream(placed: Placed) -> tuple[Program, Steps]:
    assert placed.program is not None
    return placed.program, tuple((atom.index, 0) for atom in placed.atoms.atoms)


def _unsplit(placed: Placed, compiler: Compiler) -> tuple[Program, Steps]:
    return compile_atoms(as_one_atom(placed.captured), compiler), ((0, 0),)


class _DealSearch:
    """Deals by simulation, then by measurement. A unit is a model in a mode: unit = modes x model + mode."""

    def __init__(
        self,
        graphs: _Graphs,
        alone: Sequence[Sequence[float]],
        inputs: Sequence[Sequence[torch.Tensor]],
        effort: Effort,
    ) -> None:
        self.graphs = graphs
        self.inputs = inputs
        self.effort = effort
        self.pick = random.Random(effort.seed)
        self.models = len(alone)
        self.modes = len(alone[0])
        times = [time for row in alone for time in row]
        shares, self.pair_error = fit_shares(self._slowdowns(times), len(times))
        self.costs = Costs(times, shares, [()] * len(times))
        self.measured: dict[Deal, float] = {}

    def _slowdowns(self, times: Sequence[float]) -> dict[tuple[int, int], float]:
        """How much longer two models take side by side than alone, for every pair of modes."""
        found = {}
        for first, second in itertools.combinations(range(len(times)), 2):
            if first // self.modes != second // self.modes:
                graphs = [self.graphs.graph(*divmod(unit, self.modes), 0).graph for unit in (first, second)]
                found[first, second] = slowdown_of_graphs(graphs, [times[first], times[second]])
        return found

    def predicted(self, deal: Deal) -> float:
        """The sum of completion times, in milliseconds, if shares told all; priorities are not in it."""
        steps = tuple((self.modes * model + deal.modes[model], deal.lanes[model]) for model in deal.order)
        return sum(end for _, end in timeline(steps, self.costs).values())

    def run(self) -> Deal:
        """The best deal found, by measurement."""
        proposed = sorted(self._proposals(), key=self.predicted)[: self.effort.candidates]
        for deal in proposed:
            self._measure(deal)
            self._measure(self._with_priorities(deal))
        best = min(self.measured, key=lambda deal: self.measured[deal])
        for _ in range(self.effort.moves):
            other = self._move(best)
            if self._measure(other) < self.measured[best]:
                best = other
        return best

    def _proposals(self, trials: int = 2000) -> set[Deal]:
        """Random deals without priorities, among them all orders and lanes of a few models."""
        found = set()
        count = self.models
        for _ in range(trials):
            lanes = [self.pick.randrange(count) for _ in range(count)]
            names = {lane: number for number, lane in enumerate(dict.fromkeys(lanes))}
            modes = tuple(self.pick.randrange(self.modes) for _ in range(count))
            order = tuple(self.pick.sample(range(count), count))
            found.add(Deal(modes, tuple(names[lane] for lane in lanes), (0,) * count, order))
        return found

    def _with_priorities(self, deal: Deal) -> Deal:
        """Models that are expected to end sooner get a higher priority."""
        steps = tuple((self.modes * model + deal.modes[model], deal.lanes[model]) for model in deal.order)
        ends = {unit // self.modes: end for unit, (_, end) in timeline(steps, self.costs).items()}
        last_first = sorted(ends, key=lambda model: -ends[model])
        level = {model: min(position, PRIORITIES - 1) for position, model in enumerate(last_first)}
        return dataclasses.replace(deal, priorities=tuple(level[model] for model in range(self.models)))

    def _move(self, deal: Deal) -> Deal:
        """Another mode, lane or priority of a model, or another place in the order."""
        model = self.pick.randrange(self.models)
        field, choices = self.pick.choice(
            [("modes", self.modes), ("lanes", self.models), ("priorities", PRIORITIES), ("order", self.models)]
        )
        values = list(getattr(deal, field))
        if field == "order":
            values.remove(model)
            values.insert(self.pick.randrange(choices), model)
        else:
            values[model] = self.pick.randrange(choices)
        return dataclasses.replace(deal, **{field: tuple(values)})

    def _measure(self, deal: Deal, rounds: int = 9) -> float:
        if deal not in self.measured:
            run = self.graphs.run(deal)
            run.completions(self.inputs)
            self.measured[deal] = statistics.median(sum(run.completions(self.inputs)) for _ in range(rounds))
        return self.measured[deal]


# --- on core sets
# --------------------------------------------------------------------------------------------------


class _SideBySide(torch.nn.Module):
    """Models as one: takes a tuple of arguments for each and returns what each returns."""

    def __init__(self, models: Sequence[torch.nn.Module]) -> None:
        super().__init__()
        self.models = torch.nn.ModuleList(models)

    def forward(self, *arguments: Sequence[torch.Tensor]) -> tuple[Any, ...]:
        return tuple(model(*given) for model, given in zip(self.models, arguments, strict=True))


def _models_of(atoms: Atoms, inputs: Sequence[int]) -> list[int]:
    """The model of each atom, told by the inputs or the outputs that it is connected with; `inputs` counts those of
    each model."""
    owner = [number for number, count in enumerate(inputs) for _ in range(count)]
    of_input = dict(zip(atoms.captured.inputs, owner, strict=True))
    known: dict[int, int] = {}
    for atom in atoms.atoms:
        sources = [of_input[node] for node in atom.reads if node in of_input] + [known[p] for p in atom.after]
        known[atom.index] = sources[0] if sources else 0
    return [known[atom.index] for atom in atoms.atoms]


class _JointCoreSets:
    """Joint steps on core sets, with the completion of each model from the ends of its atoms."""

    def __init__(self, run: CoreSetRun, model_of: Sequence[int], outputs: Sequence[int]) -> None:
        self.run = run
        self.model_of = model_of
        self.outputs = outputs

    def __call__(self, inputs: Sequence[Sequence[torch.Tensor]]) -> list[list[torch.Tensor]]:
        values = iter(self.run(*itertools.chain.from_iterable(inputs)))
        return [list(itertools.islice(values, count)) for count in self.outputs]

    def completions(self, inputs: Sequence[Sequence[torch.Tensor]]) -> list[float]:
        self(inputs)
        ends = [0.0] * len(self.outputs)
        for atom, (_, end) in self.run.spans.items():
            ends[self.model_of[atom]] = max(ends[self.model_of[atom]], end / 1e3)
        return ends


def _on_core_sets(together: Together, devices: Sequence[str], compiler: Compiler) -> None:
    from placewright import Problem, plan

    core_sets = [cores_of(device) for device in devices]
    side_by_side = _SideBySide([model for model, _ in together.models])
    atoms = split_into_atoms(capture(side_by_side, [tuple(inputs) for _, inputs in together.models]))
    program = compile_atoms(atoms, compiler)
    model_of = _models_of(atoms, [len(inputs) for inputs in together.examples])
    site = measure_core_sets(program, devices)
    arrivals = [0.0] * len(together.models)
    document = problem_document("together", atoms, site, "total-completion", model_of, arrivals)
    made = plan(Problem.from_document(document), time_limit=5)
    together.predicted = made.value / 1e3

    def joint(steps: Steps, sets: Sequence[Sequence[int]]) -> JointRun:
        outputs = [spec.num_leaves for spec in together.out_specs]
        return _JointCoreSets(CoreSetRun(program, steps, sets), model_of, outputs)

    together.variants["planned"] = joint(steps_of(made), core_sets)
    work = [0.0] * len(together.models)
    for atom, model in enumerate(model_of):
        work[model] += site.times[site.kind_of[0]][atom]
    shortest_first = sorted(range(len(model_of)), key=lambda atom: (work[model_of[atom]], model_of[atom], atom))
    together.variants["all at once"] = joint(
        tuple((atom, model_of[atom] % len(core_sets)) for atom in shortest_first), core_sets
    )
    together.variants["one after the other, shortest first"] = joint(
        tuple((atom, 0) for atom in shortest_first), [union_of(core_sets)]
    )
