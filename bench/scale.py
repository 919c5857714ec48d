#!/usr/bin/env python3
"""How planners behave as problems grow: limits kept, values found, memory taken.

  bench/scale.py limits [--time-limit 1,10] [filters]   every planner: seconds over its limit, value, peak memory
  bench/scale.py auto   [--time-limit 1]    [filters]   auto against the best single quick planner, median of three
  bench/scale.py quick  [filters]                       seconds of the quick planners alone, against the number of ops

Filters are comma-separated lists: --objectives, --families, --ops, --devices, --planners. Each row is a run of its own.
Seconds are those of the planning itself, from the request to the checked answer, as `plan --json` states them: reading
and writing files is not in them. Processor seconds and memory are those of the process, reading included. A limit L is
kept when the answer comes within 1.05 L + 0.1 s.
"""

import argparse
import csv
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAM = ROOT / "build" / "placewright"

OBJECTIVES = ["latency", "total-completion", "throughput", "call-latency"]
FAMILIES = ["layered", "transformer", "inception", "series-parallel"]
OPS = [200, 2000, 20000, 100000]
DEVICES = [4, 16, 64]
QUICK = {
    "latency": ["heft", "etf", "topo", "single"],
    "total-completion": ["heft", "etf", "topo", "tsam"],
    "throughput": ["ideals-linear", "topo", "proportional", "scotch"],
    "call-latency": ["calls-greedy", "calls-chain", "topo", "single"],
}


def generate(folder, objective, family, ops, devices, more=()):
    """The path of a generated problem; calls need a host interconnect, the others have links and three kinds."""
    name = "-".join([objective, family, str(ops), str(devices), *(part.strip("-") for part in more)])
    path = pathlib.Path(folder) / f"{name}.json"
    if not path.exists():
        cluster = ["--accelerators" if objective == "call-latency" else "--devices", str(devices)]
        models = ["--models", "4"] if objective == "total-completion" else []
        subprocess.run([str(PROGRAM), "generate", family, "--objective", objective, "--ops", str(ops), *cluster, *models,
                        *more, "--quiet", "-o", str(path)], check=True)
    return path


def plan(path, planner, limit, more=()):
    """One process: what it answered, its seconds, processor seconds and peak memory in MB."""
    begin = time.monotonic()
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        process = subprocess.Popen([str(PROGRAM), "plan", str(path), "--planner", planner, "--time-limit", f"{limit}s",
                                    "--json", "--quiet", *more], stdout=output, stderr=errors)
        # A planner that does not end is a row of the table, not the end of it.
        patience = threading.Timer(20 * limit + 60, process.kill)
        patience.start()
        _, status, usage = os.wait4(process.pid, 0)
        patience.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        wall = time.monotonic() - begin
        output.seek(0)
        errors.seek(0)
        try:
            answer = json.load(output)
        except ValueError:
            reason = errors.read().decode().strip().splitlines()[-1:] or [""]
            answer = {"status": "refused" if process.returncode == 2 else "killed", "reason": reason[0]}
    return {"planner": planner, "limit": limit, "status": answer["status"], "value": answer.get("value"),
            "lower_bound": answer.get("lower_bound"), "found_by": answer.get("found_by"),
            "reason": answer.get("reason", ""), "seconds": answer.get("seconds", wall), "wall_seconds": wall,
            "cpu_seconds": usage.ru_utime + usage.ru_stime, "memory_mb": usage.ru_maxrss / 1024}


def kept(row):
    return row["seconds"] <= 1.05 * row["limit"] + 0.1


def gap(row):
    value, bound = row["value"], row["lower_bound"]
    return None if value is None or bound is None else max(0.0, (value - bound) / value) if value > 0 else 0.0


def known_planners(objective):
    listed = json.loads(subprocess.run([str(PROGRAM), "planners", "--json"], check=True, capture_output=True).stdout)
    entries = listed["planners"] if isinstance(listed, dict) else listed
    return [entry["name"] for entry in entries if objective in entry["objectives"]]


def text(value, form="{:.3g}"):
    return "" if value is None else form.format(value)


def percent(value):
    return text(None if value is None else 100 * value, "{:.1f} %")


