"""Models over a GPU and the cores beside it: `python -m bench.torch.cpu_and_gpu NAME... [-o FOLDER] [--plans FOLDER]`.

CPU alone, GPU alone, the split that HSDAG learns, and the plan. Learned planners need a plugin that a machine with a
GPU may not have: the problem of each model is written to NAME.problem.json, and a plan file NAME.hsdag.json of it, made
elsewhere by `placewright plan --planner hsdag`, is run where --plans has one."""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import time
from pathlib import Path

from bench.torch import models

from placewright import Problem
from placewright.torch import Placed, compile
from placewright.torch.core_sets import cores_of
from placewright.torch.cpu_and_gpu import CpuAndGpuRun
from placewright.torch.documents import steps_of

SPLIT = "HSDAG's split"


def devices() -> list[str]:
    return ["cuda:0", "cpu:" + ",".join(map(str, sorted(os.sched_getaffinity(0))))]


def add_split(fast: Placed, path: Path) -> float:
    """Adds the split of a plan file as a variant; returns its predicted milliseconds."""
    placement = json.loads(path.read_text(encoding="utf-8"))["placement"]
    plan = Problem.from_document(fast.problem_document()).plan_for(placement)
    steps = tuple(step for step in steps_of(plan) if step[0] < len(fast.atoms.atoms))
    planned = fast.variants["planned"]
    assert isinstance(planned, CpuAndGpuRun)
    fast.variants[SPLIT] = CpuAndGpuRun(planned.on_gpu, planned.on_cpu, steps, cores_of(devices()[1]))
    return plan.value / 1e3


def bench(name: str, folder: Path, plans: Path | None) -> None:
    begin = time.perf_counter()
    model, inputs = getattr(models, name)()
    fast = compile(model, inputs, devices=devices())
    Problem.from_document(fast.problem_document()).save(folder / f"{name}.problem.json")
    predicted = {"planned": fast.predicted / 1e3}
    if plans is not None and (plans / f"{name}.hsdag.json").exists():
        predicted[SPLIT] = add_split(fast, plans / f"{name}.hsdag.json")
    times = fast.measure()
    on_cpu = sum(device != "cuda:0" for device in fast.devices)
    print(f"{name}: {len(fast.devices)} atoms, {on_cpu} of them on the CPU; {time.perf_counter() - begin:.0f} s")
    for variant, spread in times.items():
        known = f"; predicted {predicted[variant]:.3f}" if variant in predicted else ""
        print(f"| {variant} | {spread.median:.3f} ({spread.low:.3f} to {spread.high:.3f}){known} |")
    text = json.dumps({variant: dataclasses.asdict(spread) for variant, spread in times.items()}, indent=1)
    (folder / f"{name}.cpu_and_gpu.json").write_text(text, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="+", metavar="NAME")
    parser.add_argument("-o", "--output", type=Path, default=Path("."), metavar="FOLDER")
    parser.add_argument("--plans", type=Path, metavar="FOLDER")
    options = parser.parse_args()
    for name in options.names:
        bench(name, options.output, options.plans)


if __name__ == "__main__":
    main()
