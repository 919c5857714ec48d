"""How far estimated times are from measured ones, by class of operator, on a core of this machine.

    PYTHONPATH=python:.deps/torch python bench/torch/estimates.py --kind EPYC-Genoa-core

Every atom of a few models is timed alone, in processor time on one thread, and estimated as a device of the kind of the
catalogue. Prints a table: of each class the time of all its atoms, measured and estimated, and the quartiles of
estimated / measured over its atoms.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))
import placewright

if "PLACEWRIGHT_NATIVE" in os.environ:
    placewright.__path__.append(os.environ["PLACEWRIGHT_NATIVE"])

from placewright import catalogue
from placewright.torch.atoms import Atom
from placewright.torch.chain import Chain, StageModule, chain_of
from placewright.torch.large_models import Attention, Block, Embedding, GatedBlock, _cost

REPEATS = 7
# The first class with a part of a name that one of the atom's operators has.
CLASSES = {
    "convolution": ("conv",),
    "attention scores": ("bmm", "matmul", "scaled_dot"),
    "linear": ("linear", "addmm", "mm"),
    "embedding": ("embedding",),
    "normalisation": ("norm", "softmax"),
    "copies": ("cat", "clone", "repeat", "expand", "index", "copy", "slice", "select"),
}


def models() -> dict[str, tuple[nn.Module, Sequence[torch.Tensor]]]:
    """Small enough for a core, with every class of operator: layers as in GPT, Llama, Mixtral, a step of generation
    with a cache, and a CNN."""
    width, length = 512, 256
    x = torch.randn(1, length, width)
    cnn = nn.Sequential(
        nn.Conv2d(3, 64, 7, 2, 3), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(64, 128, 3, padding=1),
        nn.ReLU(), nn.Conv2d(128, 128, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1),
    )  # fmt: skip
    return {
        "gpt": (nn.Sequential(*(Block(width, 8) for _ in range(2))), (x,)),
        "llama": (GatedBlock(width, 8, 4, 1536), (x,)),
        "mixture": (GatedBlock(width, 8, 4, 1536, experts=4), (x,)),
        "generation": (Attention(width, 8, 4, context=2048), (torch.randn(1, 1, width),)),
        "embedding": (Embedding(32000, width), (torch.randint(0, 32000, (1, length)),)),
        "cnn": (cnn, (torch.randn(1, 3, 160, 160),)),
    }


def class_of(atom: Atom) -> str:
    """The class of an atom, by its operators."""
    names = [str(node.target) for node in atom.nodes]
    for name, parts in CLASSES.items():
        if any(part in target for target in names for part in parts):
            return name
    return "elementwise and others"


def measured(chain: Chain, model: nn.Module) -> list[float]:
    """Seconds of processor time of each atom; the least of some runs, since others use the core's caches too."""
    values: list[torch.Tensor] = list(chain.captured.example_inputs)
    found = []
    for k in range(len(chain.atoms.atoms)):
        module = StageModule(chain, model, range(k), [k])
        samples = []
        for _ in range(REPEATS):
            begin = time.process_time()
            results = module(*values)
            samples.append(time.process_time() - begin)
        found.append(min(samples))
        values = list(results)
    return found


def quartiles(values: Sequence[float]) -> list[float]:
    """The lower quartile, the median and the upper quartile."""
    return statistics.quantiles(values, n=4) if len(values) > 1 else [values[0]] * 3


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kind", default="EPYC-Genoa-core", help="what this machine's cores are in the catalogue")
    kind = parser.parse_args().kind
    torch.set_num_threads(1)
    torch.manual_seed(0)
    rows: dict[str, list[tuple[float, float]]] = {}
    with torch.no_grad():
        for model, inputs in models().values():
            chain = chain_of(model.eval(), tuple(inputs))
            for atom, seconds in zip(chain.atoms.atoms, measured(chain, model), strict=True):
                (estimate,) = _cost(atom, chain, {kind: catalogue.kinds()[kind]})["time"]
                rows.setdefault(class_of(atom), []).append((1e3 * seconds, estimate))
    print("| class | atoms | measured | estimated | estimated / measured | quartiles over atoms |")
    print("| --- | ---: | ---: | ---: | ---: | --- |")
    for name, pairs in sorted(rows.items(), key=lambda row: -sum(pair[0] for pair in row[1])):
        real, guess = (sum(column) for column in zip(*pairs, strict=True))
        low, middle, high = quartiles([estimate / max(seconds, 1e-6) for seconds, estimate in pairs])
        ratios = f"{low:.2f}, {middle:.2f}, {high:.2f}"
        print(f"| {name} | {len(pairs)} | {real:.2f} ms | {guess:.2f} ms | {guess / real:.2f} | {ratios} |")


if __name__ == "__main__":
    main()