def cases(options, folder):
    """The generated problems that the filters leave, each with what names it."""
    for objective in options.objectives:
        for family in options.families:
            for ops in options.ops:
                for devices in options.devices:
                    path = generate(folder, objective, family, ops, devices)
                    yield path, {"objective": objective, "family": family, "ops": ops, "devices": devices}


def limits(options, folder):
    print("| objective | problem | planner | limit | seconds | CPU s | memory MB | value | gap | kept |")
    print("| --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |")
    for path, case in cases(options, folder):
        for planner in options.planners or known_planners(case["objective"]):
            for limit in options.time_limit:
                row = {**case, **plan(path, planner, limit)}
                if row["status"] == "refused":
                    continue
                print(f"| {row['objective']} | {row['family']} {row['ops']:,} x {row['devices']} | {planner} | {limit:g} s | "
                      f"{row['seconds']:.2f} | {row['cpu_seconds']:.2f} | {row['memory_mb']:.0f} | {text(row['value'])} | "
                      f"{percent(gap(row))} | {'yes' if kept(row) else 'NO'} |", flush=True)
                yield row


def auto(options, folder):
    print("| objective | problem | limit | quick | value | auto | found by | auto against quick |")
    print("| --- | --- | ---: | --- | ---: | ---: | --- | ---: |")
    for path, case in cases(options, folder):
        for limit in options.time_limit:
            quick = [row for name in QUICK[case["objective"]] for row in [plan(path, name, limit)]
                     if row["value"] is not None and kept(row)]
            runs = [plan(path, "auto", limit) for _ in range(options.repeats)]
            values = [row["value"] if row["value"] is not None else float("inf") for row in runs]
            best = min(quick, key=lambda row: row["value"], default={"planner": "", "value": None})
            value = statistics.median(values)
            worse = value / best["value"] - 1 if best["value"] else None
            print(f"| {case['objective']} | {case['family']} {case['ops']:,} x {case['devices']} | {limit:g} s | "
                  f"{best['planner']} | {text(best['value'], '{:.6g}')} | {value:.6g} | {runs[0]['found_by']} | "
                  f"{percent(worse)} |", flush=True)
            yield {**case, "limit": limit, "quick": best["planner"], "quick_value": best["value"], "value": value,
                   "worse": worse}


def quick(options, folder):
    print("| objective | problem | planner | seconds | CPU s | memory MB | value | gap |")
    print("| --- | --- | --- | ---: | ---: | ---: | ---: | ---: |")
    for path, case in cases(options, folder):
        for planner in options.planners or QUICK[case["objective"]]:
            row = {**case, **plan(path, planner, 600)}
            print(f"| {row['objective']} | {row['family']} {row['ops']:,} x {row['devices']} | {planner} | "
                  f"{row['seconds']:.2f} | {row['cpu_seconds']:.2f} | {row['memory_mb']:.0f} | {text(row['value'])} | "
                  f"{percent(gap(row))} |", flush=True)
            yield row


def words(value):
    return value.split(",")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["limits", "auto", "quick"])
    parser.add_argument("--objectives", type=words, default=OBJECTIVES)
    parser.add_argument("--families", type=words, default=FAMILIES)
    parser.add_argument("--ops", type=lambda value: [int(word) for word in words(value)], default=OPS)
    parser.add_argument("--devices", type=lambda value: [int(word) for word in words(value)], default=DEVICES)
    parser.add_argument("--planners", type=words, help="only these; without it all that serve the objective")
    parser.add_argument("--time-limit", type=lambda value: [float(word) for word in words(value)], default=[1.0])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--problems", help="keep generated problems in this folder")
    parser.add_argument("--csv", help="write the rows here too")
    options = parser.parse_args()
    measure = {"limits": limits, "auto": auto, "quick": quick}[options.what]
    with tempfile.TemporaryDirectory() as folder:
        if options.problems:
            os.makedirs(options.problems, exist_ok=True)
        rows = list(measure(options, options.problems or folder))
    if options.csv:
        with open(options.csv, "w", newline="") as file:
            writer = csv.DictWriter(file, fieldnames=list(dict.fromkeys(key for row in rows for key in row)))
            writer.writeheader()
            writer.writerows(rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
