"""`compile`: a model that runs by plan.

    fast = placewright.torch.compile(model, (x,))              # streams of the GPU that x is on
    fast = placewright.torch.compile(model, (x,), devices=["cuda:0", "cpu:0-7"])    # the GPU, and cores beside it
    fast = placewright.torch.compile(model, (x,), devices=["cpu:0", "cpu:1"])
    y = fast(x)

The plan is used only where it beats the model unsplit, as one piece under the same conditions (a CUDA graph of eager
kernels, and of Inductor's, on one stream); `fast.note` says what was chosen and why. Outputs are compared with the
model's own before anything is handed out.
"""

from __future__ import annotations

import functools
import json
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch.utils import _pytree as pytree

from placewright.torch.atoms import Atoms, as_one_atom, split_into_atoms
from placewright.torch.capture import Captured, capture
from placewright.torch.core_sets import (
    HANDOVER,
    CoreSetRun,
    cores_of,
    measure_core_sets,
    planned_times,
    union_of,
)
from placewright.torch.cpu_and_gpu import CPU, ENDS, GPU, CpuAndGpuRun, measure_cpu_and_gpu, problem_with_ends
from placewright.torch.documents import Site, problem_document, run_document, steps_of
from placewright.torch.kernels import Compiler, Program, compile_atoms, eager, inductor
from placewright.torch.schedules import Costs, Steps, chains, timeline
from placewright.torch.stream_search import BlockRow, Effort, devices_of, search_streams, stream_site
from placewright.torch.streams import StreamGraph
from placewright.torch.timing import Spread, compare_calls

if TYPE_CHECKING:
    import placewright

Run = Callable[..., list[torch.Tensor]]

# Largest difference of outputs, relative to the largest output, that counts as equal. TF32 and the
# order of sums differ between kernels of one operator.
TOLERANCE = {torch.float64: 1e-9, torch.float32: 2e-3, torch.float16: 1e-2, torch.bfloat16: 5e-2}

# Seconds for the planner.
_PLANNING = 5.0

# The variants that cut the model.
_SPLIT = {"planned", "naive branches"}


class WrongOutputs(Exception):
    """The split model computes something else than the model."""


class OutOfMemory(MemoryError):
    """The GPU has no room for the model beside the copies of its values that a plan needs."""


class NewShape(ValueError):
    """The inputs are not shaped like those that the model was compiled for."""


