"""Stages as `torch.distributed.pipelining` takes them, also where the backend cannot send what they compute."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.distributed as dist
from torch.distributed.pipelining import PipelineStage


def engine_stage(
    module: torch.nn.Module,
    number: int,
    ranks: Sequence[int],
    device: torch.device,
    group: dist.ProcessGroup | None,
) -> PipelineStage:
    """Stage `number` of a pipeline, whose module lies on `device`; `ranks` are those of all its stages in the group."""
    by_host = goes_through_host(device, group)
    seen = _ThroughHost(module, device, last=number == len(ranks) - 1) if by_host else module
    stage = PipelineStage(seen, number, len(ranks), torch.device("cpu") if by_host else device, group=group)
    stage.stage_index_to_group_rank = dict(enumerate(ranks))
    return stage


def goes_through_host(device: torch.device, group: dist.ProcessGroup | None) -> bool:
    """Whether tensors of a device must be copied to the host to be sent: gloo sends no others."""
    return device.type != "cpu" and dist.get_backend(group) == "gloo"


class _ThroughHost(torch.nn.Module):
    """A stage on a GPU as an engine sees it that sends tensors of the host only: takes them from there, and returns
    them there. The results of the last stage go nowhere and stay."""

    def __init__(self, stage: torch.nn.Module, device: torch.device, *, last: bool) -> None:
        super().__init__()
        self.stage, self.device, self.last = stage, device, last

    def forward(self, *values: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """What the stage computes."""
        results: tuple[torch.Tensor, ...] = self.stage(*(value.to(self.device) for value in values))
        return results if self.last else tuple(_on_host(value) for value in results)


def _on_host(value: torch.Tensor) -> torch.Tensor:
    """A copy in pinned memory, which a GPU reads and writes at the full speed of its link."""
    host = torch.empty(value.shape, dtype=value.dtype, pin_memory=True)
    return host.copy_(value)
