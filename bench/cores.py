#!/usr/bin/env python3
"""Whole models on sets of cores, against what OpenVINO gives by itself: latency, throughput, several models at once, arrivals over time.

Each model of the zoo is made and profiled whole on nested sets of all cores (`profile --whole`). Then, resumed where it was left:

  latency, throughput   planned and tuned, and run beside one core, two, four, …, all cores as threads, and one stream for each core
  sets                  ten sets of three models and ten of six, all at once: `run --trace` with every arrival at 0
  arrivals              models at random, with exponential gaps at which one after the other on all cores is just busy

  bench/cores.py --json cores.json              measures what the file does not have yet
  bench/cores.py --json cores.json --tables     prints the tables, in Markdown
"""

import argparse
import json
import pathlib
import random
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
MODELS = ["squeezenet", "bninception", "resnet50", "inceptionv3", "alexnet", "swin-t", "inceptionv4", "gpt2", "bert-base"]
# Each stays compiled for every set of cores at once: those with the largest weights are left out.
TOGETHER = ["squeezenet", "bninception", "resnet50", "inceptionv3", "alexnet", "swin-t", "inceptionv4"]
OBJECTIVES = ["latency", "throughput"]
POLICIES = ["shortest", "together"]  # what needs no plan


class Bench:
    def __init__(self, options):
        self.options = options
        self.folder = options.folder
        self.folder.mkdir(parents=True, exist_ok=True)
        self.results = json.loads(options.json.read_text()) if options.json.exists() else {}

    def run(self, *arguments):
        """The printed JSON object; also where the answer is no, which is said by an exit code of 1."""
        begin = time.monotonic()
        done = subprocess.run([self.options.program, *map(str, arguments), "--json"], capture_output=True, text=True, check=False)
        print(f"  {time.monotonic() - begin:6.1f} s  {' '.join(str(word) for word in arguments[:3])}", file=sys.stderr, flush=True)
        if done.returncode > 1 or not done.stdout.strip():
            raise RuntimeError(f"placewright {' '.join(map(str, arguments))}: {done.stderr.strip()}")
        return json.loads(done.stdout)

    def once(self, key, measure):
        """Measured unless the file has it, and written at once. What fails is told and left out."""
        if key in self.results or time.monotonic() > self.options.until:
            return
        print(key, file=sys.stderr, flush=True)
        try:
            self.results[key] = measure()
        except (RuntimeError, KeyError, subprocess.CalledProcessError) as error:
            print(f"  failed: {error}", file=sys.stderr, flush=True)
            return
        self.options.json.write_text(json.dumps(self.results, indent=1) + "\n")

    def problem(self, model):
        """The profile of the whole model, made once for each folder."""
        problem = self.folder / f"{model}.json"
        if not problem.exists():
            subprocess.run([self.options.program, "zoo", "make", model, "-q", "-o", self.folder], check=True)
            profile = self.run("profile", self.folder / f"{model}.xml", "--whole", "--repeat", self.options.repeat, "-o", problem)
            self.results[f"profile {model}"] = {kind["kind"]: kind["latency"]["median"] for kind in profile["models"][0]["kinds"]}
        return problem

    def plan(self, model, objective):
        plan = self.folder / f"{model}-{objective}.json"
        self.run("tune", self.problem(model), "--objective", objective, "--rounds", 3, "--repeat", self.options.repeat,
                 "--time-limit", "2s", "-o", plan)
        ran = self.run("run", plan, "--repeat", 2 * self.options.repeat)
        value = "latency" if objective == "latency" else "per_sample"
        rivals = {rival["name"]: rival[value]["median"] for rival in ran["baselines"]}
        own = ran["measured"]
        return {"predicted": ran["predicted"], "measured": own["median"], "spread": (own["high"] - own["low"]) / own["median"],
                "valid": own["valid"], "rivals": rivals, "devices": sorted({segment["device"] for segment in ran["segments"]}),
                "segments": len(ran["segments"]), "equal": ran["outputs"]["equal"]}

    def trace(self, name, arrivals):
        models = sorted({model for model, _ in arrivals})
        trace = self.folder / f"{name}.json"
        trace.write_text(json.dumps({"placewright": "trace", "version": 1, "name": name, "models": [self.problem(model).name for model in models],
                                     "arrivals": [{"model": model, "time": moment} for model, moment in arrivals]}))
        ran = self.run("run", "--trace", trace, "--repeat", self.options.runs)
        return {"models": models, "arrivals": len(arrivals), "equal": ran["outputs"]["equal"],
                "methods": {row["method"]: {key: row[key] for key in ("predicted", "measured", "spread")} for row in ran["methods"]},
                "devices": [row["device"] for row in ran["methods"][0]["models"]]}

    def measure(self):
        options = self.options
        together = [model for model in TOGETHER if model in options.models]
        self.measure_plans(together)
        for size in (3, 6):
            for seed in range(1, options.sets + 1):
                chosen = sorted(random.Random(100 * size + seed).sample(together, min(size, len(together))))
                self.once(f"set of {size}, {seed}", lambda: self.trace(f"set-{size}-{seed}", [(model, 0) for model in chosen]))
        for load in (1.0, 2.0):
            for seed in range(1, options.traces + 1):
                self.once(f"arrivals, load {load:g}, {seed}", lambda: self.trace(f"arrivals-{load:g}-{seed}", self.arrivals(together, load, seed)))
        self.measure_plans([model for model in options.models if model not in together])

    def measure_plans(self, models):
        for model in models:
            for objective in OBJECTIVES:
                self.once(f"{objective} {model}", lambda: self.plan(model, objective))

    def arrivals(self, models, load, seed):
        """Twenty arrivals; load 1: with all cores for each model in turn, the machine is just busy."""
        for model in models:
            self.problem(model)
        numbers = random.Random(seed)
        mean = statistics.mean(min(self.results[f"profile {model}"].values()) for model in models)
        moment, found = 0.0, []
        for _ in range(20):
            found.append((numbers.choice(models), round(moment, 3)))
            moment += numbers.expovariate(1) * mean / load
        return found


