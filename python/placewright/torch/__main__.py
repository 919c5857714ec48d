"""`python -m placewright.torch VERB module:factory`: the factory returns a model and its example inputs.

profile   measures the atoms and writes problem.json
plan      plans as well, and writes problem.json and plan.json, which the program `placewright` reads
run       runs the plan and prints what was chosen
bench     measures one or more models and prints a table: the plan against the model unsplit, eager and compiled; a row
          that FOLDER has already is not measured again
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import json
import sys
import time
from collections.abc import Mapping, Sequence
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


def _row(name: str, options: argparse.Namespace) -> dict[str, Any]:
    """What `bench` found for a factory: read from the folder, or measured and written there."""
    path = Path(options.output) / f"{name.replace(':', '.')}.json"
    if path.exists():
        row: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return row
    begin = time.perf_counter()
    placed = _compile(name, options)
    times = {variant: dataclasses.asdict(spread) for variant, spread in placed.measure().items()}
    inputs = placed.captured.example_inputs
    row = {
        "model": name.partition(":")[2],
        "device": torch.cuda.get_device_name(inputs[0].device) if inputs[0].is_cuda else options.devices,
        "torch": torch.__version__,
        "atoms": len(placed.atoms.atoms),
        "seconds": round(time.perf_counter() - begin, 1),
        "chosen": placed.chosen,
        "note": placed.note,
        "milliseconds": times,
        "blocks": [dataclasses.asdict(block) for block in placed.rows],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps(row, indent=1), encoding="utf-8")
    temporary.replace(path)
    return row


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows of `bench` in Markdown: a column for each model, a line for each variant, medians in milliseconds; and how
    many times as fast as the compiled model the chosen variant is."""
    variants = list(dict.fromkeys(variant for row in rows for variant in row["milliseconds"]))
    lines = ["| | " + " | ".join(row["model"] for row in rows) + " |", "| --- |" + " --- |" * len(rows)]
    for variant in variants:
        cells = [row["milliseconds"].get(variant) for row in rows]
        lines.append(f"| {variant} | " + " | ".join(f"{c['median']:.3f}" if c else "" for c in cells) + " |")
    factors = []
    for row in rows:
        times = row["milliseconds"]
        base = times.get("torch.compile reduce-overhead", times["eager"])
        factors.append(f"{base['median'] / times[row['chosen']]['median']:.2f}")
    lines.append("| chosen | " + " | ".join(row["chosen"] for row in rows) + " |")
    lines.append("| chosen, factor | " + " | ".join(factors) + " |")
    lines.append("| seconds for the row | " + " | ".join(str(row["seconds"]) for row in rows) + " |")
    return "\n".join(lines)


def _compile(name: str, options: argparse.Namespace) -> Placed:
    model, inputs = _load(name)
    devices = options.devices.split() if options.devices else None
    return compile(model, inputs, devices=devices, effort=Effort(streams=options.streams, moves=options.moves))


def main(arguments: Sequence[str] | None = None) -> int:
    """The program; returns its exit code."""
    parser = argparse.ArgumentParser(prog="python -m placewright.torch", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("verb", choices=["profile", "plan", "run", "bench"])
    parser.add_argument("factory", metavar="module:factory", nargs="+")
    parser.add_argument("--devices", default=None, help="core sets, separated by spaces; default: streams of the GPU")
    parser.add_argument("--streams", type=int, default=Effort.streams)
    parser.add_argument("--moves", type=int, default=Effort.moves)
    parser.add_argument("-o", "--output", default=".", metavar="FOLDER")
    options = parser.parse_args(arguments)
    try:
        if options.verb == "bench":
            print(table([_row(name, options) for name in options.factory]))
            return 0
        if len(options.factory) > 1:
            raise ValueError(f"'{options.verb}' takes one factory")
        placed = _compile(options.factory[0], options)
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
    return 0


if __name__ == "__main__":
    sys.exit(main())
