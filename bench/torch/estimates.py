"""How far estimated times are from measured ones, by class of operator.

    PYTHONPATH=python:.deps/torch PLACEWRIGHT_NATIVE=build/release/python/placewright \
        python bench/torch/estimates.py --kind EPYC-Genoa-core -o core.json
    ... bench/torch/estimates.py --kind H200 --device cuda --dtype float16 --width 4096 --length 2048 -o h200-f16.json
    ... bench/torch/estimates.py --show core.json h200-f16.json

Every atom of a few models is timed alone and estimated as a device of a kind of the catalogue: on a core in processor
time, on several cores by the clock, on a GPU in a CUDA graph, so that the host's time for launches is not in it. The
first two commands measure and keep what they found; the last prints tables. Of each class they have the time of all its
atoms, measured and estimated, the quartiles of estimated / measured over the atoms, and how long the backward pass took
as a multiple of the forward one, which training takes to be 2.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from torch import nn
from torch.fx import Node

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))
import placewright

if "PLACEWRIGHT_NATIVE" in os.environ:
    placewright.__path__.append(os.environ["PLACEWRIGHT_NATIVE"])

from placewright import catalogue
from placewright.torch.atoms import Atom
from placewright.torch.chain import Chain, chain_of
from placewright.torch.large_models import Attention, Block, Embedding, GatedBlock, work_of

REPEATS = 7
# The first class with a part of a name that one of the atom's operators has.
CLASSES = {
    "convolution": ("conv",),
    "fused attention": ("scaled_dot", "flash", "efficient_attention"),
    "attention scores": ("bmm", "matmul"),
    "linear": ("linear", "addmm", "mm"),
    "embedding": ("embedding",),
    "normalisation": ("norm", "softmax"),
    "pooling": ("pool",),
    "copies and views": ("cat", "clone", "repeat", "expand", "index", "copy", "slice", "select"),
}


class FusedAttention(nn.Module):
    """Attention as one operator."""

    def __init__(self, heads: int) -> None:
        super().__init__()
        self.heads = heads

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Of the input with itself."""
        split = x.view(x.shape[0], x.shape[1], self.heads, -1).transpose(1, 2)
        return nn.functional.scaled_dot_product_attention(split, split, split)