class Placed:
    """A model that runs by plan. Call it like the model; on a GPU the outputs are overwritten by the next call.

    `variants` are all ways to run it that were measured, by name; `chosen` is the fastest's; `predicted` is the time in
    microseconds that the plan was expected to take; `rows` what was found for each block on a GPU. `devices` names the
    device of each atom in the plan, `lanes` the streams or core sets that the steps number; `with_ends` tells that the
    problem has ops for the model's inputs and outputs, which are on the GPU.
    """

    def __init__(self, model: torch.nn.Module, captured: Captured, atoms: Atoms) -> None:
        self.model = model
        self.captured = captured
        self.atoms = atoms
        self.variants: dict[str, Run] = {}
        self.times: dict[str, Spread] = {}
        self.chosen = ""
        self.note = ""
        self.steps: Steps = ()
        self.costs = Costs([], [], [])
        self.site = Site((), (), {})
        self.devices: Sequence[str] = ()
        self.lanes: Sequence[str] = ()
        self.with_ends = False
        self.predicted = 0.0
        self.rows: tuple[BlockRow, ...] = ()
        self.program: Program | None = None
        self.replan: Callable[[Sequence[Any], Mapping[str, Any]], Placed] | None = None
        self.others: dict[tuple[str, ...], Placed] = {}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What the model returns for these inputs. Raises NewShape for inputs unlike the examples, unless another plan
        is to be made for them."""
        fitting = self.planned_for(*args, **kwargs)
        outputs = fitting.variants[fitting.chosen](*pytree.tree_leaves((args, kwargs)))
        return pytree.tree_unflatten(outputs, fitting.captured.out_spec)

    def planned_for(self, *args: Any, **kwargs: Any) -> Placed:
        """The plan for inputs of this shape: this one or, with `on_new_shape="replan"`, one made when they first come.
        Otherwise raises NewShape."""
        flat, spec = pytree.tree_flatten((args, kwargs))
        difference = self._difference(flat, spec)
        if not difference:
            return self
        if self.replan is None:
            raise NewShape(difference)
        shapes = (str(spec), *(_described(value) for value in flat))
        if shapes not in self.others:
            self.others[shapes] = self.replan(args, kwargs)
        return self.others[shapes]

    def _difference(self, flat: Sequence[Any], spec: Any) -> str:
        """How inputs differ from the examples in shape, as a sentence; empty: they do not."""
        if spec != self.captured.in_spec:
            return "the arguments are not those that the model was compiled for; compile it again for these"
        for position, (value, example) in enumerate(zip(flat, self.captured.example_inputs, strict=True)):
            if (value.shape, value.dtype, value.device) != (example.shape, example.dtype, example.device):
                return (
                    f"input {position} was {_described(example)} when the model was compiled and is "
                    f"{_described(value)} now; compile it again for this one"
                )
        return ""

    def measure(self) -> dict[str, Spread]:
        """Milliseconds for a call of each variant, measured again in turns: median, first and last decile; with eager
        PyTorch and, on a GPU, torch.compile's own CUDA graph. `predicted` is what the plan was expected to take."""
        inputs = self.captured.example_inputs
        calls: dict[str, Callable[[], object]] = {
            name: functools.partial(run, *inputs) for name, run in self.variants.items()
        }
        args, kwargs = pytree.tree_unflatten(list(inputs), self.captured.in_spec)
        calls["eager"] = functools.partial(self.model, *args, **kwargs)
        if inputs[0].is_cuda:
            reduced = torch.compile(self.model, mode="reduce-overhead", dynamic=False)
            calls["torch.compile reduce-overhead"] = functools.partial(reduced, *args, **kwargs)
        self.times = _times(self, calls)
        return {**self.times, "predicted": Spread(self.predicted / 1e3, self.predicted / 1e3, self.predicted / 1e3)}

    def problem_document(self) -> dict[str, Any]:
        """The placement problem behind the plan, as a problem file holds it; times are microseconds."""
        name = type(self.model).__name__
        if self.with_ends:
            return problem_with_ends(name, self.atoms, self.site)
        return problem_document(name, self.atoms, self.site, "latency")

    @property
    def plan(self) -> placewright.Plan:
        """The plan, for `explain`, `report` and files. Streams are devices in it that share the GPU."""
        from placewright import Problem

        problem = Problem.from_document(self.problem_document())
        names = [atom.name for atom in self.atoms.atoms]
        placement = dict(zip(names, self.devices, strict=True))
        return problem.plan_for({**placement, **(dict.fromkeys(ENDS, self.site.devices[0]) if self.with_ends else {})})

    def run_document(self) -> dict[str, Any]:
        """What a run file of the plan holds: predicted beside measured, with the unsplit variants as baselines."""
        baselines = {name: spread for name, spread in self.times.items() if name not in _SPLIT}
        return run_document(self.plan, self.times["planned"], self._spans(), baselines)

    def report(self, path: str) -> None:
        """Writes the HTML page about the plan and a run of it."""
        from placewright import report

        report([self.plan], path, [json.dumps(self.run_document())])

    def save(self, folder: str) -> None:
        """Writes problem.json, plan.json and run.json, as the program `placewright` reads them."""
        Path(folder).mkdir(parents=True, exist_ok=True)
        plan = self.plan
        plan.problem.save(str(Path(folder) / "problem.json"))
        plan.save(str(Path(folder) / "plan.json"))
        (Path(folder) / "run.json").write_text(json.dumps(self.run_document(), indent=1), encoding="utf-8")

    def trace(self, path: str) -> None:
        """Writes a timeline for chrome://tracing or Perfetto: the planned one beside that of one call, on a GPU by
        kernels."""
        events: list[dict[str, Any]] = []
        for atom, (start, end) in timeline(self.steps, self.costs).items():
            events.append(self._event("planned", atom, start, end))
        if self.captured.example_inputs[0].is_cuda:
            events += self._kernels()
        else:
            events += [self._event("measured", atom, *span) for atom, span in self._spans().items()]
        Path(path).write_text(json.dumps({"traceEvents": events}), encoding="utf-8")

    def _event(self, kind: str, atom: int, start: float, end: float) -> dict[str, Any]:
        device = self.lanes[dict(_numbered(self.steps))[atom]]
        name = self.atoms.atoms[atom].name
        return {"name": name, "ph": "X", "pid": kind, "tid": device, "ts": start, "dur": end - start}

    def _spans(self) -> dict[int, tuple[float, float]]:
        """When each atom of the plan starts and ends in a call of it; empty on a GPU, where atoms are not watched."""
        run = self.variants["planned"]
        if not isinstance(run, CoreSetRun):
            return {}
        run(*self.captured.example_inputs)
        return run.spans

    def _kernels(self) -> list[dict[str, Any]]:
        from torch.profiler import ProfilerActivity

        run, inputs = self.variants[self.chosen], self.captured.example_inputs
        run(*inputs)
        torch.cuda.synchronize()
        with torch.profiler.profile(activities=[ProfilerActivity.CUDA, ProfilerActivity.CPU]) as profile:
            run(*inputs)
            torch.cuda.synchronize()
        found = [e for e in profile.profiler.kineto_results.events() if "CUDA" in str(e.device_type())]
        begin = min(event.start_ns() for event in found)
        return [
            {
                "name": event.name(),
                "ph": "X",
                "pid": "measured",
                "tid": event.device_resource_id(),
                "ts": (event.start_ns() - begin) / 1e3,
                "dur": event.duration_ns() / 1e3,
            }
            for event in found
        ]


