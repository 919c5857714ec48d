#!/usr/bin/env python3
"""Unequal ranks: pipelines under torchrun, our stages against an equal split.

    PYTHONPATH=python:.deps/torch PLACEWRIGHT_NATIVE=build/release/python/placewright \
        python bench/torch/ranks.py --page docs/guides/torchrun.md

On a CPU rank r has core r (modulo the cores that there are), and the last rank shares its core with a busy loop. With
`--gpu 70,30` the ranks have these percentages of the first GPU, which needs a running CUDA MPS daemon. The stages of
our plan are made from what the ranks measured; the equal split is the plan that would be made if all ranks were as fast
as rank 0. Each row is the median of some jobs, and each job's times are medians over rounds in which the two pipelines
take turns. What it prints is a table in Markdown; --page puts it into a page, between its markers.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import re
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

import placewright

if "PLACEWRIGHT_NATIVE" in os.environ:
    placewright.__path__.append(os.environ["PLACEWRIGHT_NATIVE"])

from placewright.torch import RankPipeline, measure_ranks, pipeline, plan_together

MICRO_BATCHES = 16
RESULT = "result: "  # how the line of a job begins that holds what it found


def transformer(on_gpu: bool) -> tuple[nn.Module, torch.Tensor]:
    """Eight layers, and one micro-batch; on a GPU large enough to be worth its while."""
    width, tokens = (2048, (8, 128)) if on_gpu else (256, (1, 64))
    layer = nn.TransformerEncoderLayer(width, width // 64, 4 * width, batch_first=True, dropout=0.0)
    return nn.TransformerEncoder(layer, 8, enable_nested_tensor=False), torch.randn(*tokens, width)


def cnn(on_gpu: bool) -> tuple[nn.Module, torch.Tensor]:
    """Thirteen equal convolutions."""
    width, image = (256, (16, 3, 64, 64)) if on_gpu else (64, (1, 3, 32, 32))
    layers: list[nn.Module] = [nn.Conv2d(3, width, 3, padding=1)]
    for _ in range(12):
        layers += [nn.ReLU(), nn.Conv2d(width, width, 3, padding=1)]
    return nn.Sequential(*layers), torch.randn(*image)


MODELS = {"transformer": transformer, "cnn": cnn}

# --- a rank of a job ------------------------------------------------------------------------------


def spin(core: int, rank: int) -> None:
    """Keeps a core busy for as long as the process of the rank lives, however that ends."""
    os.sched_setaffinity(0, [core])
    while os.getppid() == rank:
        for _ in range(100000):
            pass


def take_place(rank: int, world: int, shares: list[int]) -> None:
    """The core or the part of the GPU that this rank has. Threads that are started later stay there too, such as those
    of gloo, so what moves the tensors of a rank takes its time from that rank."""
    if shares:
        os.environ["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"] = str(shares[rank])
        return
    cores = sorted(os.sched_getaffinity(0))
    core = cores[rank % len(cores)]
    os.sched_setaffinity(0, [core])
    if rank == world - 1:
        arguments = (core, os.getpid())
        multiprocessing.get_context("fork").Process(target=spin, args=arguments, daemon=True).start()


def as_if_equal(problem: placewright.Problem) -> placewright.Problem:
    document = problem.to_document()
    for op in document["ops"]:
        op["time"] = [op["time"][0]] * len(op["time"])
    return placewright.Problem.from_document(document)


def mean_square(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """A loss that needs no target of the output's shape."""
    return output.square().mean()


def seconds(pipe: RankPipeline, batch: torch.Tensor, training: bool) -> float:
    dist.barrier()
    begin = time.perf_counter()
    if training:
        pipe.step(batch, target=batch)
    else:
        pipe.run(batch)
    if batch.is_cuda:
        torch.cuda.synchronize()
    dist.barrier()
    return time.perf_counter() - begin