def models(width: int, length: int, dtype: torch.dtype) -> dict[str, tuple[nn.Module, torch.Tensor]]:
    """Every class of operator: layers as in GPT, Llama and Mixtral, a step of generation with a cache, a CNN."""
    heads, inner, images = width // 64, 3 * width, max(1, length // 256)
    x = torch.randn(1, length, width, dtype=dtype)
    cnn = nn.Sequential(
        nn.Conv2d(3, 64, 7, 2, 3), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(64, 128, 3, padding=1),
        nn.ReLU(), nn.Conv2d(128, 128, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1),
    )  # fmt: skip
    found: dict[str, tuple[nn.Module, torch.Tensor]] = {
        "gpt": (nn.Sequential(*(Block(width, heads) for _ in range(2))), x),
        "fused": (FusedAttention(heads), x),
        "llama": (GatedBlock(width, heads, heads // 2, inner), x),
        "mixture": (GatedBlock(width, heads, heads // 2, inner, experts=4), x),
        "generation": (Attention(width, heads, heads // 2, context=8 * length), x[:, :1]),
        "embedding": (Embedding(32000, width), torch.randint(0, 32000, (1, length))),
        "cnn": (cnn, torch.randn(images, 3, 160, 160, dtype=dtype)),
    }
    return {name: (model.to(dtype).eval(), inputs) for name, (model, inputs) in found.items()}


@dataclasses.dataclass(frozen=True)
class Row:
    """An atom that was timed: seconds of its forward and, where there is one, of its backward pass."""

    group: str
    flops: float
    bytes: float
    of_matrices: bool
    in_half: bool
    forward: float
    backward: float | None

    def estimate(self, kind: catalogue.Kind) -> float:
        """Seconds of the forward pass on a device of the kind."""
        return kind.seconds(catalogue.Work(self.flops, self.bytes, self.of_matrices, self.in_half))


def group_of(model: str, atom: Atom, chain: Chain) -> str:
    """The class of an atom, by its operators; what an expert does and what reads a cache are classes of their own."""
    if model == "mixture" and any(chain.weight_names.get(node, "").startswith("parts.") for node in atom.reads):
        return "experts"
    names = [str(node.target) for node in atom.nodes]
    found = (name for name, parts in CLASSES.items() if any(part in target for target in names for part in parts))
    name = next(found, "elementwise and others")
    return "reads of a KV cache" if model == "generation" and name in ("attention scores", "copies and views") else name


def seconds_on_cores(call: Callable[[], object], threads: int) -> float:
    """The least of some runs, since others use the caches too."""
    clock = time.process_time if threads == 1 else time.perf_counter
    samples = []
    for _ in range(REPEATS):
        begin = clock()
        call()
        samples.append(clock() - begin)
    return min(samples)


def seconds_on_gpu(call: Callable[[], object], calls: int = 3) -> float:
    """The median over replays of a CUDA graph of some calls."""
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(2):
            call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(calls):
            call()
    samples = []
    for _ in range(REPEATS):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        graph.replay()
        end.record()
        end.synchronize()
        samples.append(start.elapsed_time(end) / 1e3 / calls)
    return statistics.median(samples)


def timed(
    name: str, model: nn.Module, inputs: torch.Tensor, seconds: Callable[[Callable[[], object]], float]
) -> list[Row]:
    """The atoms of a model."""
    chain = chain_of(model, (inputs,))
    values: dict[Node, torch.Tensor] = dict(chain.captured.constants)
    values.update(zip(chain.captured.inputs, chain.captured.example_inputs, strict=True))
    buffers = {node for node, value in chain.captured.constants.items() if not isinstance(value, nn.Parameter)}
    rows = []
    for atom in chain.atoms.atoms:
        module = atom.graph_module()
        reads = [values[node].detach() for node in atom.reads]
        with torch.no_grad():
            forward = seconds(lambda module=module, reads=reads: module(*reads))
            values.update(zip(atom.writes, module(*reads), strict=True))
        backward = None
        for node, value in zip(atom.reads, reads, strict=True):
            value.requires_grad_(value.is_floating_point() and node not in buffers)
        if any(value.requires_grad for value in reads):
            backward = seconds(lambda module=module, reads=reads: both_ways(module, reads)) - forward
        work = dataclasses.asdict(work_of(atom, chain))
        rows.append(Row(group_of(name, atom, chain), **work, forward=forward, backward=backward))
    return rows


def both_ways(module: nn.Module, reads: Sequence[torch.Tensor]) -> None:
    """Forward and backward."""
    outputs = [value for value in module(*reads) if value.requires_grad]
    wanted = [value for value in reads if value.requires_grad]
    torch.autograd.grad(outputs, wanted, [torch.ones_like(value) for value in outputs], allow_unused=True)


def measured(options: argparse.Namespace) -> dict[str, object]:
    """What a run of the program finds, as it is kept."""
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    on_gpu = options.device != "cpu"
    rows: list[Row] = []
    with torch.device(options.device):
        found = models(options.width, options.length, getattr(torch, options.dtype))
    for name in list(found):
        clock = seconds_on_gpu if on_gpu else lambda call: seconds_on_cores(call, options.threads)
        rows += timed(name, *found.pop(name), clock)
    threads = "" if on_gpu else f", {options.threads} thread{'s' if options.threads > 1 else ''}"
    return {
        "title": f"{options.kind}{threads}, {options.dtype}, width {options.width}, length {options.length}",
        "kind": options.kind,
        "part": options.part,
        "rows": [dataclasses.asdict(row) for row in rows],
    }


def quartiles(values: Sequence[float]) -> list[float]:
    """The lower quartile, the median and the upper quartile."""
    return statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else [values[0]] * 3


def milliseconds(seconds: float) -> str:
    """As a cell of the table."""
    return f"{1e3 * seconds:.3g} ms"


def table(kept: dict[str, object]) -> str:
    """What was measured beside what is estimated today."""
    whole, part = catalogue.kinds()[str(kept["kind"])], float(kept["part"])  # type: ignore[arg-type]
    rates = {name: part * getattr(whole, name) for name in ("flops", "half_flops", "bandwidth")}
    kind = dataclasses.replace(whole, **rates)
    groups: dict[str, list[Row]] = {}
    for row in (Row(**entry) for entry in kept["rows"]):  # type: ignore[attr-defined]
        groups.setdefault(row.group, []).append(row)
    lines = [
        f"{kept['title']}:\n",
        "| class | atoms | measured | estimated | estimated / measured | quartiles over atoms | backward / forward |",
        "| --- | ---: | ---: | ---: | ---: | --- | ---: |",
    ]
    for name, rows in sorted(groups.items(), key=lambda group: -sum(row.forward for row in group[1])):
        real, guess = sum(row.forward for row in rows), sum(row.estimate(kind) for row in rows)
        ratios = quartiles([row.estimate(kind) / max(row.forward, 1e-9) for row in rows])
        learning = [row for row in rows if row.backward is not None]
        forward = sum(row.forward for row in learning)
        cells = [name, str(len(rows)), milliseconds(real), milliseconds(guess), f"{guess / real:.2f}"]
        cells.append(", ".join(f"{ratio:.2f}" for ratio in ratios))
        cells.append(f"{sum(row.backward or 0.0 for row in learning) / forward:.1f}" if learning else "")
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    """Measures or prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kind", default="EPYC-Genoa-core", help="what the device is in the catalogue")
    parser.add_argument("--part", type=float, default=1.0, help="how much of it there is: 16 of 32 cores are 0.5")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--length", type=int, default=256)
    parser.add_argument("-o", "--output", type=Path, help="where to keep what was measured")
    parser.add_argument("--show", type=Path, nargs="+", help="print what was kept instead of measuring")
    options = parser.parse_args()
    if options.show:
        print("\n\n".join(table(json.loads(path.read_text(encoding="utf-8"))) for path in options.show))
        return
    kept = measured(options)
    if options.output:
        options.output.write_text(json.dumps(kept), encoding="utf-8")
    print(table(kept))


if __name__ == "__main__":
    main()