def compile(
    model: torch.nn.Module,
    example_inputs: Sequence[Any],
    example_kwargs: Mapping[str, Any] | None = None,
    *,
    devices: Sequence[str] | None = None,
    planner: str = "auto",
    plan: placewright.Plan | None = None,
    effort: Effort | None = None,
    compiler: Compiler | None = None,
    on_new_shape: str = "error",
    fresh: bool = False,
) -> Placed:
    """A model that runs by plan for inputs shaped like the examples.

    `devices` are core sets ('cpu:0', 'cpu:1-3') for inputs on the CPU. For inputs on a GPU they are its streams where
    nothing is given, or 'cuda:0' with a core set. `planner` plans for core sets, unless there is a `plan`, such as one
    that was saved. `compiler` makes the kernels of the atoms (`kernels.inductor`, `kernels.eager`). Inputs of another
    shape raise NewShape, or with `on_new_shape="replan"` get a plan of their own when they first come. Atoms that were
    measured before on such a device, with the same versions, are not measured again, unless they are to be `fresh`.
    Raises CannotCapture for models that cannot be split, OutOfMemory where the GPU is too full.
    """
    if on_new_shape not in ("error", "replan"):
        raise ValueError(f"on_new_shape is 'error' or 'replan', not '{on_new_shape}'")
    captured = capture(model, example_inputs, example_kwargs)
    if not captured.example_inputs:
        raise ValueError("the model takes no tensor, so there is nothing to say where it runs")
    placed = Placed(model, captured, split_into_atoms(captured))
    try:
        _prepare(placed, devices, planner, plan, effort or Effort(), compiler or inductor, fresh)
    except torch.OutOfMemoryError as error:
        raise OutOfMemory(
            "the GPU has too little free memory to measure and plan the model; "
            "compile_offloaded runs one that does not fit"
        ) from error
    if on_new_shape == "replan":
        placed.replan = functools.partial(
            compile, model, devices=devices, planner=planner, effort=effort, compiler=compiler, fresh=fresh
        )
    return placed