def run_rank(options: argparse.Namespace) -> None:
    """What torchrun starts: measures, plans, runs both pipelines; rank 0 prints what was found."""
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    take_place(rank, world, options.gpu)
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    model, x = MODELS[options.model](bool(options.gpu))
    if options.gpu:
        model, x = model.cuda(), x.cuda()
    problem = measure_ranks(model, (x,), micro_batches=MICRO_BATCHES, training=options.training, seconds=2.0)
    batch = x.repeat(MICRO_BATCHES, *[1] * (x.dim() - 1))
    pipes = {}
    for name, given in (("planned", problem), ("equal", as_if_equal(problem))):
        plan = plan_together(given, time_limit=1)
        measured = problem.plan_for(plan.placement)  # the same stages by what the ranks measured
        loss = mean_square if options.training else None
        pipes[name] = pipeline(model, (x,), measured, micro_batches=MICRO_BATCHES, loss=loss)
    times: dict[str, list[float]] = {name: [] for name in pipes}
    for turn in range(options.rounds + 1):
        for name, pipe in pipes.items():
            found = seconds(pipe, batch, options.training)
            if turn:  # the first warms up
                times[name].append(found)
    everyone: list[Any] = [None] * world  # a rank that a plan does not use predicts nothing
    dist.all_gather_object(everyone, {name: pipe.predicted for name, pipe in pipes.items()})
    if rank == 0:
        result = {name: statistics.median(found) for name, found in times.items()}
        result["predicted"] = max(entry["planned"] or 0.0 for entry in everyone) / 1e6
        result["stages"] = len(pipes["planned"].stages)
        print(RESULT + json.dumps(result), flush=True)
    dist.barrier()
    for pipe in pipes.values():
        pipe.close()
    dist.destroy_process_group()


# --- the table ------------------------------------------------------------------------------------


def job(ranks: int, model: str, training: bool, options: argparse.Namespace) -> dict[str, float]:
    """Runs this file under torchrun."""
    command = [sys.executable, "-W", "ignore", "-m", "torch.distributed.run", "--standalone"]
    command += ["--nproc-per-node", str(ranks), __file__, "--model", model, "--rounds", str(options.rounds)]
    command += ["--training"] if training else []
    command += ["--gpu", ",".join(map(str, options.gpu))] if options.gpu else []
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    line = next((line for line in ran.stdout.splitlines() if line.startswith(RESULT)), None)
    if line is None:
        raise RuntimeError(
            f"{' '.join(command)} ended with {ran.returncode}:\n{ran.stdout[-2000:]}{ran.stderr[-4000:]}"
        )
    found: dict[str, float] = json.loads(line.removeprefix(RESULT))
    return found


def row(ranks: int, model: str, training: bool, options: argparse.Namespace) -> str:
    """A line of the table; also said as it comes, since all of them take minutes."""
    samples = []
    for _ in range(options.jobs):
        samples.append(job(ranks, model, training, options))
        print(ranks, model, "training" if training else "inference", samples[-1], file=sys.stderr, flush=True)
    gains = sorted(sample["equal"] / sample["planned"] for sample in samples)
    errors = sorted(sample["predicted"] / sample["planned"] for sample in samples)
    planned, equal = (statistics.median(sample[name] for sample in samples) for name in ("planned", "equal"))
    predicted = statistics.median(sample["predicted"] for sample in samples)
    cells = [f"{model}, {'training' if training else 'inference'}", str(ranks)]
    cells += [f"{MICRO_BATCHES / equal:.1f}", f"{MICRO_BATCHES / planned:.1f}"]
    cells += [f"{statistics.median(gains):.2f} ({gains[0]:.2f} to {gains[-1]:.2f})"]
    cells += [f"{1e3 * planned:.0f} ms", f"{1e3 * predicted:.0f} ms"]
    cells += [f"{statistics.median(errors):.2f} ({errors[0]:.2f} to {errors[-1]:.2f})"]
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--jobs", type=int, default=3, help="how often each row is measured")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--gpu", type=lambda text: [int(share) for share in text.split(",")], default=[])
    parser.add_argument("--page", type=Path, help="the page that the table goes to")
    parser.add_argument("--model", choices=MODELS, help=argparse.SUPPRESS)  # of a rank
    parser.add_argument("--training", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.model:
        run_rank(options)
        return
    lines = [
        "| | ranks | samples/s, equal split | ours | ours / equal split | a step of ours | predicted | "
        "predicted / measured |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for ranks in [len(options.gpu)] if options.gpu else options.ranks:
        lines += [row(ranks, model, training, options) for model in options.models for training in (False, True)]
    table = "\n".join(lines)
    print(table)
    if options.page:
        marked = re.compile(r"(<!-- bench/torch/ranks.py -->\n).*?(<!-- end -->)", re.DOTALL)
        page = options.page.read_text(encoding="utf-8")
        options.page.write_text(marked.sub(lambda m: f"{m[1]}{table}\n{m[2]}", page), encoding="utf-8")


if __name__ == "__main__":
    main()
