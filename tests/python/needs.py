"""What test modules need. A module is skipped with the reason where it is missing."""

from __future__ import annotations

import os

import pytest

import placewright

CORES = sorted(os.sched_getaffinity(0))


def extension() -> None:
    """The extension module, which plans."""
    try:
        placewright.version()
    except ImportError:
        pytest.skip("the extension module is not built", allow_module_level=True)


def two_cores() -> list[str]:
    """Two devices of a core each."""
    if len(CORES) < 2:
        pytest.skip("two cores are needed", allow_module_level=True)
    return [f"cpu:{core}" for core in CORES[:2]]
