#!/usr/bin/env python3
"""Generated sets of 2 to 8 models on a CPU and one to three accelerators: total completion against ASWM and TSAM.

    bench/several_models.py [--sets 3] [--models 2-8] [--accelerators 1-3] [--ops 40] [--planners talos,auto] [--keep FOLDER]
    bench/several_models.py --profiles resnet50.json inceptionv3.json …

A set is made from the published speed-up tables (examples/talos/speedups): each model takes the operators of one table, in the
proportion of their calls, with their measured time on the CPU and on the GPU; other accelerators have the same speed-ups scaled and
scattered, within 0.1 to 100. Graphs are chains with parallel branches; tensors cross links of 10 us and 10 GB/s. The same seed gives the same set.

With --profiles the models are real ones, measured by `placewright profile`: their graphs, fused groups and times on the CPU. On an accelerator an op takes 10 us to
start and its time on the CPU divided by a speed-up: 20 to 100 for convolutions and matrix products, 2 to 20 for the rest, drawn for each type; so that small ops are slower there.

Prints a Markdown table: for each planner the median, least and largest share of the better of ASWM and TSAM (below 1: less time), of each of the two,
and the gap to the lower bound. Ends with 1 where `talos` or `auto` is worse than the better of the two.
"""

import argparse
import csv
import json
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
TABLES = ROOT / "examples/talos/speedups"
SPEEDS = [1.0, 0.6, 0.3]  # of the accelerators, against the measured GPU
SCATTER = [0.0, 0.5, 0.8]  # of their speed-ups, as the deviation of a logarithm


def read_table(path):
    rows = []
    with path.open() as file:
        for row in csv.reader(file, skipinitialspace=True):
            if len(row) == 6 and row[0] != "operator":
                rows.append((row[0].strip(), float(row[1]), float(row[2]), float(row[4])))
    return rows


def make_model(dice, name, table, ops, accelerators, factors):
    """Ops and tensors of one model; `factors` scatters the speed-ups of a type on each accelerator, the same for all models."""
    calls = [total / mean for _, _, total, mean in table]
    totals = [total for _, _, total, _ in table]
    made, tensors, ends = [], [], []
    while len(made) < ops:
        branches = 1 if dice.random() < 0.7 else dice.choice([2, 3])
        starts, ends_of_block = ends, []
        for _ in range(branches):
            before = starts
            for _ in range(dice.randint(1, 5)):
                weights = calls if dice.random() < 0.7 else totals
                kind, speedup, _, cpu = dice.choices(table, weights)[0]
                times = [cpu]
                for k in range(accelerators):
                    factor = factors.setdefault((kind, k), dice.lognormvariate(0, SCATTER[k]))
                    times.append(cpu / min(100, max(0.1, speedup * SPEEDS[k] * factor)))
                op = f"{name}/{len(made)}"
                made.append({"name": op, "type": kind, "model": name, "time": times})
                for source in before:
                    tensors.append({"from": source, "to": [op], "bytes": int(10 ** dice.uniform(3, 6))})
                before = [op]
            ends_of_block += before
        ends = ends_of_block
    return made, tensors


START = 10  # us, of an op on an accelerator
HEAVY = {"Convolution", "GroupConvolution", "MatMul"}


def profiled_model(dice, name, profile, accelerators, factors):
    """Ops, tensors and fused groups of a profiled model; times in milliseconds become microseconds."""
    called = {op["name"]: f"{name}/{op['name']}" for op in profile["ops"]}
    made = []
    for op in profile["ops"]:
        cpu = 1000 * op["time"][0]
        times = [cpu]
        for k in range(accelerators):
            low, high = (20, 100) if op.get("type") in HEAVY else (2, 20)
            speedup = factors.setdefault((op.get("type"), k), SPEEDS[k] * dice.uniform(low, high))
            # An op that its group's time does not stand at costs nothing anywhere.
            times.append(min(cpu * 10, max(cpu / 100, START + cpu / speedup)))
        made.append({"name": called[op["name"]], "type": op.get("type", ""), "model": name, "time": times})
    tensors = [{"from": called[tensor["from"]], "to": [called[reader] for reader in tensor["to"]], "bytes": tensor.get("bytes", 0)}
               for tensor in profile["tensors"]]
    return made, tensors, [[called[op] for op in group] for group in profile.get("colocate", [])]