def table(titles, rows):
    lines = ["| " + " | ".join(titles) + " |", "| --- |" + " ---: |" * (len(titles) - 1)]
    return "\n".join(lines + ["| " + " | ".join(map(str, row)) + " |" for row in rows]) + "\n"


def plans_table(results, objective):
    rows, gains, errors = [], [], []
    for key, row in results.items():
        if not key.startswith(objective + " "):
            continue
        known = {name: time for name, time in row["rivals"].items() if time}  # null: not measured
        best = min(known, key=known.get)
        gain = row["rivals"][best] / row["measured"]
        gains.append(gain)
        errors.append(abs(row["predicted"] / row["measured"] - 1))
        devices = row["devices"][0] if len(row["devices"]) == 1 else f"{len(row['devices'])} sets like {row['devices'][0]}"
        rows.append([key.split(" ", 1)[1], f"{row['predicted']:.2f}", f"{row['measured']:.2f}", f"{row['spread']:.1%}", devices,
                     f"{row['rivals'][best]:.2f} ({best})", f"{gain:.2f}x" + ("" if row["valid"] else ", disturbed")])
    if not rows:
        return ""
    titles = ["model", "predicted ms", "measured ms", "spread", "the plan's cores", "best without a plan, ms", "the plan is"]
    return (table(titles, rows) + f"\nThe plan is {min(gains):.2f} to {max(gains):.2f} times as fast, {statistics.median(gains):.2f} in the median; "
            f"predictions are off by {statistics.median(errors):.1%} in the median, {max(errors):.1%} at most.\n")


def trace_table(results, prefix):
    rows, gains, errors = [], [], []
    for key, row in results.items():
        if not key.startswith(prefix):
            continue
        measured = {name: method["measured"] for name, method in row["methods"].items()}
        best = min(POLICIES, key=measured.get)
        gains.append(measured[best] / measured["talos"])
        errors.append(abs(row["methods"]["talos"]["predicted"] / measured["talos"] - 1))
        rows.append([key, f"{row['methods']['talos']['predicted']:.1f}", *(f"{measured[name]:.1f}" for name in ("talos", "aswm", "tsam", *POLICIES)),
                     f"{gains[-1]:.2f}x"])
    if not rows:
        return ""
    titles = ["", "predicted", "the plan", "aswm", "tsam", "shortest first", "all at once", "against the better of the last two"]
    return (table(titles, rows) + f"\nThe plan is {statistics.median(gains):.2f} times as fast in the median, {min(gains):.2f} to {max(gains):.2f}; "
            f"predictions are off by {statistics.median(errors):.1%} in the median, {max(errors):.1%} at most.\n")


def tables(results):
    parts = [("Latency", plans_table(results, "latency")), ("Throughput: time for each sample", plans_table(results, "throughput")),
             ("Three models at once: total completion, ms", trace_table(results, "set of 3")),
             ("Six models at once: total completion, ms", trace_table(results, "set of 6")),
             ("Twenty arrivals over time: total completion, ms", trace_table(results, "arrivals"))]
    return "\n".join(f"### {title}\n\n{text}" for title, text in parts if text)


def options_of(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=ROOT / "build/placewright", type=pathlib.Path)
    parser.add_argument("--json", required=True, type=pathlib.Path, help="what was measured; what it has is not measured again")
    parser.add_argument("--folder", default=pathlib.Path("/tmp/placewright-cores"), type=pathlib.Path, help="for models and problems")
    parser.add_argument("--models", nargs="+", default=MODELS)
    parser.add_argument("--repeat", type=int, default=10, help="runs of each measurement")
    parser.add_argument("--runs", type=int, default=7, help="runs of each method on a trace")
    parser.add_argument("--sets", type=int, default=10)
    parser.add_argument("--traces", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=1e9, help="begin nothing later than this")
    parser.add_argument("--tables", action="store_true", help="print the tables and measure nothing")
    return parser.parse_args(arguments)


def main(arguments):
    options = options_of(arguments)
    options.until = time.monotonic() + options.seconds
    bench = Bench(options)
    if not options.tables:
        bench.measure()
    print(tables(bench.results))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
