#!/usr/bin/env python3
"""The tables of docs/results/learned.md.

    bench/learned.py sizes|table|speed|ablation [--models inceptionv3,resnet50,bert-base] [--seconds 60] [--seeds 5]
                     [--profiles FOLDER] [--results learned.json] [--write docs/results/learned.md]

Every cell is kept in --results as soon as it is known; a second run goes on where the first was stopped. With --write the table goes
to the page, between the markers <!-- NAME --> and <!-- /NAME -->.

The problems: a model of the zoo on a CPU and a GPU, and on two unequal sets of cores. Times on the CPU are those of FOLDER/MODEL.json, written by
`placewright profile`, else those that `placewright import` estimates. On the GPU an op takes 10 us to start and its time on the CPU divided by a speed-up: 20 to
100 for convolutions and matrix products, 2 to 20 for the rest, drawn for each type with seed 1. The larger set of cores takes 40 % of the smaller one's time.
"""

import argparse
import json
import pathlib
import random
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
HEAVY = {"Convolution", "GroupConvolution", "MatMul"}
PUBLISHED_SIZES = {"inceptionv3": "728 / 764", "resnet50": "396 / 411", "bert-base": "1009 / 1071"}
ABLATION = {"ours": [], "no parsing": ["parse=false"], "no coarsening": ["coarsen=none"], "chains as published": ["coarsen=chains"],
            "no encoder": ["encoder=none"], "GIN": ["encoder=gin"], "GAT": ["encoder=gat"], "no structure features": ["structure=false"],
            "no cost features": ["costs=false"], "no baseline": ["baseline=none"], "moving baseline": ["baseline=moving"], "PPO": ["algorithm=ppo"],
            "no exploration": ["exploration=0"], "no imitation": ["imitation=0"]}


class Results:
    """Cells by key, on disk at once."""

    def __init__(self, path):
        self.path = pathlib.Path(path)
        self.cells = json.loads(self.path.read_text()) if self.path.exists() else {}

    def get(self, key, compute):
        if key not in self.cells:
            print(f"  {key} …", file=sys.stderr, flush=True)
            self.cells[key] = compute()
            scratch = self.path.with_suffix(".part")
            scratch.write_text(json.dumps(self.cells, indent=1))
            scratch.replace(self.path)
        return self.cells[key]


def imported(options, model):
    """The model's problem on one kind of CPU, as `profile` or `import` wrote it."""
    if options.profiles and (pathlib.Path(options.profiles) / f"{model}.json").exists():
        return json.loads((pathlib.Path(options.profiles) / f"{model}.json").read_text())
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([options.program, "zoo", "make", model, "--quiet"], cwd=folder, check=True)
        subprocess.run([options.program, "import", f"{model}.xml", "-o", "problem.json", "--quiet"], cwd=folder, check=True)
        return json.loads((pathlib.Path(folder) / "problem.json").read_text())


def with_second_kind(problem, name, time_of):
    """Two devices: the first kind as it is, the second with the time that `time_of` gives an op."""
    made = {key: value for key, value in problem.items() if key not in ("kinds", "devices", "interconnect", "resources", "spaces")}
    made["kinds"] = [{"name": "small"}, {"name": name}]
    made["devices"] = [{"name": "CPU", "kind": "small"}, {"name": name, "kind": name}]
    made["interconnect"] = {"kind": "links", "all": {"latency": 0.01, "bandwidth": 1e7}}
    made["ops"] = [{**op, "time": [op["time"][0], time_of(op)]} for op in problem["ops"]]
    made["models"] = [{"name": model["name"]} for model in problem["models"]]
    return made


def problems(options, folder):
    """(name, path) of every problem of the table."""
    for model in options.models.split(","):
        base = imported(options, model)
        dice = random.Random(1)
        speedups = {}

        def on_gpu(op):
            kind = op.get("type", "")
            speedup = speedups.setdefault(kind, dice.uniform(*((20, 100) if kind in HEAVY else (2, 20))))
            return min(op["time"][0] * 10, max(op["time"][0] / 100, 0.01 + op["time"][0] / speedup))

        for cluster, made in (("CPU and GPU", with_second_kind(base, "GPU", on_gpu)),
                              ("two core sets", with_second_kind(base, "large", lambda op: 0.4 * op["time"][0]))):
            path = pathlib.Path(folder) / f"{model}-{cluster.replace(' ', '-')}.json"
            path.write_text(json.dumps(made))
            yield f"{model}, {cluster}", path


def plan(options, path, planner, *flags, seconds=None, seed=1):
    begin = time.monotonic()
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [options.program, "plan", str(path), "--planner", planner, "--time-limit", f"{seconds or options.seconds}s", "--threads", str(options.threads),
               "--seed", str(seed), "--json"]
    for flag in flags:
        command += ["--option", flag]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        raise SystemExit(f"{planner} on {path}: {done.stderr}")
    answer = json.loads(done.stdout)
    return {"value": answer["value"], "lower_bound": answer["lower_bound"], "seconds": time.monotonic() - begin,
            "processor": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime}


