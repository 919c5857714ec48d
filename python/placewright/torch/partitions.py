"""Disjoint partitions of a GPU by multiprocessors, as unequal devices (green contexts).

`partition_gpu([64, 32, 16, 8])` splits the GPU once into groups of eight multiprocessors, the least that the driver
hands out, and joins as many groups as each partition needs. One split for all matters: every split starts from the
whole GPU, so two contexts that were split apart may overlap.

Work launched on a partition's stream, and CUDA graphs captured on it, run on its multiprocessors alone. Memory, its
bandwidth and the second-level cache are shared by all.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import torch

GROUP = 8


class NoPartitions(Exception):
    """This machine cannot partition its GPU; the message is one sentence that says why."""


@dataclasses.dataclass(frozen=True)
class Partition:
    """Some multiprocessors of a GPU, and a stream on them. `context` keeps them reserved."""

    multiprocessors: int
    stream: torch.cuda.ExternalStream
    context: object


def multiprocessors_of(device: str) -> int:
    """64 for 'cuda:0/64': that many multiprocessors of the GPU. Raises ValueError for anything else."""
    gpu, _, count = device.partition("/")
    if gpu not in ("cuda", "cuda:0") or not count.isdigit() or int(count) % GROUP or int(count) == 0:
        raise ValueError(f"'{device}' names no partition; expected cuda:0/N with N a multiple of {GROUP}")
    return int(count)


def partition_gpu(multiprocessors: Sequence[int]) -> list[Partition]:
    """Disjoint partitions of the first GPU with these numbers of multiprocessors, multiples of eight."""
    try:
        from cuda.bindings import driver  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        raise NoPartitions("partitions of a GPU need the package cuda-bindings") from None
    if not torch.cuda.is_available():
        raise NoPartitions("there is no GPU to partition")
    torch.cuda.init()
    torch.zeros(1, device="cuda")  # the primary context exists from here on
    gpu = _checked(driver.cuDeviceGet(0), "find the GPU")
    kind = driver.CUdevResourceType.CU_DEV_RESOURCE_TYPE_SM
    everything = _checked(driver.cuDeviceGetDevResource(gpu, kind), "list multiprocessors")
    groups_needed = sum(count // GROUP for count in multiprocessors)
    groups, found, _ = _checked(
        driver.cuDevSmResourceSplitByCount(groups_needed, everything, 0, GROUP), "split multiprocessors"
    )
    if found < groups_needed:
        raise NoPartitions(f"the GPU has {found} groups of {GROUP} multiprocessors, and {groups_needed} were asked for")
    partitions = []
    for count in multiprocessors:
        mine, groups = groups[: count // GROUP], groups[count // GROUP :]
        descriptor = _checked(driver.cuDevResourceGenerateDesc(mine, len(mine)), "describe a partition")
        default_stream = driver.CUgreenCtxCreate_flags.CU_GREEN_CTX_DEFAULT_STREAM
        context = _checked(driver.cuGreenCtxCreate(descriptor, gpu, default_stream), "create a partition")
        non_blocking = driver.CUstream_flags.CU_STREAM_NON_BLOCKING
        stream = _checked(driver.cuGreenCtxStreamCreate(context, non_blocking, 0), "create a stream")
        partitions.append(Partition(count, torch.cuda.ExternalStream(int(stream)), context))
    return partitions


def _checked(answer: tuple[Any, ...], what: str) -> Any:
    """What the driver returned beside its error code: nothing, one value or several."""
    error, *values = answer
    if int(error) != 0:
        raise NoPartitions(f"the driver cannot {what}: {error.name}")
    return values[0] if len(values) == 1 else values
