"""`python -m placewright.torch VERB module:factory`: the factory returns a model and its example inputs.

profile   measures the atoms and writes problem.json
plan      plans as well, and writes problem.json and plan.json, which the program `placewright` reads
run       runs the plan and prints what was chosen
bench     prints a table: the plan against the model unsplit, eager and compiled
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from placewright.torch.capture import CannotCapture
from placewright.torch.placed import Placed, compile
from placewright.torch.stream_search import Effort


def _load(name: str) -> tuple[torch.nn.Module, Sequence[Any]]:
    module_name, _, factory = name.partition(":")
    if not factory:
        raise ValueError(f"'{name}' names no factory; expected module:factory")
    sys.path.insert(0, ".")
    model, inputs = getattr(importlib.import_module(module_name), factory)()
    return model, inputs


def _table(placed: Placed) -> str:
    times = placed.measure()
    base = times["torch.compile reduce-overhead" if "torch.compile reduce-overhead" in times else "eager"].median
    lines = [f"{'variant':32s} {'ms':>8s} {'low':>8s} {'high':>8s} {'factor':>7s}"]
    for name, spread in times.items():
        lines.append(
            f"{name:32s} {spread.median:8.4f} {spread.low:8.4f} {spread.high:8.4f} {base / spread.median:7.3f}"
        )
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """The program; returns its exit code."""
    parser = argparse.ArgumentParser(prog="python -m placewright.torch", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("verb", choices=["profile", "plan", "run", "bench"])
    parser.add_argument("factory", metavar="module:factory")
    parser.add_argument("--devices", default=None, help="core sets, separated by spaces; default: streams of the GPU")
    parser.add_argument("--streams", type=int, default=Effort.streams)
    parser.add_argument("--moves", type=int, default=Effort.moves)
    parser.add_argument("-o", "--output", default=".", metavar="FOLDER")
    options = parser.parse_args(arguments)
    try:
        model, inputs = _load(options.factory)
        devices = options.devices.split() if options.devices else None
        effort = Effort(streams=options.streams, moves=options.moves)
        placed = compile(model, inputs, devices=devices, effort=effort)
    except (CannotCapture, ValueError, ImportError, AttributeError) as error:
        print(f"placewright.torch: error: {error}", file=sys.stderr)
        return 3
    print(placed.note)
    if options.verb == "profile":
        Path(options.output).mkdir(parents=True, exist_ok=True)
        text = json.dumps(placed.problem_document(), indent=1)
        (Path(options.output) / "problem.json").write_text(text, encoding="utf-8")
    elif options.verb == "plan":
        placed.save(options.output)
    elif options.verb == "bench":
        print(_table(placed))
    return 0


if __name__ == "__main__":
    sys.exit(main())
