#!/usr/bin/env python3
"""Whole models on sets of cores, against what OpenVINO gives by itself: latency, throughput, several models at once, arrivals over time.

Each model of the zoo is made and profiled whole on nested sets of all cores (`profile --whole`). Then, resumed where it was left:

  latency, throughput   planned and tuned, and run beside one core, two, four, …, all cores as threads, and streams of each width, with the
                        threads of all cores bound by OpenVINO and not
  sets                  ten sets of three models and ten of six, all at once: `run --trace` with every arrival at 0. Each is drawn
                        from all models, and one may be drawn several times
  copies                six inferences of one model at once
  arrivals              models at random, with exponential gaps: load 1, at which one after the other on all cores is just busy,
                        twice and four times that

  bench/cores.py --json cores.json                   measures what the file does not have yet
  bench/cores.py --json cores.json --seconds 480     the same in that time: each part begins nothing after its share of it
  bench/cores.py --json cores.json --tables          prints the tables, in Markdown
"""

import argparse
import json
import pathlib
import random
import statistics
import subprocess
import sys
import textwrap
import time

from pages import Program, fill, table

ROOT = pathlib.Path(__file__).resolve().parent.parent
MODELS = ["squeezenet", "bninception", "resnet50", "inceptionv3", "alexnet", "swin-t", "inceptionv4", "gpt2", "bert-base"]
# Each stays compiled for every set of cores at once: those with the largest weights are left out.
TOGETHER = ["squeezenet", "bninception", "resnet50", "inceptionv3", "alexnet", "swin-t", "inceptionv4"]
POLICIES = ["shortest", "together"]  # what needs no plan
PARTS = ["sets", "arrivals", "copies", "latency", "throughput"]
LOADS = [1.0, 2.0, 4.0]


