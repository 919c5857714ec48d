"""GPT-2-XL's layers with room for half of their weights on the GPU: `python -m bench.torch.offload [FOLDER]`.

Against accelerate's automatic offload, which moves weights to the GPU layer by layer as they are needed."""

from __future__ import annotations

import copy
import dataclasses
import functools
import json
import sys
import time
from pathlib import Path

import torch
from bench.torch import models

from placewright.torch import compile_offloaded
from placewright.torch.timing import Spread, compare_calls


def accelerated(model: torch.nn.Module, memory: int) -> torch.nn.Module:
    from accelerate import dispatch_model, infer_auto_device_map

    limits = {0: memory, "cpu": 1 << 40}
    placed = infer_auto_device_map(model, max_memory=limits, no_split_module_classes=["Layer", "CachedLayer"])
    result: torch.nn.Module = dispatch_model(copy.deepcopy(model), placed, main_device="cuda:0")
    return result


def bench(tokens: int, cached: int) -> dict[str, Spread]:
    begin = time.perf_counter()
    model, inputs = models.gpt2_xl_on_the_cpu(tokens, cached)
    size = sum(weight.numel() * weight.element_size() for weight in model.parameters())
    fast = compile_offloaded(model, inputs, memory=size // 2)
    offloaded = accelerated(model, size // 2)
    on_gpu = [value.cuda() for value in inputs]

    def call(run: object) -> None:
        run(*on_gpu)  # type: ignore[operator]
        torch.cuda.synchronize()

    calls = {name: functools.partial(call, run) for name, run in fast.variants.items()}
    calls["accelerate"] = functools.partial(call, offloaded)
    with torch.no_grad():
        times = compare_calls(calls, on_gpu=False, rounds=7, repeats=2)
    print(
        f"{tokens} tokens at once, {cached} in the cache: {size >> 20} MiB of weights, {fast.resident} of "
        f"{len(fast.atoms.atoms)} atoms on the GPU, {time.perf_counter() - begin:.0f} s; chosen: {fast.chosen}"
    )
    times["predicted"] = Spread(fast.predicted, fast.predicted, fast.predicted)
    for name, spread in times.items():
        print(f"| {name} | {spread.median:.2f} ({spread.low:.2f} to {spread.high:.2f}) |")
    return times


def main(folder: Path) -> None:
    results = {}
    for tokens, cached in ((1, 512), (512, 0)):
        times = bench(tokens, cached)
        results[f"{tokens} tokens, {cached} cached"] = {name: dataclasses.asdict(s) for name, s in times.items()}
        (folder / "offload.json").write_text(json.dumps(results, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
