"""Four models at once on one GPU: `python -m bench.torch.several_models [FOLDER]`.

Prints the sum of completion times of every way to run them, and writes several_models.json."""

from __future__ import annotations

import dataclasses
import json
import statistics
import sys
import time
from pathlib import Path

from bench.torch import models

from placewright.torch import compile_together

MODELS = ("resnet50_f16", "inception_v3_f16", "bert_base_f16", "googlenet_f16")


def main(folder: Path) -> None:
    begin = time.perf_counter()
    together = compile_together([getattr(models, name)() for name in MODELS])
    totals = together.measure()
    print(f"{', '.join(MODELS)}; {time.perf_counter() - begin:.0f} s; {together.note}")
    print("| way | total completion, ms | " + " | ".join(MODELS) + " |")
    for name, run in together.variants.items():
        ends = zip(*(run.completions(together.examples) for _ in range(9)), strict=True)
        cells = " | ".join(f"{statistics.median(column):.3f}" for column in ends)
        print(f"| {name} | {totals[name].median:.3f} ({totals[name].low:.3f} to {totals[name].high:.3f}) | {cells} |")
    print(f"predicted {together.predicted:.3f}")
    text = json.dumps({name: dataclasses.asdict(spread) for name, spread in totals.items()}, indent=1)
    (folder / "several_models.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
