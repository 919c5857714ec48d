#!/usr/bin/env python3
"""The paper's comparison of throughput planners, and how the exact one grows.

  bench/throughput.py table  [--time-limit 20] [--csv FILE] [--planners a,b]   one row for each input and planner
  bench/throughput.py growth [--time-limit 60] [--csv FILE]                    generated graphs: time against ops,
                                                                               ideals (of the forward graph), k

Each row is a run of its own, so that times and memory are those of the whole process, reading included. Markdown goes
to standard output. Planners for contiguous plans run with --contiguity joint, the others with none; the bound of a row
is the best that is known for its rule.
"""

import argparse
import csv
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAM = ROOT / "build" / "placewright"
INPUTS = ROOT / "examples" / "msr" / "throughput"
EXPERTS = ROOT / "examples" / "msr" / "human-experts"

CONTIGUOUS = ["ideals", "ideals-linear", "ip-contiguous", "pipedream", "single"]
FREE = ["ip", "refine", "scotch", "local-search"]

GROWTH = [
    # family, ops, accelerators, further options
    *[("transformer", ops, 64, ["--training"]) for ops in (1000, 2000, 5000, 10000, 20000)],
    *[("transformer", 5000, k, ["--training"]) for k in (4, 8, 16, 32)],
    *[("inception", ops, 8, []) for ops in (50, 100, 200, 400, 1000)],
    *[("series-parallel", ops, 8, []) for ops in (50, 100, 200)],
    *[("layered", ops, 4, ["--layers", str(ops // 4), "--cores", "1"]) for ops in (24, 32, 40, 48)],
    *[("layered", ops, 4, ["--layers", "12", "--cores", "1"]) for ops in (48, 60, 72, 80)],
    *[("layered", 60, k, ["--layers", "12", "--cores", "1"]) for k in (2, 3, 6, 8)],
]

MOST_IDEALS = 3_000_000  # counting stops here


def run(arguments, limit):
    """One process: its JSON, wall time, processor time and peak memory in MB."""
    begin = time.monotonic()
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen([str(PROGRAM), *arguments, "--json", "--quiet"], stdout=output,
                                   stderr=subprocess.DEVNULL)
        _, _, usage = os.wait4(process.pid, 0)
        process.returncode = 0
        seconds = time.monotonic() - begin
        output.seek(0)
        text = output.read()
    try:
        answer = json.loads(text)
    except ValueError:
        answer = {"status": "refused"}
    return answer, {"seconds": seconds, "cpu_seconds": usage.ru_utime + usage.ru_stime,
                    "memory_mb": usage.ru_maxrss / 1024}


def number(value, digits=4):
    return "" if value is None else f"{value:.{digits}f}"


def plan_row(path, planner, contiguity, limit):
    answer, used = run(
        ["plan", str(path), "--planner", planner, "--contiguity", contiguity, "--time-limit",
         f"{limit}s"], limit)
    return {"input": f"{path.parent.name}/{path.stem}", "planner": planner, "contiguity": contiguity,
            "status": answer.get("status"), "value": answer.get("value"),
            "lower_bound": answer.get("lower_bound"), **used}


def expert_row(path):
    split = EXPERTS / f"{path.stem}_expert.json"
    if path.parent.name != "LayerGraphs" or not split.exists():
        return None
    answer, used = run(["check", str(split), "--problem", str(path), "--contiguity", "none"], 0)
    value = answer.get("value")
    return {"input": f"{path.parent.name}/{path.stem}", "planner": "expert", "contiguity": "none",
            "status": "valid" if answer.get("valid") else answer.get("status", ""), "value": value,
            "lower_bound": None, **used}


def best_bounds(rows):
    """The best bound for each input and rule; one that holds without contiguity holds with it."""
    bounds = {}
    for row in rows:
        for rule in ("joint", "none"):
            if row["lower_bound"] is not None and (row["contiguity"] == "none" or rule == "joint"):
                key = (row["input"], rule)
                bounds[key] = max(bounds.get(key, 0), row["lower_bound"])
    return bounds


def table(options):
    wanted = options.planners.split(",") if options.planners else CONTIGUOUS + FREE
    rows = []
    for path in sorted(INPUTS.glob("*/*.json")):
        for planner in CONTIGUOUS + FREE:
            if planner in wanted:
                rule = "joint" if planner in CONTIGUOUS else "none"
                rows.append(plan_row(path, planner, rule, options.time_limit))
        expert = expert_row(path)
        if expert:
            rows.append(expert)
    bounds = best_bounds(rows)
    for row in rows:
        bound = bounds.get((row["input"], row["contiguity"]))
        value = row["value"]
        row["gap"] = (value - bound) / value if value and bound is not None else None
    print("| input | planner | contiguity | status | value | gap % | time s | CPU s | memory MB |")
    print("| --- | --- | --- | --- | ---: | ---: | ---: | ---: | ---: |")
    for row in rows:
        gap = None if row["gap"] is None else max(0.0, 100 * row["gap"])
        print(f"| {row['input']} | {row['planner']} | {row['contiguity']} | {row['status']} | "
              f"{number(row['value'])} | {number(gap, 2)} | {number(row['seconds'], 2)} | "
              f"{number(row['cpu_seconds'], 2)} | {number(row['memory_mb'], 0)} |")
    return rows


def count_ideals(path):
    """Down-sets of the forward graph, each counted once: take the first open op, or drop it with its descendants."""
    problem = json.loads(path.read_text())
    index = {op["name"]: i for i, op in enumerate(op for op in problem["ops"] if not op.get("backward"))}
    successors = [set() for _ in index]
    for tensor in problem["tensors"]:
        for reader in tensor["to"]:
            if tensor["from"] in index and reader in index:
                successors[index[tensor["from"]]].add(index[reader])
    missing = [0] * len(index)
    for row in successors:
        for to in row:
            missing[to] += 1
    order = [op for op in range(len(index)) if missing[op] == 0]
    for op in order:
        for to in successors[op]:
            missing[to] -= 1
            if missing[to] == 0:
                order.append(to)
    place = {op: i for i, op in enumerate(order)}
    descendants = [0] * len(order)
    for i in reversed(range(len(order))):
        descendants[i] = 1 << i
        for to in successors[order[i]]:
            descendants[i] |= descendants[place[to]]
    count = 0
    stack = [(1 << len(order)) - 1]
    while stack and count < MOST_IDEALS:
        left = stack.pop()
        while left:
            first = left & -left
            stack.append(left & ~descendants[first.bit_length() - 1])
            left ^= first
        count += 1
    return count if not stack else None


def growth(options):
    rows = []
    print("| family | ops | ideals | k | planner | status | value | gap % | time s | CPU s | memory MB |")
    print("| --- | ---: | ---: | ---: | --- | --- | ---: | ---: | ---: | ---: | ---: |")
    with tempfile.TemporaryDirectory() as folder:
        for family, ops, accelerators, more in GROWTH:
            path = pathlib.Path(folder) / f"{family}-{ops}-{accelerators}.json"
            subprocess.run([str(PROGRAM), "generate", family, "--ops", str(ops), "--objective", "throughput",
                            "--accelerators", str(accelerators), *more, "--quiet", "-o", str(path)], check=True)
            # In a process of its own: a child's peak memory is never below that of its parent.
            counted = subprocess.run([sys.executable, __file__, "count", str(path)], check=True, capture_output=True)
            ideals = json.loads(counted.stdout)
            shown = f"{ideals:,}" if ideals is not None else f"over {MOST_IDEALS:,}"
            for planner in ("ideals", "ideals-linear"):
                row = plan_row(path, planner, "joint", options.time_limit)
                row.update(family=family, ops=ops, ideals=ideals, k=accelerators)
                value, bound = row["value"], row["lower_bound"]
                row["gap"] = (value - bound) / value if value and bound is not None else None
                rows.append(row)
                gap = None if row["gap"] is None else max(0.0, 100 * row["gap"])
                print(f"| {family} | {ops:,} | {shown} | {accelerators} | {planner} | {row['status']} | {number(value)} | "
                      f"{number(gap, 2)} | {number(row['seconds'], 2)} | {number(row['cpu_seconds'], 2)} | "
                      f"{number(row['memory_mb'], 0)} |", flush=True)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["table", "growth", "count"])
    parser.add_argument("file", nargs="?", type=pathlib.Path, help="count: print the ideals of this problem")
    parser.add_argument("--time-limit", type=float, default=20, help="seconds for each run")
    parser.add_argument("--planners", help="of the table's planners, only these")
    parser.add_argument("--csv", help="write the rows here too")
    options = parser.parse_args()
    if options.what == "count":
        print(json.dumps(count_ideals(options.file)))
        return 0
    rows = table(options) if options.what == "table" else growth(options)
    if options.csv:
        with open(options.csv, "w", newline="") as file:
            writer = csv.DictWriter(file, fieldnames=sorted({key for row in rows for key in row}))
            writer.writeheader()
            writer.writerows(rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