class Bench:
    def __init__(self, options):
        self.options = options
        self.program = Program(options.program)
        self.folder = options.folder
        self.folder.mkdir(parents=True, exist_ok=True)
        self.results = json.loads(options.json.read_text()) if options.json.exists() else {}
        self.begin = self.until = time.monotonic()

    def run(self, *arguments):
        begin = time.monotonic()
        answer = self.program.run(*arguments)
        print(f"  {time.monotonic() - begin:6.1f} s  {' '.join(str(word) for word in arguments[:3])}", file=sys.stderr, flush=True)
        return answer

    def once(self, key, measure):
        """Measured unless the file has it, and written at once. What fails is told and left out."""
        if key in self.results or time.monotonic() > self.until:
            return
        print(f"{time.monotonic() - self.begin:4.0f} s: {key}", file=sys.stderr, flush=True)
        try:
            self.results[key] = measure()
        except (RuntimeError, KeyError, subprocess.CalledProcessError) as error:
            print(f"  failed: {error}", file=sys.stderr, flush=True)
            return
        self.options.json.write_text(json.dumps(self.results, indent=1) + "\n")
        print(f"  {row_of(key, self.results[key])}", file=sys.stderr, flush=True)

    def problem(self, model):
        """The profile of the whole model, made once for each folder."""
        problem = self.folder / f"{model}.json"
        if not problem.exists():
            self.program.write("zoo", "make", model, "-o", self.folder)
            profile = self.run("profile", self.folder / f"{model}.xml", "--whole", "--repeat", self.options.repeat, "-o", problem)
            self.results[f"profile {model}"] = {kind["kind"]: kind["latency"]["median"] for kind in profile["models"][0]["kinds"]}
            print(f"  {model}: {self.results[f'profile {model}']}", file=sys.stderr, flush=True)
        return problem

    def shortest(self, model):
        """The time of the model on the kind of device that is fastest for it."""
        ops = json.loads(self.problem(model).read_text())["ops"]
        return min(map(sum, zip(*(op["time"] for op in ops))))

    def shares(self, model):
        """The same with sets of a quarter of the cores, a half and all of them: a model is compiled for every device of a trace."""
        chosen = self.folder / f"{model}-shares.json"
        problem = json.loads(self.problem(model).read_text())
        least = max(len(device["uses"]) for device in problem["devices"]) / 4
        problem["devices"] = [device for device in problem["devices"] if len(device["uses"]) >= least]
        chosen.write_text(json.dumps(problem))
        return chosen

    def plan(self, model, objective):
        plan = self.folder / f"{model}-{objective}.json"
        self.run("tune", self.problem(model), "--objective", objective, "--rounds", 1, "--repeat", self.options.repeat,
                 "--time-limit", "1s", "-o", plan)
        ran = self.run("run", plan, "--repeat", 3 * self.options.repeat)
        value = "latency" if objective == "latency" else "per_sample"
        rivals = {rival["name"]: rival[value]["median"] for rival in ran["baselines"]}
        same = [rival["name"] for rival in ran["baselines"] if rival.get("is_plan")]
        own = ran["measured"]
        return {"predicted": ran["predicted"], "measured": own["median"], "spread": (own["high"] - own["low"]) / own["median"] if own["high"] else None,
                "valid": own["valid"], "rivals": rivals, "same": same, "devices": sorted({segment["device"] for segment in ran["segments"]}),
                "segments": len(ran["segments"]), "equal": ran["outputs"]["equal"]}

    def trace(self, name, arrivals):
        models = sorted({model for model, _ in arrivals})
        trace = self.folder / f"{name}.json"
        trace.write_text(json.dumps({"placewright": "trace", "version": 1, "name": name, "models": [self.shares(model).name for model in models],
                                     "arrivals": [{"model": model, "time": moment} for model, moment in arrivals]}))
        ran = self.run("run", "--trace", trace, "--repeat", self.options.runs)
        methods = {row["method"]: {key: row[key] for key in ("predicted", "measured", "spread")} for row in ran["methods"]}
        decided = {row["method"]: decisions(row["models"]) for row in ran["methods"]}
        return {"models": [model for model, _ in arrivals], "equal": ran["outputs"]["equal"], "methods": methods,
                "as_shortest": decided["talos"] == decided["shortest"], "devices": [row["device"] for row in ran["methods"][0]["models"]]}

    def measure(self):
        """In parts, each until its share of the time is over; then what is left of all of them."""
        together = [model for model in TOGETHER if model in self.options.models]
        parts = {"sets": (0.30, lambda: (self.measure_sets(together, 3), self.measure_sets(together, 6))),
                 "arrivals": (0.40, lambda: self.measure_arrivals(together)), "copies": (0.44, lambda: self.measure_copies(together)),
                 "latency": (0.72, lambda: self.measure_plans("latency")), "throughput": (1.0, lambda: self.measure_plans("throughput"))}
        wanted = [parts[name] for name in parts if name in self.options.only]
        for share, part in [*wanted, *((1.0, part) for _, part in wanted)]:
            self.until = self.begin + share * self.options.seconds
            part()

    def measure_plans(self, objective):
        for model in self.options.models:
            self.once(f"{objective} {model}", lambda: self.plan(model, objective))

    def measure_sets(self, models, size):
        for seed in range(1, self.options.sets + 1):
            chosen = sorted(random.Random(100 * size + seed).choices(models, k=size))
            self.once(f"set of {size}, {seed}", lambda: self.trace(f"set-{size}-{seed}", [(model, 0) for model in chosen]))

    def measure_copies(self, models):
        for model in models:
            self.once(f"six of {model}", lambda: self.trace(f"copies-{model}", 6 * [(model, 0)]))

    def measure_arrivals(self, models):
        for seed in range(1, self.options.traces + 1):
            for load in LOADS:
                self.once(f"arrivals, load {load:g}, {seed}", lambda: self.trace(f"arrivals-{load:g}-{seed}", self.arrivals(models, load, seed)))

    def arrivals(self, models, load, seed):
        """Twenty arrivals; load 1: with all cores for each model in turn, the machine is just busy."""
        numbers = random.Random(seed)
        mean = statistics.mean(self.shortest(model) for model in models)
        moment, found = 0.0, []
        for _ in range(20):
            found.append((numbers.choice(models), round(moment, 3)))
            moment += numbers.expovariate(1) * mean / load
        return found


def decisions(arrivals):
    """Who started in which order, and where."""
    started = sorted((row for row in arrivals if row["device"]), key=lambda row: row["start"])
    return [(row["name"], row["device"]) for row in started]


def gain_of(row):
    """How many times as fast the plan is as the best without one, and which that is."""
    if "rivals" in row:
        known = {name: time for name, time in row["rivals"].items() if time}  # null: not measured
        own = row["measured"]
    else:
        known = {name: row["methods"][name]["measured"] for name in POLICIES}
        own = row["methods"]["talos"]["measured"]
    best = min(known, key=known.get)
    return known[best] / own, best


def error_of(row):
    own = row if "rivals" in row else row["methods"]["talos"]
    return abs(own["predicted"] / own["measured"] - 1)


