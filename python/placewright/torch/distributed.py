"""Pipelines over several processes and hosts: plans for `torch.distributed.pipelining`.

    torch.distributed.init_process_group("gloo")                     # under torchrun
    problem = placewright.torch.measure_ranks(model, (x,), micro_batches=8, training=True)
    plan = placewright.torch.plan_together(problem)
    with placewright.torch.pipeline(model, (x,), plan, micro_batches=8, loss=loss) as pipe:
        optimizer = torch.optim.Adam(pipe.parameters())
        outputs, losses = pipe.step(batch, target=target)
        optimizer.step()

Every rank is a device: `measure_ranks` (rank_costs.py) times each atom on every rank, all at once, and the links
between them; the planner cuts the chain of atoms (chain.py) into stages. `pipeline` builds the stages of a plan for
PyTorch's own engine, which moves the tensors: GPipe, 1F1B, interleaved 1F1B or zero-bubble. Replicas of a stage become
data-parallel groups. `x` is one micro-batch. What the engine cannot do is refused with a sentence (CannotPipeline).
"""

from __future__ import annotations

import dataclasses
import os
import shutil
import socket
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_state_dict, set_state_dict
from torch.distributed.checkpoint.state_dict_loader import load as load_checkpoint
from torch.distributed.checkpoint.state_dict_saver import save as save_checkpoint
from torch.distributed.pipelining import (
    Schedule1F1B,
    ScheduleGPipe,
    ScheduleInterleaved1F1B,
    ScheduleInterleavedZeroBubble,
)
from torch.utils import _pytree as pytree

import placewright
from placewright.torch.chain import Chain, StageModule, attach, chain_of
from placewright.torch.engine import engine_stage
from placewright.torch.rank_costs import device_of
from placewright.torch.training import BACKWARD
from placewright.torch.watch import Watch

Loss = Callable[[Any, torch.Tensor], torch.Tensor]

SCHEDULES: Mapping[str, Any] = {
    "gpipe": ScheduleGPipe,
    "1f1b": Schedule1F1B,
    "interleaved": ScheduleInterleaved1F1B,
    "zero-bubble": ScheduleInterleavedZeroBubble,
}
# Optimizer states by the names of weights: lists of them would differ from rank to rank.
_CHECKPOINT = StateDictOptions(flatten_optimizer_state_dict=True)
# Those whose ranks have several stages each.
_LOOPED = ("interleaved", "zero-bubble")


class CannotPipeline(Exception):
    """The plan cannot be run by torch.distributed.pipelining; the message is one sentence that says why."""


# --- what a plan asks for
# ---------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class StagePlan:
    """A stage: its atoms, and the ranks that share it, one for each replica."""

    atoms: tuple[int, ...]
    ranks: tuple[int, ...]


def stage_plans(chain: Chain, plan: placewright.Plan, ranks_of: Sequence[int]) -> list[StagePlan]:
    """The stages of a plan in the order of the pipeline; `ranks_of` gives the rank of each device. Raises
    CannotPipeline where the plan does not fit the model or the engine."""
    index_of = {atom.name: atom.index for atom in chain.atoms.atoms}
    names = plan.problem.op_names
    if plan.problem.objective != "throughput":
        raise CannotPipeline(f"a pipeline needs a plan for throughput; this one is for {plan.problem.objective}")
    stages = []
    for devices, ops, _ in plan.stages:
        forward = [names[op] for op in ops if not names[op].endswith(BACKWARD)]
        unknown = [name for name in forward if name not in index_of]
        if unknown:
            raise CannotPipeline(f"the plan places '{unknown[0]}', which is no atom of the model")
        if forward:
            atoms = tuple(sorted(index_of[name] for name in forward))
            stages.append(StagePlan(atoms, tuple(ranks_of[device] for device in devices)))
    _refuse_what_the_plan_lacks(chain, stages)
    return stages


def _refuse_what_the_plan_lacks(chain: Chain, stages: Sequence[StagePlan]) -> None:
    placed = {atom: number for number, stage in enumerate(stages) for atom in stage.atoms}
    for atom in chain.atoms.atoms:
        if atom.index not in placed:
            raise CannotPipeline(f"the plan places no op '{atom.name}'")
        late = [before for before in atom.after if placed[before] > placed[atom.index]]
        if late:
            name = chain.atoms.atoms[late[0]].name
            raise CannotPipeline(f"'{atom.name}' would need '{name}' of a later stage; plan with joint contiguity")
    counts = {len(stage.ranks) for stage in stages}
    if len(counts) > 1:
        first, second = sorted(counts)[:2]
        raise CannotPipeline(
            f"the engine's data-parallel groups are of one size; the plan has stages on {first} and on {second} devices"
        )


