"""Measurements that are kept between processes.

A profile is found again by a digest of what was measured: the atoms (operators, shapes, strides, weights' alignment and
edges), the device, the versions of what made and ran the kernels, and the settings that change them. Whatever differs
gives another digest, so a profile never has to be judged stale. Values of weights are not part of it.

Profiles are JSON files in the folder that PLACEWRIGHT_CACHE names; by default `placewright` in the user's cache folder,
and nowhere where it is `off`.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import platform
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import torch

from placewright.torch.kernels import Program

# Goes up when the meaning of a profile's content changes.
_LAYOUT = 1


def cached(
    program: Program, device: str, settings: Mapping[str, Any], measure: Callable[[], dict[str, Any]], fresh: bool
) -> dict[str, Any]:
    """What `measure` returns for this program on this device, taken from the cache where it is there. `fresh` measures
    in any case. A file that cannot be read or written counts as none."""
    folder = _folder()
    if folder is None:
        return measure()
    path = folder / f"{digest(program, device, settings)}.json"
    if not fresh:
        try:
            known: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            return known
        except (OSError, ValueError):
            pass
    found = measure()
    _write(path, found)
    return found


def digest(program: Program, device: str, settings: Mapping[str, Any]) -> str:
    """Equal for what is measured under equal conditions."""
    conditions = {
        "layout": _LAYOUT,
        "atoms": program.signatures,
        "after": program.atoms.after,
        "compiler": program.compiler,
        "device": device,
        "versions": _versions(),
        "settings": {
            **settings,
            "cudnn benchmark": torch.backends.cudnn.benchmark,
            "tf32": (torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32),
        },
    }
    return hashlib.sha256(json.dumps(conditions, sort_keys=True).encode()).hexdigest()


def gpu(device: torch.device) -> str:
    """A GPU as far as times depend on it: its name, memory and multiprocessors."""
    properties = torch.cuda.get_device_properties(device)
    return f"{properties.name}, {properties.total_memory} bytes, {properties.multi_processor_count} multiprocessors"


def cores(counts: Sequence[int]) -> str:
    """Sets of so many cores of this machine's processor."""
    return f"{_processor()}: {', '.join(map(str, counts))} cores"


@cache
def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def _versions() -> dict[str, str]:
    from placewright import version

    return {
        "placewright": version(),
        "torch": torch.__version__,
        "cuda": str(torch.version.cuda),
        "cudnn": str(torch.backends.cudnn.version()),
    }


def _folder() -> Path | None:
    named = os.environ.get("PLACEWRIGHT_CACHE")
    if named == "off":
        return None
    return Path(named or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "placewright")


def _write(path: Path, content: Mapping[str, Any]) -> None:
    temporary = path.with_suffix(f".{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text(json.dumps(content), encoding="utf-8")
        temporary.replace(path)
    except OSError:  # a cache that cannot be written is no reason to fail
        with contextlib.suppress(OSError):
            temporary.unlink()