def _prepare(
    placed: Placed,
    devices: Sequence[str] | None,
    planner: str,
    given: placewright.Plan | None,
    effort: Effort,
    compiler: Compiler,
    fresh: bool,
) -> None:
    """Measures, plans, makes the variants, checks and compares them."""
    on_gpu = placed.captured.example_inputs[0].is_cuda
    if devices is None and not on_gpu:
        raise ValueError("inputs on the CPU need devices, such as ['cpu:0', 'cpu:1']")
    if devices is None and given is not None:
        raise ValueError("a plan is for devices; the schedule of streams is found by measurement")
    if devices is None:
        _on_streams(placed, effort, compiler, fresh)
    elif on_gpu:
        _on_cpu_and_gpu(placed, devices, compiler, functools.partial(_plan, placed, planner, given), fresh)
    else:
        _on_core_sets(placed, devices, compiler, functools.partial(_plan, placed, planner, given), fresh)
    _check_outputs(placed)
    _choose(placed)
    if "one stream, atoms" in placed.times:
        # Atoms are timed in loops, where weights stay in the cache; what a whole call adds to that
        # is the same for all schedules, and one stream shows it.
        alone = sum(placed.costs.times)
        placed.predicted *= 1e3 * placed.times["one stream, atoms"].median / alone


def _plan(placed: Placed, planner: str, given: placewright.Plan | None) -> placewright.Plan:
    """The given plan, if it fits, or a new one."""
    from placewright import Problem, plan

    problem = Problem.from_document(placed.problem_document())
    if given is None:
        return plan(problem, planner, time_limit=_PLANNING)
    if given.problem.op_names != problem.op_names:
        raise ValueError("the plan is of another model: its ops are not the atoms of this one")
    missing = sorted(set(given.placement.values()) - set(problem.device_names))
    if missing:
        raise ValueError(
            f"the plan is for other hardware: it uses {', '.join(missing)}, "
            f"and the devices here are {', '.join(problem.device_names)}"
        )
    return problem.plan_for(given.placement)


def _on_streams(placed: Placed, effort: Effort, compiler: Compiler, fresh: bool) -> None:
    plain = compile_atoms(placed.atoms, compiler)
    program, found = search_streams(plain, effort, fresh=fresh)
    placed.steps, placed.costs, placed.predicted, placed.rows = found.steps, found.costs, found.predicted, found.rows
    placed.site = stream_site(effort.streams, found.costs)
    placed.devices = devices_of(found.steps, found.costs, placed.site)
    placed.lanes = [f"stream{i}" for i in range(1 + max(stream for _, stream in _numbered(found.steps)))]
    placed.program = program
    placed.variants["planned"] = StreamGraph(program, found.steps)
    branches = chains(range(len(placed.atoms.atoms)), placed.atoms.after, effort.streams)
    placed.variants["naive branches"] = StreamGraph(plain, branches)
    whole = as_one_atom(placed.captured)
    for name, kernels in (("one stream, Inductor", inductor), ("one stream, eager", eager)):
        unsplit = compile_atoms(whole, kernels)
        placed.variants[name] = StreamGraph(unsplit, ((0, 0),))
    placed.variants["one stream, atoms"] = StreamGraph(program, tuple((a.index, 0) for a in placed.atoms.atoms))