def plan_together(problem: placewright.Problem, planner: str = "auto", **options: Any) -> placewright.Plan:
    """Plans on rank 0 and hands the plan to all ranks; called by all of them together."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "plan.json"
        text: list[Any] = [None]
        if dist.get_rank() == 0:
            made = placewright.plan(problem, planner, **options)
            if made.status in ("optimal", "feasible"):
                made.save(path)
                text = [path.read_text(encoding="utf-8")]
            else:
                text = [CannotPipeline(f"there is no plan: {made.reason}")]
        dist.broadcast_object_list(text, src=0)
        if isinstance(text[0], CannotPipeline):
            raise text[0]
        path.write_text(text[0], encoding="utf-8")
        return placewright.Plan.read(path)


# --- the pipeline
# --------------------------------------------------------------------------------------------------


class RankPipeline:
    """This rank's part of a pipeline. `stages` are those of the whole plan, `modules` the stages of this rank (none:
    the plan does not use it)."""

    def __init__(
        self,
        model: torch.nn.Module,
        chain: Chain,
        stages: Sequence[StagePlan],
        schedule: str,
        micro_batches: int,
        loss: Loss | None,
        title: str,
    ) -> None:
        self.stages = stages
        self.micro_batches = micro_batches
        self.replicas = len(stages[0].ranks)
        self.rank = dist.get_rank()
        self.mine = [number for number, stage in enumerate(stages) if self.rank in stage.ranks]
        self.replica = stages[self.mine[0]].ranks.index(self.rank) if self.mine else 0
        self.modules = torch.nn.ModuleList(self._module(model, chain, number) for number in self.mine)
        self.out_spec = chain.captured.out_spec
        self.watch = Watch(self._title(title))
        self._make_groups(chain)
        self._inference = self._make_engine(schedule if schedule in _LOOPED else "gpipe", None)
        self._training = self._make_engine(schedule, loss) if loss is not None else None
        self.order = self._order(schedule, loss is not None)
        self.predicted: float | None = None  # microseconds of a step or run

    def _module(self, model: torch.nn.Module, chain: Chain, number: int) -> StageModule:
        before = [atom for stage in self.stages[:number] for atom in stage.atoms]
        return StageModule(chain, model, before, self.stages[number].atoms)

    def _title(self, device: str) -> str:
        stages = ", ".join(str(number) for number in self.mine) or "none"
        replica = f", replica {self.replica}" if self.replicas > 1 else ""
        return f"stage {stages}{replica} (rank {self.rank}, device '{device}', host '{socket.gethostname()}')"

    def _make_groups(self, chain: Chain) -> None:
        """Groups are made by all ranks in the same order, also by those that are not in them."""
        self.line = None
        for replica in range(self.replicas):
            group = dist.new_group(sorted({stage.ranks[replica] for stage in self.stages}))
            if self.mine and replica == self.replica:
                self.line = group
        self.copies = [
            group
            for stage in self.stages
            if (group := dist.new_group(list(stage.ranks))) is not None and self.rank in stage.ranks
        ]
        self.tied: dict[str, dist.ProcessGroup] = {}
        for weight, atoms in chain.shared_weights().items():
            holders = [stage for stage in self.stages if set(stage.atoms) & set(atoms)]
            for replica in range(self.replicas):
                ranks = sorted({stage.ranks[replica] for stage in holders})
                if len(ranks) > 1:
                    group = dist.new_group(ranks)
                    if self.rank in ranks:
                        self.tied[weight] = group

    def _make_engine(self, schedule: str, loss: Loss | None) -> Any:
        if not self.mine:
            return None
        members = sorted(stage.ranks[self.replica] for stage in self.stages)
        place = {rank: number for number, rank in enumerate(dict.fromkeys(members))}
        ranks = [place[stage.ranks[self.replica]] for stage in self.stages]
        device = device_of(self.modules)
        stages = [
            engine_stage(module, number, ranks, device, self.line)
            for number, module in zip(self.mine, self.modules, strict=True)
        ]
        returns = None if loss is None else lambda output, target: loss(self._result(output), target)
        if schedule in _LOOPED:
            return SCHEDULES[schedule](stages, self.micro_batches, loss_fn=returns)
        return SCHEDULES[schedule](stages[0], self.micro_batches, loss_fn=returns)

    def _order(self, schedule: str, training: bool) -> list[list[Action]]:
        """What the ranks of a line do, one action after the other; nothing on ranks without a stage."""
        if not self.mine:
            return []
        if schedule not in _LOOPED:
            ahead = self.micro_batches if schedule == "gpipe" else None
            return [self._single_order(number, ahead, training) for number in range(len(self.stages))]
        kinds = ("F", "B", "I", "W") if training else ("F",)
        return [
            [(a.stage_index, a.computation_type.value, a.microbatch_index) for a in actions if _kind(a) in kinds]
            for actions in self._inference.pipeline_order.values()
        ]

    def _single_order(self, stage: int, ahead: int | None, training: bool) -> list[Action]:
        """A stage alone on its rank has `ahead` forward actions before the first backward one; 1F1B: as many as there
        are stages from it to the end."""
        forward: list[Action] = [(stage, "F", sample) for sample in range(self.micro_batches)]
        if not training:
            return forward
        first = min(self.micro_batches, ahead or len(self.stages) - stage)
        backward: list[Action] = [(stage, "B", sample) for sample in range(self.micro_batches)]
        alternating = [action for pair in zip(backward, forward[first:], strict=False) for action in pair]
        return [*forward[:first], *alternating, *backward[len(forward) - first :]]

    def _result(self, outputs: Any) -> Any:
        """What the model itself would return, from what the last stage does."""
        flat = list(outputs) if isinstance(outputs, tuple | list) else [outputs]
        return pytree.tree_unflatten(flat, self.out_spec)

    @property
    def is_last(self) -> bool:
        """Whether this rank gets the outputs."""
        return len(self.stages) - 1 in self.mine

    def parameters(self) -> list[torch.nn.Parameter]:
        """The weights of this rank's stages, each once. A rank that the plan leaves out has one empty weight, because
        an optimizer needs at least one."""
        return list(self.modules.parameters()) or [torch.nn.Parameter(torch.empty(0))]

    def named_parameters(self) -> dict[str, torch.nn.Parameter]:
        """The weights of this rank's stages, as the model calls them."""
        return {name: value for module in self.modules for name, value in module.named_parameters()}

    def run(self, *inputs: torch.Tensor) -> Any:
        """Inference on a batch, which every rank is given whole: the last stage returns the outputs for the part of the
        batch that its replica has, the others None."""
        if not self.mine:
            return None
        with torch.no_grad():
            outputs = self._inference.step(*self._part(inputs))
        return self._result(outputs) if self.is_last else None

    def step(self, *inputs: torch.Tensor, target: torch.Tensor) -> tuple[Any, list[torch.Tensor]]:
        """Forward and backward on a batch, which every rank is given whole. Gradients are then those of the mean loss
        over the whole batch. The last stage returns outputs and losses, the others None and nothing."""
        if not self.mine:
            return None, []
        if self._training is None:
            raise ValueError("the pipeline was made without a loss, for inference")
        losses: list[torch.Tensor] = []
        wanted = self._slice(target) if self.is_last else None
        outputs = self._training.step(*self._part(inputs), target=wanted, losses=losses)
        self._add_up_gradients()
        return (self._result(outputs), losses) if self.is_last else (None, [])

    def _part(self, inputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """What the engine is given here: the first stage takes the inputs, the others what they receive."""
        return [self._slice(value) for value in inputs] if 0 in self.mine else []

    def _slice(self, batch: torch.Tensor) -> torch.Tensor:
        parts = self.micro_batches * self.replicas
        if batch.shape[0] % parts:
            raise ValueError(
                f"a batch of {batch.shape[0]} cannot be cut into {self.micro_batches} micro-batches for each of "
                f"{self.replicas} replicas"
            )
        size = batch.shape[0] // self.replicas
        return batch[self.replica * size : (self.replica + 1) * size]

    def _add_up_gradients(self) -> None:
        """Weights of several stages get the sum of what their stages found, then replicas their mean."""
        named = self.named_parameters()
        for weight, group in self.tied.items():
            dist.all_reduce(_gradient(named[weight]), group=group)
        if self.replicas > 1:
            for module, group in zip(self.modules, self.copies, strict=True):
                for parameter in module.parameters():
                    dist.all_reduce(_gradient(parameter).div_(self.replicas), group=group)

    def save(self, folder: str | os.PathLike[str], optimizer: torch.optim.Optimizer, step: int) -> None:
        """Writes weights and optimizer after so many steps, with PyTorch's distributed checkpoints, and then removes
        what was saved before; called by all ranks, with a folder that all of them see. Weights have their names in the
        model, so that another plan can go on from here."""
        here = Path(folder) / f"step-{step}"
        save_checkpoint(self._state(optimizer), checkpoint_id=here)
        dist.barrier()
        if self.rank == 0:
            for other in Path(folder).glob("step-*"):
                if other != here:
                    shutil.rmtree(other)

    def resume(self, folder: str | os.PathLike[str], optimizer: torch.optim.Optimizer) -> int:
        """Reads the newest whole checkpoint that `save` wrote; returns its step, 0 where there is none."""
        steps = [int(path.parent.name.removeprefix("step-")) for path in Path(folder).glob("step-*/.metadata")]
        if not steps:
            return 0
        state = self._state(optimizer)
        load_checkpoint(state, checkpoint_id=Path(folder) / f"step-{max(steps)}")
        if not state:
            return max(steps)
        states = {"model_state_dict": state["model"], "optim_state_dict": state["optimizer"]}
        set_state_dict(_Flat(self), optimizer, **states, options=_CHECKPOINT)
        return max(steps)

    def _state(self, optimizer: torch.optim.Optimizer) -> dict[str, Any]:
        if not self.named_parameters():
            return {}
        model_state, optimizer_state = get_state_dict(_Flat(self), optimizer, options=_CHECKPOINT)
        return {"model": model_state, "optimizer": optimizer_state}

    def close(self) -> None:
        """Ends this rank's part. Ranks that end without it, but not by an exception, have it called for them."""
        self.watch.close()

    def __enter__(self) -> RankPipeline:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        if error is None:
            self.close()


def _kind(action: Any) -> str:
    return "" if action is None else str(action.computation_type.value)


class _Flat(torch.nn.Module):
    """The weights of all stages of a rank under their names in the model, as checkpoints hold them."""

    def __init__(self, pipeline: RankPipeline) -> None:
        super().__init__()
        for stage in pipeline.modules:
            for name, value in stage.state_dict(keep_vars=True).items():
                attach(self, name, value)


def _gradient(parameter: torch.nn.Parameter) -> torch.Tensor:
    """A weight's gradient; zeros where the loss does not depend on it, since other ranks wait for their part."""
    if parameter.grad is None:
        parameter.grad = torch.zeros_like(parameter)
    return parameter.grad


def pipeline(
    model: torch.nn.Module,
    example_inputs: Sequence[Any],
    plan: placewright.Plan,
    *,
    micro_batches: int,
    schedule: str = "1f1b",
    loss: Loss | None = None,
    ranks: Mapping[str, int] | None = None,
) -> RankPipeline:
    """Builds this rank's part of a throughput plan; all ranks of the job call it together.

    `example_inputs` are one micro-batch. `loss(outputs, target)` is the mean loss of one; without it the pipeline is
    for inference. `ranks` gives the rank of each device by name; by default the first device is rank 0, and so on.
    For `interleaved` and `zero-bubble` several devices of a rank have one stage each ('a#0', 'a#1': `ranks` maps both
    to the rank of a).
    """
    chain = chain_of(model, example_inputs)
    names = plan.problem.device_names
    ranks_of = [ranks[name] for name in names] if ranks else list(range(len(names)))
    stages = stage_plans(chain, plan, ranks_of)
    refuse_schedule(chain, stages, schedule, micro_batches, dist.get_world_size())
    rank = dist.get_rank()
    device = ", ".join(name for name, number in zip(names, ranks_of, strict=True) if number == rank) or "unused"
    made = RankPipeline(model, chain, stages, schedule, micro_batches, loss, device)
    made.predicted = predicted_step(plan, stages, made.order) if made.order else None
    return made


def refuse_schedule(chain: Chain, stages: Sequence[StagePlan], schedule: str, micro_batches: int, world: int) -> None:
    """Raises CannotPipeline where the engine's schedule cannot run these stages on so many ranks."""
    if schedule not in SCHEDULES:
        raise CannotPipeline(f"there is no schedule '{schedule}'; there are {', '.join(SCHEDULES)}")
    highest = max(rank for stage in stages for rank in stage.ranks)
    if highest >= world:
        raise CannotPipeline(f"the plan uses rank {highest}, and the job has {world} ranks")
    for replica in range(len(stages[0].ranks)):
        line = [stage.ranks[replica] for stage in stages]
        if schedule not in _LOOPED and len(set(line)) < len(line):
            raise CannotPipeline(f"'{schedule}' has one stage on each rank; several on one need 'interleaved'")
        loop = sorted(set(line))
        if schedule in _LOOPED and any(rank != loop[n % len(loop)] for n, rank in enumerate(line)):
            raise CannotPipeline(f"'{schedule}' goes round the ranks in order, the plan's stages are on ranks {line}")
        if schedule in _LOOPED and len(line) % len(loop):
            raise CannotPipeline(f"'{schedule}' needs equally many stages on each rank, the plan has them on {line}")
    if schedule == "1f1b" and micro_batches < len(stages):
        raise CannotPipeline(f"'1f1b' needs at least as many micro-batches as stages, {len(stages)}")
    if schedule == "zero-bubble" and (shared := _in_several_stages(chain, stages)):
        raise CannotPipeline(f"'zero-bubble' counts weights of several stages twice, and '{shared}' is one")


def _in_several_stages(chain: Chain, stages: Sequence[StagePlan]) -> str | None:
    for weight, atoms in chain.shared_weights().items():
        if sum(bool(set(stage.atoms) & set(atoms)) for stage in stages) > 1:
            return weight
    return None


# --- how long a step takes
# --------------------------------------------------------------------------------------------

# What a rank does, in order: stage, 'F' or 'B' (or its parts 'I' and 'W'), micro-batch.
Action = tuple[int, str, int]


def predicted_step(plan: placewright.Plan, stages: Sequence[StagePlan], order: Sequence[Sequence[Action]]) -> float:
    """Microseconds for one step of the schedule by the costs of the plan's problem. Unlike the plan's value, the time
    between two samples of a stream without end, this has the pipeline fill and run empty."""
    durations = _durations(plan, stages)
    ends: dict[Action, float] = {}
    free = [0.0] * len(order)
    waiting = [list(actions) for actions in order]
    while any(waiting):
        progress = False
        for rank, actions in enumerate(waiting):
            while actions and (ready := _ready(actions[0], ends, len(stages))) is not None:
                action = actions.pop(0)
                free[rank] = max(free[rank], ready) + durations[action[0], action[1]]
                ends[action] = free[rank]
                progress = True
        if not progress:
            raise CannotPipeline("the schedule waits for itself")
    return max(free)


def _ready(action: Action, ends: Mapping[Action, float], count: int) -> float | None:
    """When the inputs of an action are there; None: they are not known yet."""
    stage, kind, sample = action
    if kind == "F":
        return 0.0 if stage == 0 else ends.get((stage - 1, "F", sample))
    if kind == "W":
        return ends.get((stage, "I", sample))
    own = ends.get((stage, "F", sample))
    if stage == count - 1 or own is None:
        return own
    later = ends.get((stage + 1, "B", sample), ends.get((stage + 1, "I", sample)))
    return None if later is None else max(own, later)


def _durations(plan: placewright.Plan, stages: Sequence[StagePlan]) -> dict[tuple[int, str], float]:
    """Of each stage's forward and backward action, with its share of the transfers at both ends."""
    problem, times = plan.problem, plan.problem.times
    document = problem.to_document()
    place: dict[str, tuple[int, str]] = {}
    found: dict[tuple[int, str], float] = {}
    for number, (devices, ops, _) in enumerate(entry for entry in plan.stages if entry[1]):
        for op in ops:
            key = (number, "B" if problem.op_names[op].endswith(BACKWARD) else "F")
            place[problem.op_names[op]] = key
            found[key] = found.get(key, 0.0) + float(times[op, devices[0]])
    link = document["interconnect"].get("all", {})
    for tensor in document["tensors"]:
        source = place[tensor["from"]]
        for target in {place[reader] for reader in tensor["to"]}:
            if target[0] != source[0]:
                cost = link.get("latency", 0.0) + tensor["bytes"] / link.get("bandwidth", float("inf"))
                found[source] += cost
                found[target] += cost
    for number in range(len(stages)):  # the engine's zero-bubble schedules split the backward pass in two
        whole = found.setdefault((number, "B"), 0.0)
        found[number, "I"] = found[number, "W"] = whole / 2
    return found