def make_set(seed, models, accelerators, ops, profiles):
    dice = random.Random(seed)
    tables = [read_table(path) for path in sorted(TABLES.glob("*.csv"))]
    names = [path.stem for path in sorted(TABLES.glob("*.csv"))]
    problem = {"placewright": "problem", "version": 1, "name": f"{models} models, {accelerators} accelerators, seed {seed}", "unit": "us",
               "objective": "total-completion",
               "kinds": [{"name": "cpu"}] + [{"name": f"acc{k}"} for k in range(accelerators)],
               "devices": [{"name": "CPU", "kind": "cpu"}] + [{"name": f"ACC{k}", "kind": f"acc{k}"} for k in range(accelerators)],
               "interconnect": {"kind": "links", "all": {"latency": 10, "bandwidth": 1e4}},
               "models": [], "ops": [], "tensors": [], "colocate": []}
    factors = {}
    for number in range(models):
        if profiles:
            profile = dice.choice(profiles)
            name = f"{profile['name']} {number + 1}"
            made, tensors, groups = profiled_model(dice, name, profile, accelerators, factors)
            problem["models"].append({"name": name})
            problem["ops"] += made
            problem["tensors"] += tensors
            problem["colocate"] += groups
            continue
        which = dice.randrange(len(tables))
        name = f"{names[which]} {number + 1}"
        size = dice.randint(ops // 2, ops + ops // 2)
        made, tensors = make_model(dice, name, tables[which], size, accelerators, factors)
        problem["models"].append({"name": name})
        problem["ops"] += made
        problem["tensors"] += tensors
    return problem


def value(options, path, planner, *flags):
    done = subprocess.run([options.program, "plan", path, "--planner", planner, "--time-limit", f"{options.time}s", "--json", *flags],
                          capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{planner} on {path}: {done.stderr}")
    answer = json.loads(done.stdout)
    return answer["value"], answer["lower_bound"]


def span(text):
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


def spread(values):
    return f"{statistics.median(values):.3f} ({min(values):.3f} to {max(values):.3f})"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=str(ROOT / "build/placewright"))
    parser.add_argument("--sets", type=int, default=3, help="for each number of models and accelerators")
    parser.add_argument("--models", type=span, default=span("2-8"))
    parser.add_argument("--accelerators", type=span, default=span("1-3"))
    parser.add_argument("--ops", type=int, default=40, help="of a model, on average")
    parser.add_argument("--time", type=float, default=5, help="seconds for a plan")
    parser.add_argument("--planners", default="talos", help="beside the published method, separated by commas")
    parser.add_argument("--profiles", type=pathlib.Path, nargs="+", default=[], help="problem files of 'placewright profile', one model each")
    parser.add_argument("--keep", type=pathlib.Path, help="write the sets here")
    options = parser.parse_args()
    profiles = [json.loads(path.read_text()) for path in options.profiles]

    methods = ["talos refine=none", *options.planners.split(",")]
    shares = {method: {"better": [], "aswm": [], "tsam": [], "gap": []} for method in methods}
    by_accelerators = {}
    worse = 0
    with tempfile.TemporaryDirectory() as holder:
        folder = options.keep or pathlib.Path(holder)
        folder.mkdir(parents=True, exist_ok=True)
        for models in options.models:
            for accelerators in options.accelerators:
                for number in range(options.sets):
                    seed = 100 * models + 10 * accelerators + number
                    path = folder / f"set-{models}-{accelerators}-{number}.json"
                    path.write_text(json.dumps(make_set(seed, models, accelerators, options.ops, profiles)))
                    aswm, _ = value(options, path, "aswm")
                    tsam, _ = value(options, path, "tsam")
                    for method in methods:
                        name, _, option = method.partition(" ")
                        reached, bound = value(options, path, name, *(["--option", option] if option else []))
                        shares[method]["better"].append(reached / min(aswm, tsam))
                        shares[method]["aswm"].append(reached / aswm)
                        shares[method]["tsam"].append(reached / tsam)
                        shares[method]["gap"].append(1 - bound / reached)
                        by_accelerators.setdefault((method, accelerators), []).append(reached / min(aswm, tsam))
                        worse += not option and reached > min(aswm, tsam) * (1 + 1e-9)
                    print(".", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    print("| planner | sets | to the better of ASWM and TSAM | to ASWM | to TSAM | gap to the bound |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    for method in methods:
        row = shares[method]
        print(f"| {method} | {len(row['better'])} | {spread(row['better'])} | {spread(row['aswm'])} | {spread(row['tsam'])} "
              f"| {100 * statistics.median(row['gap']):.1f} % ({100 * min(row['gap']):.1f} to {100 * max(row['gap']):.1f}) |")
    print("\n| planner | accelerators | to the better of ASWM and TSAM |")
    print("| --- | ---: | ---: |")
    for (method, accelerators), values in by_accelerators.items():
        print(f"| {method} | {accelerators} | {spread(values)} |")
    print(f"\nworse than the better of the two: {worse}")
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
