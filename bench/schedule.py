#!/usr/bin/env python3
"""The latency of one inference as a schedule: every planner on the published inputs, side by side.

    bench/schedule.py [--time 10] [--seeds 5] [--output build/bench]

Prints a Markdown table for each input (value, gap, time, and how many times better the best of `decompose`, `search` and `auto` is), then how
the cost of a move of `search` grows with the graph; writes the same as CSV. Values are medians over the seeds; planners that
do not exist in this build are left out.
"""

import argparse
import csv
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
INPUTS = ["example-1", "GoogLeNet", "inceptionv4"]
OTHERS = ["single", "topo", "etf", "sct", "getf", "heft", "moirai", "cpsat"]
OURS = ["decompose", "search", "auto"]


def run(program, *arguments):
    """The JSON object that the program prints; None when it answers with an error."""
    result = subprocess.run([program, *arguments, "--json"], capture_output=True, text=True, check=False)
    if result.returncode not in (0, 1):
        return None
    return json.loads(result.stdout)


def plan(program, path, planner, seconds, *flags):
    return run(program, "plan", path, "--planner", planner, "--time-limit", f"{seconds}s",
               "--output", "/dev/null", *flags)


def known_planners(program):
    listed = run(program, "planners")
    rows = listed if isinstance(listed, list) else listed["planners"]
    return {row["name"] for row in rows}


def measure(options, path, planner, congestion):
    """Medians over the seeds: value, lower bound, seconds."""
    found = []
    for seed in range(1, options.seeds + 1):
        answer = plan(options.program, path, planner, options.time, congestion, "--threads", str(options.threads),
                      "--seed", str(seed))
        if answer is None or answer.get("value") is None:
            return None
        found.append(answer)
        if planner not in OURS + ["cpsat", "moirai"]:
            break  # no random choice
    median = lambda key: statistics.median(answer[key] for answer in found)
    return {"value": median("value"), "bound": median("lower_bound"), "seconds": median("seconds")}


def compare(options, writer):
    names = [name for name in OTHERS + OURS if name in known_planners(options.program)]
    for name in INPUTS:
        path = str(ROOT / "examples" / "moirai" / f"{name}.json")
        for congestion in ("--no-congestion", "--congestion"):
            rows = {planner: measure(options, path, planner, congestion) for planner in names}
            rows = {planner: row for planner, row in rows.items() if row}
            bound = max(row["bound"] for row in rows.values())
            best = min(row["value"] for planner, row in rows.items() if planner in OURS)
            print(f"\n### {name}, {congestion[2:].replace('-', ' ')} (best bound {bound:.6g})\n")
            print("| planner | value | above the bound | times our best | seconds |\n| --- | ---: | ---: | ---: | ---: |")
            for planner, row in sorted(rows.items(), key=lambda item: -item[1]["value"]):
                above = 100 * (row["value"] / bound - 1)
                print(f"| {planner} | {row['value']:.6g} | {above:.2f} % | {row['value'] / best:.3f} | {row['seconds']:.2f} |")
                writer.writerow([name, congestion[2:], planner, row["value"], row["bound"], bound, row["seconds"]])
            sys.stdout.flush()


def growth(options, writer):
    print("\n### Growth: `search` on transformer-like graphs, 8 unequal devices, one thread\n")
    print("| ops | heft | search | moves | microseconds a move |\n| ---: | ---: | ---: | ---: | ---: |")
    with tempfile.TemporaryDirectory() as folder:
        for ops in options.sizes:
            path = f"{folder}/{ops}.json"
            subprocess.run([options.program, "generate", "transformer", "--ops", str(ops), "--devices", "8", "--kinds", "8",
                            "--output", path, "--quiet"], check=True)
            heft = plan(options.program, path, "heft", 100)
            few, many = 20 * ops, 60 * ops  # the difference leaves out the start, which grows
            answers = [plan(options.program, path, "search", 1000, "--threads", "1", "--steps", str(steps))
                       for steps in (few, many)]
            cost = 1e6 * (answers[1]["seconds"] - answers[0]["seconds"]) / (many - few)
            print(f"| {ops} | {heft['value']:.6g} | {answers[1]['value']:.6g} | {many} | {cost:.2f} |")
            writer.writerow(["transformer", ops, "search", answers[1]["value"], answers[1]["lower_bound"], heft["value"], cost])
            sys.stdout.flush()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=str(ROOT / "build" / "placewright"))
    parser.add_argument("--time", type=float, default=10, help="seconds for each planner that uses them")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--sizes", type=int, nargs="*", default=[1000, 3000, 10000, 30000, 100000])
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "build" / "bench")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    with open(options.output / "schedule.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["input", "variant", "planner", "value", "lower_bound", "best_bound_or_heft", "seconds_or_us_per_move"])
        compare(options, writer)
        growth(options, writer)


if __name__ == "__main__":
    main()