def plan_row(key, row):
    gain, best = gain_of(row)
    sets = row["devices"][0].split(", ")  # of one segment
    devices = sets[0] if len(sets) == 1 else f"{len(sets)} sets like {sets[0]}"
    return [key.split(" ", 1)[1], f"{row['predicted']:.2f}", f"{row['measured']:.2f}", f"{row['spread']:.1%}" if row["spread"] else "-", devices,
            f"{row['rivals'][best]:.2f} ({best}{': the plan itself' if best in row.get('same', []) else ''})", f"{gain:.2f}x" + ("" if row["valid"] else ", disturbed")]


def trace_row(key, row):
    measured = {name: method["measured"] for name, method in row["methods"].items()}
    models = row["models"]
    counts = [f"{models.count(model)} x {model}" if models.count(model) > 1 else model for model in sorted(set(models))]
    what = ", ".join(counts) if len(models) <= 6 else key
    return [what, f"{row['methods']['talos']['predicted']:.1f}", *(f"{measured[name]:.1f}" for name in ("talos", "aswm", "tsam", *POLICIES)),
            f"{gain_of(row)[0]:.2f}x", "shortest first" if row["as_shortest"] else "its own"]


def row_of(key, row):
    return " | ".join(map(str, (plan_row if "rivals" in row else trace_row)(key, row)))


PLAN_TITLES = ["model", "predicted ms", "measured ms", "spread", "the plan's cores", "best without a plan, ms", "the plan is"]
TRACE_TITLES = ["models", "predicted", "the plan", "aswm", "tsam", "shortest first", "all at once", "against the better of the last two", "decided as"]


def part_table(results, prefix):
    found = {key: row for key, row in results.items() if key.startswith(prefix) and not key.startswith("profile")}
    if not found:
        return ""
    plans = any("rivals" in row for row in found.values())
    text = table(PLAN_TITLES if plans else TRACE_TITLES, [(plan_row if plans else trace_row)(key, row) for key, row in found.items()])
    gains = [gain_of(row)[0] for row in found.values()]
    own = [gain_of(row)[0] for row in found.values() if not row.get("as_shortest", True)]
    errors = [error_of(row) for row in found.values()]
    said = f"The plan is {min(gains):.2f} to {max(gains):.2f} times as fast, {statistics.median(gains):.2f} in the median"
    if own:
        said += f"; where it decides otherwise than shortest first ({len(own)} of {len(gains)}) {statistics.median(own):.2f}"
    said += f". Predictions are off by {statistics.median(errors):.1%} in the median, {max(errors):.1%} at most."
    return f"{text}\n{textwrap.fill(said, 120)}\n"


def tables(results):
    parts = [("Latency", "latency "), ("Throughput: time for each sample", "throughput "), ("Three models at once: total completion, ms", "set of 3"),
             ("Six models at once: total completion, ms", "set of 6"), ("Six inferences of one model at once: total completion, ms", "six of"),
             ("Twenty arrivals over time: total completion, ms", "arrivals")]
    found = [(title, part_table(results, prefix)) for title, prefix in parts]
    return "\n".join(f"### {title}\n\n{text}" for title, text in found if text)


def options_of(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=ROOT / "build/placewright", type=pathlib.Path)
    parser.add_argument("--json", required=True, type=pathlib.Path, help="what was measured; what it has is not measured again")
    parser.add_argument("--folder", default=pathlib.Path("/tmp/placewright-cores"), type=pathlib.Path, help="for models and problems")
    parser.add_argument("--models", nargs="+", default=MODELS)
    parser.add_argument("--only", nargs="+", default=PARTS, choices=PARTS)
    parser.add_argument("--repeat", type=int, default=10, help="runs of each measurement")
    parser.add_argument("--runs", type=int, default=7, help="runs of each method on a trace")
    parser.add_argument("--sets", type=int, default=10)
    parser.add_argument("--traces", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=1e9, help="begin nothing later than this")
    parser.add_argument("--page", type=pathlib.Path, help="put the tables into this page, between its markers")
    parser.add_argument("--tables", action="store_true", help="print the tables and measure nothing")
    return parser.parse_args(arguments)


def main(arguments):
    options = options_of(arguments)
    bench = Bench(options)
    if not options.tables:
        bench.measure()
    print(tables(bench.results))
    if options.page:
        fill(options.page, "many cores", tables(bench.results))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
