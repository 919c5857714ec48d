"""Pipelines over unequal partitions of one GPU: `python -m bench.torch.pipelines NAME [FOLDER]`.

The plan against equal layers on each partition, and against the map that accelerate makes for four devices of equal
memory; all of them run by the same runner."""

from __future__ import annotations

import dataclasses
import json
import re
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from unittest import mock

import torch
from bench.torch import models
from torch.fx import Node

from placewright.torch import Pipeline, compile_pipeline

DEVICES = ("cuda:0/64", "cuda:0/32", "cuda:0/16", "cuda:0/8")


def layer_of(node: Node) -> int | None:
    for path, _ in reversed(list(node.meta.get("nn_module_stack", {}).values())):
        if found := re.search(r"layers\W+(\d+)", str(path)):
            return int(found[1])
    return None


def by_layers(pipeline: Pipeline, device_of_layer: Sequence[str]) -> list[str]:
    """The device of each atom, from that of the layer of its costly operator."""
    devices = []
    for atom in pipeline.program.atoms.atoms:
        layers = [layer for node in atom.nodes if (layer := layer_of(node)) is not None]
        devices.append(device_of_layer[max(layers)])
    return devices


def accelerate_map(model: torch.nn.Module, devices: Sequence[str]) -> list[str]:
    """The device of each layer as accelerate maps them, with the least equal memory for all devices that holds the
    model; accelerate keeps room for the largest layer on the first one."""
    from accelerate.utils import modeling

    size = sum(weight.numel() * weight.element_size() for weight in model.parameters())
    for percent in range(100, 200, 5):
        memory = {number: size * percent // 100 // len(devices) for number in range(len(devices))}
        with mock.patch.object(modeling, "get_max_memory", lambda given: given):  # the devices are fictitious
            found = modeling.infer_auto_device_map(model, max_memory=memory, no_split_module_classes=["Layer"])
        if all(isinstance(found.get(f"layers.{i}"), int) for i in range(len(model.layers))):
            return [devices[found[f"layers.{i}"]] for i in range(len(model.layers))]
    raise ValueError("accelerate found no map")


def main(name: str, folder: Path) -> None:
    begin = time.perf_counter()
    model, inputs = getattr(models, name)()
    pipeline = compile_pipeline(model, inputs, devices=DEVICES)
    layers = len(model.layers)
    equal = [DEVICES[i * len(DEVICES) // layers] for i in range(layers)]
    pipeline.add("equal layers", by_layers(pipeline, equal))
    pipeline.add("accelerate's map", by_layers(pipeline, accelerate_map(model, DEVICES)))
    times = pipeline.measure()
    print(f"{name}: {len(pipeline.program.atoms.atoms)} atoms, {time.perf_counter() - begin:.0f} s, {pipeline.plan}")
    for devices, ops, load in pipeline.plan.stages:
        print(f"  {[DEVICES[d] for d in devices]}: {len(ops)} atoms, {load / 1e3:.3f} ms")
    print("| variant | ms between samples | samples per second |")
    for variant, spread in times.items():
        period = f"{spread.median:.3f} ({spread.low:.3f} to {spread.high:.3f})"
        print(f"| {variant} | {period} | {1e3 / spread.median:.1f} |")
    text = json.dumps({variant: dataclasses.asdict(spread) for variant, spread in times.items()}, indent=1)
    (folder / f"{name}.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2] if len(sys.argv) > 2 else "."))
