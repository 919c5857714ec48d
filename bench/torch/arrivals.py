"""Models that arrive over time, on one GPU or on cores: `python -m bench.torch.arrivals [FOLDER] [--on-cores]`.

The same arrivals by `compile_online`, one after the other with the shortest waiting model first, and each started as it
comes; all with the same kernels, the latter two with one CUDA graph for each model. Prints the sum of the times from
arrival to end, and writes arrivals.json."""

from __future__ import annotations

import argparse
import dataclasses
import functools
import json
import os
import queue
import random
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import torch
from bench.torch.models import Made, transformer

from placewright.torch import compile_online
from placewright.torch.atoms import split_into_atoms
from placewright.torch.capture import capture
from placewright.torch.kernels import compile_atoms
from placewright.torch.online import CoreModel, GraphModel, Model
from placewright.torch.timing import Spread

ARRIVALS = 24
ROUNDS = 7
COPIES = 8


class Whole:
    """Workers that run models whole, the waiting one with the least `rank` first."""

    def __init__(self, models: Sequence[Model], rank: Sequence[float], workers: int, on_gpu: bool) -> None:
        self.models = models
        self.rank = rank
        self.waiting: queue.PriorityQueue[tuple[float, float, int, Any, Future[None]]] = queue.PriorityQueue()
        for _ in range(workers):
            threading.Thread(target=self._work, args=(on_gpu,), daemon=True).start()

    def submit(self, model: int, *inputs: torch.Tensor) -> Future[None]:
        ended: Future[None] = Future()
        state = self.models[model].begin(inputs)
        self.waiting.put((self.rank[model], time.perf_counter(), model, state, ended))
        return ended

    def _work(self, on_gpu: bool) -> None:
        context: AbstractContextManager[object] = torch.cuda.stream(torch.cuda.Stream()) if on_gpu else nullcontext()
        with torch.no_grad(), context:
            while True:
                _, _, model, state, ended = self.waiting.get()
                self.models[model].run(state, 0)
                ended.set_result(None)
                self.models[model].release(state)


def total(submit: Callable[..., Any], catalogue: Sequence[Made], trace: Sequence[tuple[float, int]]) -> float:
    """Milliseconds from the arrivals to their ends, added up. Each is submitted by a thread of its own, so that none is
    late because another is being planned."""

    def one(due: float, model: int) -> float:
        time.sleep(max(due - time.perf_counter(), 0.0))
        submit(model, *catalogue[model][1]).result(60)
        return time.perf_counter() - due

    begin = time.perf_counter() + 0.05
    with ThreadPoolExecutor(len(trace)) as pool:
        return 1e3 * sum(pool.map(lambda arrival: one(begin + arrival[0], arrival[1]), trace))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=Path("."))
    parser.add_argument("--on-cores", action="store_true", help="cores instead of the GPU, and small models")
    options = parser.parse_args()
    on_gpu = not options.on_cores
    make = functools.partial(transformer, "cuda" if on_gpu else "cpu")
    if on_gpu:
        catalogue = [make(6, 1024, 8), make(24, 1024, 8), make(48, 1024, 1), make(24, 1024, 32)]
    else:
        catalogue = [make(2, 64, 1), make(4, 64, 1), make(8, 64, 1), make(4, 64, 4)]
    with torch.no_grad():
        programs = [compile_atoms(split_into_atoms(capture(*made))) for made in catalogue]
        wholes: list[Model] = [
            GraphModel(program, everything, COPIES) if on_gpu else CoreModel(program, everything)
            for program in programs
            for everything in [[range(len(program.atoms.atoms))]]
        ]
    simple = Whole(wholes, [0.0] * len(wholes), 1, on_gpu)
    alone = []
    for model, (_, inputs) in enumerate(catalogue):
        times = []
        for _ in range(6):
            begin = time.perf_counter()
            simple.submit(model, *inputs).result()
            times.append(time.perf_counter() - begin)
        alone.append(min(times))
    print("alone, ms: " + ", ".join(f"{1e3 * found:.2f}" for found in alone), flush=True)
    draw = random.Random(1)
    trace, now = [], 0.0
    for _ in range(ARRIVALS):
        trace.append((now, draw.randrange(len(catalogue))))
        now += draw.expovariate(1.25 * len(alone) / sum(alone))
    devices = None if on_gpu else [f"cpu:{core}" for core in sorted(os.sched_getaffinity(0))]
    begin = time.perf_counter()
    with compile_online(catalogue, devices=devices, copies=COPIES) as online:
        print(f"compiled and measured in {time.perf_counter() - begin:.0f} s", flush=True)
        ways = {
            "planned": online,
            "one after the other, shortest first": Whole(wholes, alone, 1, on_gpu),
            "each as it comes": Whole(wholes, [0.0] * len(alone), ARRIVALS, on_gpu),
        }
        found: dict[str, list[float]] = {name: [] for name in ways}
        for turn in range(ROUNDS + 1):
            for name, way in ways.items():
                milliseconds = total(way.submit, catalogue, trace)
                if turn:  # the first warms up
                    found[name].append(milliseconds)
    spreads = {name: Spread.of(values) for name, values in found.items()}
    for name, spread in spreads.items():
        print(f"| {name} | {spread.median:.1f} ({spread.low:.1f} to {spread.high:.1f}) |")
    decided = Spread.of([decision.milliseconds for decision in online.decisions] or [0.0])
    followed = sum(decision.is_followed for decision in online.decisions)
    print(
        f"{ARRIVALS} arrivals in {1e3 * now:.0f} ms; {followed} of {len(online.decisions)} plans were followed; "
        f"one took {decided.median:.1f} ms (to {decided.high:.1f})"
    )
    text = json.dumps({name: dataclasses.asdict(spread) for name, spread in spreads.items()}, indent=1)
    (options.folder / "arrivals.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