def _on_core_sets(
    placed: Placed,
    devices: Sequence[str],
    compiler: Compiler,
    planned: Callable[[], placewright.Plan],
    fresh: bool,
) -> None:
    program = compile_atoms(placed.atoms, compiler)
    placed.program = program
    placed.site = measure_core_sets(program, devices, fresh=fresh)
    made = planned()
    placed.steps = steps_of(made)
    placed.costs = Costs(planned_times(made), [0.0] * len(placed.steps), placed.atoms.after, HANDOVER)
    placed.predicted = made.value
    placed.devices = list(made.placement.values())
    placed.lanes = [device for device in devices if device in set(placed.devices)]
    core_sets = [cores_of(device) for device in devices]
    placed.variants["planned"] = CoreSetRun(program, placed.steps, core_sets)
    everything = tuple((atom.index, 0) for atom in placed.atoms.atoms)
    placed.variants["unsplit"] = CoreSetRun(program, everything, [union_of(core_sets)])


def _on_cpu_and_gpu(
    placed: Placed,
    devices: Sequence[str],
    compiler: Compiler,
    planned: Callable[[], placewright.Plan],
    fresh: bool,
) -> None:
    if len(devices) != 2 or devices[GPU] not in ("cuda", "cuda:0"):
        raise ValueError("devices for inputs on a GPU are 'cuda:0' and one core set, or nothing for its streams")
    cores = cores_of(devices[CPU])
    program = compile_atoms(placed.atoms, compiler)
    placed.program = program
    placed.site, on_cpu = measure_cpu_and_gpu(program, *devices, fresh=fresh)
    placed.with_ends = True
    made = planned()
    count = len(placed.atoms.atoms)
    placed.steps = tuple(step for step in steps_of(made) if step[0] < count)
    placed.costs = Costs(planned_times(made)[:count], [0.0] * count, placed.atoms.after, placed.site.latency)
    placed.predicted = made.value
    placed.devices = list(made.placement.values())[:count]
    placed.lanes = [device for device in devices if device in set(placed.devices)]
    placed.variants["planned"] = CpuAndGpuRun(program, on_cpu, placed.steps, cores)
    placed.variants["GPU alone"] = StreamGraph(compile_atoms(as_one_atom(placed.captured), compiler), ((0, 0),))
    alone = tuple((atom, CPU) for atom in range(count))
    placed.variants["CPU alone"] = CpuAndGpuRun(program, on_cpu, alone, cores)


def _numbered(steps: Steps) -> Steps:
    """Streams numbered from 0 without holes, in the order of their numbers."""
    numbers = {stream: i for i, stream in enumerate(sorted({stream for _, stream in steps}))}
    return tuple((atom, numbers[stream]) for atom, stream in steps)


def _check_outputs(placed: Placed) -> None:
    examples = placed.captured.example_inputs
    fresh = [torch.randn_like(value) if value.is_floating_point() else value.clone() for value in examples]
    args, kwargs = pytree.tree_unflatten([value.clone() for value in fresh], placed.captured.in_spec)
    with torch.no_grad():
        wanted = pytree.tree_leaves(placed.model(*args, **kwargs))
    for name, run in placed.variants.items():
        for position, (got, expected) in enumerate(zip(run(*fresh), wanted, strict=True)):
            if not outputs_equal(got, expected):
                raise WrongOutputs(f"output {position} of '{name}' differs from the model's")


def outputs_equal(got: torch.Tensor, wanted: torch.Tensor) -> bool:
    """Whether an output is the wanted one within the tolerance of its type."""
    if got.shape != wanted.shape or got.dtype != wanted.dtype:
        return False
    if not wanted.is_floating_point():
        return bool(torch.equal(got, wanted))
    largest = float(wanted.abs().max()) if wanted.numel() else 0.0
    difference = float((got.double() - wanted.double()).abs().max()) if wanted.numel() else 0.0
    return difference <= TOLERANCE[wanted.dtype] * largest  # false where either is not a number


