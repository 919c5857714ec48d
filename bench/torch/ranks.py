#!/usr/bin/env python3
"""Unequal ranks: a pipeline under torchrun whose last rank shares its core with a busy loop.

    PYTHONPATH=python:.deps/torch PLACEWRIGHT_NATIVE=build/release/python/placewright \
        python -m torch.distributed.run --standalone --nproc-per-node 2 bench/torch/ranks.py [--training] [--cnn]

Rank r has core r (modulo the cores that there are). The stages of our plan, which is made from what the ranks measured,
against an equal split: the plan that would be made if all ranks were as fast as rank 0. Prints samples per second, and
measured beside predicted time of a step.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import statistics
import time

import torch
import torch.distributed as dist
from torch import nn

import placewright

if "PLACEWRIGHT_NATIVE" in os.environ:
    placewright.__path__.append(os.environ["PLACEWRIGHT_NATIVE"])

from placewright.torch import RankPipeline, measure_ranks, pipeline, plan_together

MICRO_BATCHES = 16


def transformer() -> tuple[nn.Module, torch.Tensor]:
    layer = nn.TransformerEncoderLayer(256, 4, 1024, batch_first=True, dropout=0.0)
    return nn.TransformerEncoder(layer, 8, enable_nested_tensor=False), torch.randn(1, 64, 256)


def cnn() -> tuple[nn.Module, torch.Tensor]:
    layers: list[nn.Module] = [nn.Conv2d(3, 64, 3, padding=1)]
    for _ in range(12):
        layers += [nn.ReLU(), nn.Conv2d(64, 64, 3, padding=1)]
    return nn.Sequential(*layers), torch.randn(1, 3, 32, 32)


def spin(core: int) -> None:
    os.sched_setaffinity(0, [core])
    while True:
        pass


def as_if_equal(problem: placewright.Problem) -> placewright.Problem:
    document = problem.to_document()
    for op in document["ops"]:
        op["time"] = [op["time"][0]] * len(op["time"])
    return placewright.Problem.from_document(document)


def seconds(pipe: RankPipeline, batch: torch.Tensor, training: bool) -> float:
    dist.barrier()
    begin = time.perf_counter()
    if training:
        pipe.step(batch, target=torch.zeros_like(batch))
    else:
        pipe.run(batch)
    dist.barrier()
    return time.perf_counter() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--training", action="store_true")
    parser.add_argument("--cnn", action="store_true")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, [cores[rank % len(cores)]])
    if rank == world - 1:
        multiprocessing.get_context("fork").Process(target=spin, args=(cores[rank % len(cores)],), daemon=True).start()
    torch.manual_seed(0)
    model, x = cnn() if options.cnn else transformer()
    loss = nn.functional.mse_loss if options.training else None
    if options.cnn:
        loss = (lambda y, _: y.square().mean()) if options.training else None
    problem = measure_ranks(model, (x,), micro_batches=MICRO_BATCHES, training=options.training, seconds=2.0)
    batch = x.repeat(MICRO_BATCHES, *[1] * (x.dim() - 1))
    pipes = {}
    for name, given in (("planned", problem), ("equal split", as_if_equal(problem))):
        plan = plan_together(given, time_limit=1)
        measured = problem.plan_for(plan.placement)  # the same stages by what the ranks measured
        pipes[name] = pipeline(model, (x,), measured, micro_batches=MICRO_BATCHES, loss=loss)
    times: dict[str, list[float]] = {name: [] for name in pipes}
    for turn in range(options.rounds + 1):
        for name, pipe in pipes.items():
            found = seconds(pipe, batch, options.training)
            if turn:  # the first warms up
                times[name].append(found)
    if rank == 0:
        kind = f"{'cnn' if options.cnn else 'transformer'}, {'training' if options.training else 'inference'}"
        rates = {name: MICRO_BATCHES / statistics.median(found) for name, found in times.items()}
        for name, pipe in pipes.items():
            predicted = (pipe.predicted or 0.0) / 1e6
            print(
                f"| {kind} | {world} | {name} | {rates[name]:.2f} | {statistics.median(times[name]):.3f} | "
                f"{predicted:.3f} | {rates[name] / rates['equal split']:.2f} |",
                flush=True,
            )
    dist.barrier()
    for pipe in pipes.values():
        pipe.close()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
