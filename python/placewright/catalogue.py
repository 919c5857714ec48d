"""Devices and links that are not at hand, by what their makers publish, and times estimated from that.

The catalogue is the program's (`placewright devices --catalogue` has the sources), and so is the estimate: an op takes
the longer of flops / speed and bytes / bandwidth, and the launch time (docs/formats/cluster.md).
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping

from placewright import _native


@dataclasses.dataclass(frozen=True)
class Work:
    """What an op does: floating-point operations, bytes that it reads and writes, whether it multiplies matrices, and
    whether with numbers of 16 bits."""

    flops: float
    bytes: float
    of_matrices: bool
    in_half: bool


@dataclasses.dataclass(frozen=True)
class Kind:
    """What a kind of device has and can do at most: bytes, flops (of f32) and bytes per second, seconds of a launch,
    flops of products of matrices in 16 bits (0: as in f32)."""

    memory: float
    flops: float
    bandwidth: float
    launch: float = 0.0
    half_flops: float = 0.0

    def seconds(self, work: Work) -> float:
        """The estimated time of an op."""
        peaks = (self.flops, self.bandwidth, self.launch, self.half_flops)
        return _native.estimated_seconds(*peaks, work.flops, work.bytes, work.of_matrices, work.in_half)


@dataclasses.dataclass(frozen=True)
class LinkKind:
    """Seconds until the first byte, and bytes per second."""

    latency: float
    bandwidth: float


@functools.cache
def kinds() -> Mapping[str, Kind]:
    """The devices of the catalogue."""
    return {name: Kind(*figures) for name, figures in _native.catalogue()[0].items()}


@functools.cache
def links() -> Mapping[str, LinkKind]:
    """The links of the catalogue."""
    return {name: LinkKind(*figures) for name, figures in _native.catalogue()[1].items()}