def _choose(placed: Placed) -> None:
    inputs = placed.captured.example_inputs
    calls = {name: functools.partial(run, *inputs) for name, run in placed.variants.items()}
    placed.times = _times(placed, calls)
    unsplit = min((name for name in calls if name not in _SPLIT), key=lambda name: placed.times[name].median)
    split = min((name for name in calls if name in _SPLIT), key=lambda name: placed.times[name].median)
    cut, whole = placed.times[split], placed.times[unsplit]
    if cut.clearly_below(whole):
        placed.chosen = split
        placed.note = f"{split}: {cut.median:.3f} ms; the best unsplit variant ({unsplit}) takes {whole.median:.3f} ms"
    else:
        placed.chosen = unsplit
        reason = ": no gain beyond the noise" if cut.median < whole.median else ""
        placed.note = f"not split: {split} takes {cut}, {unsplit} {whole}{reason}"


def _times(placed: Placed, calls: Mapping[str, Callable[[], object]]) -> dict[str, Spread]:
    on_gpu = placed.captured.example_inputs[0].is_cuda
    with torch.no_grad():
        return compare_calls(calls, on_gpu=on_gpu, repeats=30 if on_gpu and not placed.with_ends else 3)


def _described(value: torch.Tensor) -> str:
    return f"{'x'.join(map(str, value.shape))} {str(value.dtype).removeprefix('torch.')} on {value.device}"


def dynamo_backend(
    module: torch.fx.GraphModule, example_inputs: Sequence[Any], *, options: Mapping[str, Any] | None = None
) -> Callable[..., Any]:
    """`torch.compile(model, backend="placewright")`: every graph that dynamo finds gets a plan; what cannot be split,
    needs gradients or has dynamic shapes runs as it is, with one warning that says why. `options` are keywords of
    `compile`; graphs on the CPU need `devices` among them."""
    wishes = dict(options or {})
    reason = _unfit(example_inputs, wishes)
    if reason:
        warnings.warn(f"placewright runs this graph unsplit: {reason}", stacklevel=2)
        return module.forward
    fixed = {i: value for i, value in enumerate(example_inputs) if _is_static(value)}
    placed: list[Callable[..., Any]] = []

    def run(*inputs: torch.Tensor) -> Any:
        free = [value for i, value in enumerate(inputs) if i not in fixed]
        if not placed:  # outside of dynamo's tracing, where the graph can be exported
            placed.append(_placed_or_itself(_Bound(module, fixed), free, wishes))
        return placed[0](*free)

    return run


class _Bound(torch.nn.Module):
    """A graph with some of its inputs, the weights, filled in."""

    def __init__(self, module: torch.fx.GraphModule, fixed: Mapping[int, torch.Tensor]) -> None:
        super().__init__()
        self.module = module
        self.positions = sorted(fixed)
        for position, value in fixed.items():
            self.register_buffer(f"fixed_{position}", value.detach(), persistent=False)

    def forward(self, *free: torch.Tensor) -> Any:
        arguments = list(free)
        for position in self.positions:
            arguments.insert(position, getattr(self, f"fixed_{position}"))
        return self.module(*arguments)


def _is_static(value: object) -> bool:
    return isinstance(value, torch.nn.Parameter) or hasattr(value, "_dynamo_static_input_type")


def _unfit(example_inputs: Sequence[Any], wishes: Mapping[str, Any]) -> str:
    if not all(isinstance(value, torch.Tensor) for value in example_inputs):
        return "its shapes are dynamic"
    if torch.is_grad_enabled() and any(value.requires_grad for value in example_inputs):
        return "its inputs or weights need gradients"
    if not all(value.is_cuda for value in example_inputs) and "devices" not in wishes:
        return "it is not on a GPU, and no devices were given"
    return ""


def _placed_or_itself(
    module: torch.nn.Module, inputs: Sequence[torch.Tensor], wishes: Mapping[str, Any]
) -> Callable[..., Any]:
    try:
        fast = compile(module, inputs, **wishes)
    except Exception as error:
        warnings.warn(f"placewright runs this graph unsplit: {error}", stacklevel=2)
        return module
    return fast