def one_device(path, index):
    problem = json.loads(path.read_text())
    return {"value": sum(op["time"][index] for op in problem["ops"])}


def text(cell):
    return f"{cell['value']:.4g}"


def sizes_table(options, results, folder):
    rows = ["| model | published ops / edges | ours | nodes after joining chains |", "| --- | --- | --- | --- |"]
    for model in options.models.split(","):
        cell = results.get(f"size {model}", lambda: measured_size(options, model))
        rows.append(f"| {model} | {PUBLISHED_SIZES.get(model, '')} | {cell['ops']} / {cell['edges']} | {cell['chains']} |")
    return rows


def measured_size(options, model):
    problem = imported(options, model)
    after = {}
    into = {}
    for tensor in problem["tensors"]:
        for reader in tensor["to"]:
            after.setdefault(tensor["from"], set()).add(reader)
            into.setdefault(reader, set()).add(tensor["from"])
    joined = sum(1 for op, readers in after.items() if len(readers) == 1 and len(into[next(iter(readers))]) == 1)
    return {"ops": len(problem["ops"]), "edges": sum(map(len, after.values())), "chains": len(problem["ops"]) - joined}


def main_table(options, results, folder):
    columns = ["CPU only", "other only", "HETERO order", "rnn", "placeto", "hsdag published", "hsdag", "heft", "auto", "bound"]
    rows = ["| problem | " + " | ".join(columns) + " |", "| --- |" + " ---: |" * len(columns)]
    for name, path in problems(options, folder):
        def cell(key, compute):
            return results.get(f"{key} {name} {options.seconds}s", compute)

        best = cell("auto", lambda: plan(options, path, "auto"))
        row = [text(cell("cpu", lambda: one_device(path, 0))), text(cell("other", lambda: one_device(path, 1))),
               text(cell("priority", lambda: plan(options, path, "priority"))), text(cell("rnn", lambda: plan(options, path, "rnn"))),
               text(cell("placeto", lambda: plan(options, path, "placeto"))), text(cell("published", lambda: plan(options, path, "hsdag", "published=true"))),
               text(cell("hsdag", lambda: plan(options, path, "hsdag"))), text(cell("heft", lambda: plan(options, path, "heft"))), text(best),
               f"{best['lower_bound']:.4g}"]
        rows.append(f"| {name} | " + " | ".join(row) + " |")
    return rows


def speed_table(options, results, folder):
    """Placements in a second from the step limit that a run just keeps: the processor time of 400 and of 1,200 episodes, subtracted."""
    rows = ["| problem | placements per second, ours | passes per second, published |", "| --- | ---: | ---: |"]
    for name, path in problems(options, folder):
        def rate(flags, placements_each, short, long):
            few = plan(options, path, "hsdag", f"episodes={short}", *flags, seconds=600)
            many = plan(options, path, "hsdag", f"episodes={long}", *flags, seconds=600)
            return (long - short) * placements_each / max(1e-9, many["seconds"] - few["seconds"])

        ours = results.get(f"speed {name}", lambda: rate([], 128, 50, 250))
        published = results.get(f"speed published {name}", lambda: rate(["published=true"], 20, 2, 12))
        rows.append(f"| {name} | {ours:.0f} | {published:.0f} |")
    return rows


def ablation_table(options, results, folder):
    rows = ["| setting | median distance to `auto` | spread over seeds |", "| --- | ---: | ---: |"]
    chosen = list(problems(options, folder))
    for setting, flags in ABLATION.items():
        distances = []
        for name, path in chosen:
            best = results.get(f"auto {name} {options.seconds}s", lambda: plan(options, path, "auto"))["value"]
            for seed in range(1, options.seeds + 1):
                found = results.get(f"{setting} {name} {options.seconds}s seed {seed}", lambda: plan(options, path, "hsdag", *flags, seed=seed))
                distances.append(found["value"] / best - 1)
        rows.append(f"| {setting} | {100 * statistics.median(distances):.2f} % | {100 * min(distances):.2f} to {100 * max(distances):.2f} % |")
    return rows


TABLES = {"sizes": sizes_table, "table": main_table, "speed": speed_table, "ablation": ablation_table}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", choices=TABLES)
    parser.add_argument("--program", default=str(ROOT / "build/placewright"))
    parser.add_argument("--models", default="inceptionv3,resnet50,bert-base")
    parser.add_argument("--profiles", default="")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--results", default="learned-results.json")
    parser.add_argument("--write", default="")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        table = "\n".join(TABLES[options.table](options, Results(options.results), folder))
    print(table)
    if options.write:
        page = pathlib.Path(options.write)
        marked = re.compile(f"<!-- {options.table} -->.*?<!-- /{options.table} -->", re.DOTALL)
        page.write_text(marked.sub(lambda _: f"<!-- {options.table} -->\n{table}\n<!-- /{options.table} -->", page.read_text()))


if __name__ == "__main__":
    main()
