#!/usr/bin/env python3
"""Large models from their configuration, on devices that nobody has to have: docs/results/large-models.md.

    PYTHONPATH=python:.deps/torch PLACEWRIGHT_NATIVE=build/release/python/placewright bench/large_models.py \
        -o docs/results/large-models.md

Every model is traced, priced and planned; the planners that the Moirai paper compares have an equal share of the same
time. Rows are kept in FOLDER (-f) as they are found, so that the run can be interrupted.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import statistics
import textwrap
import time
from pathlib import Path
from typing import Any

import placewright

if "PLACEWRIGHT_NATIVE" in os.environ:
    placewright.__path__.append(os.environ["PLACEWRIGHT_NATIVE"])

from placewright.torch.large_models import MODELS, parameters

LINK = "PCIe-4.0-x16"
FOUR = ["P100-16GB", "V100-32GB", "A100-40GB", "A100-80GB"]
EIGHT = ["V100-32GB", "V100-32GB", "A100-40GB", "A100-40GB", "L40S", "L40S", "A100-80GB", "A100-80GB"]
COMPARED = ["getf", "sct", "placeto", "moirai"]
PAPER = [name for name in MODELS if name.startswith(("swin", "gpt3", "alphafold2"))]


def named(kinds: list[str]) -> dict[str, str]:
    return {f"d{number}": kind for number, kind in enumerate(kinds)}


def row(name: str, kinds: list[str], seconds: float, compared: list[str], objective: str) -> dict[str, Any]:
    begin = time.perf_counter()
    document = MODELS[name].document(named(kinds), LINK, objective=objective)
    problem = placewright.Problem.from_document(document)
    captured = time.perf_counter() - begin
    others = placewright.compare(problem, compared, time_limit=seconds * len(compared)).plans if compared else ()
    begin = time.perf_counter()
    ours = placewright.plan(problem, time_limit=seconds)
    return {
        "model": name,
        "devices": len(kinds),
        "objective": objective,
        "parameters": parameters(document, MODELS[name].dtype.itemsize),
        "ops": len(document["ops"]),
        "captured": captured,
        "planned": time.perf_counter() - begin,
        "value": ours.value,
        "gap": ours.gap,
        "planner": ours.planner,
        "status": ours.status,
        "others": {plan.planner: plan.value for plan in others},
        "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }


def kept(
    folder: Path, name: str, kinds: list[str], seconds: float, compared: list[str], objective: str = "latency"
) -> dict[str, Any]:
    path = folder / f"{name}-{len(kinds)}-{objective}.json"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(row(name, kinds, seconds, compared, objective), indent=1), encoding="utf-8")
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def milliseconds(value: float | None) -> str:
    return "none" if value is None or not math.isfinite(value) else f"{value:.4g}"


def table(rows: list[dict[str, Any]]) -> str:
    head = ["model", "weights", "ops", *COMPARED, "ours", "gap", "best of the others / ours"]
    lines = ["| " + " | ".join(head) + " |", "| --- |" + " ---: |" * (len(head) - 1)]
    for entry in rows:
        best = min(entry["others"].values())
        cells = [entry["model"], f"{entry['parameters'] / 1e9:.3g} B", str(entry["ops"])]
        cells += [milliseconds(entry["others"].get(name)) for name in COMPARED]
        cells += [milliseconds(entry["value"]), f"{100 * entry['gap']:.1f} %", f"{best / entry['value']:.3f}"]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def page(paper: list[dict[str, Any]], more: list[dict[str, Any]], seconds: float) -> str:
    ratios = [min(entry["others"].values()) / entry["value"] for entry in paper]
    worse = [entry["model"] for entry, ratio in zip(paper, ratios, strict=True) if ratio < 1 - 1e-9]
    median, gap = statistics.median(ratios), 100 * statistics.median(entry["gap"] for entry in paper)
    verdict = "never above the best of theirs" if not worse else "above the best of theirs for " + ", ".join(worse)
    lines = [
        "| model | weights | ops | devices | captured and priced | planned for | in | value | gap | peak memory |",
        "| --- | ---: | ---: | ---: | ---: | --- | ---: | ---: | ---: | ---: |",
    ]
    for entry in more:
        cells = [entry["model"], f"{entry['parameters'] / 1e9:.3g} B", str(entry["ops"]), str(entry["devices"])]
        cells += [f"{entry['captured']:.1f} s", entry["objective"], f"{entry['planned']:.2f} s"]
        cells += [f"{milliseconds(entry['value'])} ms"]
        cells += [f"{100 * entry['gap']:.1f} %", f"{entry['memory'] / 1e9:.2f} GB"]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n\n".join(
        [
            "# Large models",
            filled(
                f"""Eleven models of the sizes in the Moirai paper on {", ".join(FOUR)}. `getf`, `sct` (m-SCT), `placeto`
                and `moirai` are our implementations of the methods that the paper compares. Our plan is {verdict}. The
                last column says how many times as fast our plan is as the best of the others: {median:.3f} in the
                median, with a median gap of {gap:.1f} %."""
            ),
            table(paper),
            filled(
                f"""All times are estimates from the catalogue (`placewright devices --catalogue`), in milliseconds for
                one sample. Such estimates can be off by [a factor of two or
                more](../formats/cluster.md#devices-that-are-not-at-hand). Weights are in f32. The devices are joined by
                {LINK}. Each planner has {seconds:g} s."""
            ),
            filled(
                """`bench/large_models.py` writes this page. It takes the models from their configuration
                (`placewright.torch.large_models`): it traces one layer of each type with fake tensors and repeats it,
                without weights and without a download."""
            ),
            "## Larger models and clusters",
            filled(
                f"""Weights of Llama and Mixtral are in bf16, which has matrix units; f32 has none.
                `llama-70b-generation` is one token after 8192, with the cache of keys and values in memory. The eight
                devices are {", ".join(EIGHT)}. The 64 devices are sixteen each of {", ".join(FOUR)}."""
            ),
            "\n".join(lines) + "\n",
        ]
    )


def filled(text: str) -> str:
    return textwrap.fill(" ".join(text.split()), 120, break_on_hyphens=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("-f", "--folder", type=Path, default=Path("build/large-models"))
    parser.add_argument("--seconds", type=float, default=5.0)
    options = parser.parse_args()
    paper = [kept(options.folder, name, FOUR, options.seconds, COMPARED) for name in PAPER]
    more = [
        kept(options.folder, name, kinds, options.seconds, [], objective)
        for name, kinds, objective in (
            ("llama-8b", FOUR, "latency"),
            ("mixtral-8x7b", FOUR, "latency"),
            ("llama-70b", EIGHT, "latency"),
            ("llama-70b", EIGHT, "throughput"),
            ("llama-70b-generation", EIGHT, "latency"),
            ("gpt3-13b", 16 * FOUR, "latency"),
            ("gpt3-13b", 16 * FOUR, "throughput"),
        )
    ]
    options.output.write_text(page(paper, more, options.seconds), encoding="utf-8")


if __name__ == "__main__":
    main()
