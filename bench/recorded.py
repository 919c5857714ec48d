#!/usr/bin/env python3
"""Compares what fixed work costs and answers with what bench/recorded.json holds.

  bench/recorded.py [--only WORDS] [--values] [--program FILE] [--counter callgrind|perf] [--jobs N] [--record]

A row is one planner on one problem, with a limit of steps and a seed, or one call of another verb. Its cost is a number
of instructions, so other work on the machine does not change it. What happens inside HiGHS, CP-SAT and Scotch is not
counted. The row `start` says what the program takes to start, which is in each. A plan also has a value and a lower
bound. A row is

  slower   when it takes more than 3 % more instructions than recorded
  worse    when its value or bound is worse than recorded, beyond rounding
  no plan  when a plan is recorded and none was found
  gone     when it is recorded and no longer asked for

and each of these makes the exit code 1. `faster`, `better` and `new` rows are printed as well.

--only takes rows whose name holds one of the comma-separated words. --values counts no instructions and takes seconds.
--record keeps what was measured. The counter callgrind works on every machine; perf needs a processor with counters, is
much faster, and has records of its own, since it also counts instructions that valgrind replaces.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
EXAMPLES = ROOT / "examples"
RECORD = ROOT / "bench" / "recorded.json"
SLOWER = 0.03
ROUNDING = 1e-9
# Not counted, since HiGHS works by the clock: what happens inside the solvers. Collecting must be
# turned on last.
SOLVERS = [f"--toggle-collect={name}" for name in ("Highs_run", "SolveCpInterruptible", "SCOTCH_graphMap")]
SOLVERS.append("--collect-atstart=yes")
LONGEST = 240  # seconds of one row, under callgrind

# Name, a file below examples/ or the words of `generate`, objective.
PROBLEMS = [
    ("googlenet", "moirai/GoogLeNet.json", "latency"),
    ("layered-200", "layered --ops 200 --devices 8 --memory-pressure 0.4", "latency"),
    ("three-models", "series-parallel --ops 60 --devices 4 --models 3", "total-completion"),
    ("bert24", "msr/throughput/LayerGraphs/bert24_inference.json", "throughput"),
    ("training-100", "transformer --ops 100 --devices 4 --training", "throughput"),
    ("cores-60", "inception --ops 60 --shared-cores 4", "throughput"),
    ("calls-30", "series-parallel --ops 30 --accelerators 3 --memory-pressure 0.5", "call-latency"),
]
STEPS = 300
# What a step is differs from planner to planner.
STEPS_OF = {"prices": 100, "auto": 100}
# Planners, and rows, whose instructions are nearly all those of another project's library.
LEFT_OUT = {"training-100 ip-contiguous": "HiGHS", "hsdag": "libtorch", "placeto": "libtorch", "rnn": "libtorch"}


def output_of(*command):
    return subprocess.run([*map(str, command)], check=True, capture_output=True, text=True).stdout


def problem_file(program, words, objective, path):
    """The published problem, or the generated one, written to the path."""
    if words.endswith(".json"):
        return EXAMPLES / words
    output_of(program, "generate", *words.split(), "--objective", objective, "--quiet", "-o", path)
    return path


def rows_of(program, folder):
    """By name, the arguments of the program."""
    planners = json.loads(output_of(program, "planners", "--json"))
    rows = {"start": ["--version"]}
    for name, words, objective in PROBLEMS:
        problem = problem_file(program, words, objective, folder / f"{name}.json")
        asked = ["plan", problem, "--objective", objective, "--seed", "1", "--threads", "1"]
        for planner in (entry["name"] for entry in planners if objective in entry["objectives"]):
            if planner in LEFT_OUT or f"{name} {planner}" in LEFT_OUT:
                continue
            steps = STEPS_OF.get(planner, STEPS)
            rows[f"plan {name} {planner}"] = [*asked, "--planner", planner, "--steps", steps, "--json"]
        plan = folder / f"{name}-plan.json"
        output_of(program, *asked, "--planner", "topo", "--steps", STEPS, "--quiet", "--embed", "-o", plan)
        rows[f"check {name}"] = ["check", plan]
        rows[f"simulate {name}"] = ["simulate", plan]
    return rows


def counted(command, counter, folder):
    """The command's instructions."""
    try:
        return counted_within(command, counter, folder)
    except subprocess.TimeoutExpired:
        raise SystemExit(f"more than {LONGEST} s under {counter}: {' '.join(map(str, command))}") from None


def counted_within(command, counter, folder):
    if counter == "perf":
        done = subprocess.run(
            ["perf", "stat", "-x,", "-e", "instructions:u", *command],
            capture_output=True,
            text=True,
            timeout=LONGEST,
            check=False,
        )
        found = re.search(r"^(\d+),", done.stderr, re.MULTILINE)
        if not found:
            raise SystemExit("perf counts no instructions on this machine: use --counter callgrind")
        return int(found[1])
    done = subprocess.run(
        ["valgrind", "--tool=callgrind", *SOLVERS, f"--callgrind-out-file={folder}/callgrind.%p", *command],
        capture_output=True,
        text=True,
        timeout=LONGEST,
        check=False,
    )
    found = re.search(r"Collected : (\d+)", done.stderr)
    if not found:
        raise SystemExit(f"valgrind counted nothing for: {' '.join(map(str, command))}\n{done.stderr[-1000:]}")
    return int(found[1])


def measured(program, arguments, counter, folder):
    """The row; None where the planner refuses the problem."""
    command = [program, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST, check=False)
    if done.returncode not in (0, 1):
        return None
    row = {}
    if arguments[0] == "plan":
        outcome = json.loads(done.stdout)
        row = {"value": outcome.get("value"), "bound": outcome.get("lower_bound", 0)}
    if counter:
        row["instructions"] = counted(command, counter, folder)
    return row


def rounding(number):
    return ROUNDING * max(1.0, abs(number))


def judged(now, before):
    """What is to be said of a row, and whether it is bad."""
    if before is None:
        return "new", False
    if now is None or (before.get("value") is not None and now.get("value") is None):
        return "no plan", True
    words, bad = [], False
    for key, sign in (("value", 1), ("bound", -1)):
        if now.get(key) is None or before.get(key) is None:
            continue
        change = sign * (now[key] - before[key])
        if abs(change) > rounding(before[key]):
            words.append(f"{key} {'worse' if change > 0 else 'better'}: {before[key]:.9g} -> {now[key]:.9g}")
            bad = bad or change > 0
    if "instructions" in now and "instructions" in before:
        ratio = now["instructions"] / before["instructions"]
        if abs(ratio - 1) > SLOWER:
            words.append(f"{'slower' if ratio > 1 else 'faster'}: {100 * (ratio - 1):+.1f} %")
            bad = bad or ratio > 1
    return ", ".join(words), bad


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", metavar="WORDS")
    parser.add_argument("--values", action="store_true")
    parser.add_argument("--program", type=pathlib.Path, default=ROOT / "build" / "placewright", metavar="FILE")
    parser.add_argument("--counter", choices=["callgrind", "perf"], default="callgrind")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), metavar="N")
    parser.add_argument("--record", action="store_true")
    return parser.parse_args()


def measure_all(options, rows, folder):
    """Each row as it comes, printed with its judgement."""
    counter = None if options.values else options.counter
    record = json.loads(RECORD.read_text()).get(options.counter, {}) if RECORD.exists() else {}
    found, bad = {}, 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        waiting = {name: pool.submit(measured, options.program, row, counter, folder) for name, row in rows.items()}
        for name, future in waiting.items():
            row = future.result()
            if row is None and name not in record:
                continue
            words, is_bad = judged(row, record.get(name))
            bad += is_bad
            found[name] = row
            row = row or {}
            cost = f"{row['instructions'] / 1e6:9.1f} M" if "instructions" in row else ""
            value = f"{row['value']:.6g}" if row.get("value") is not None else ""
            print(f"{name:<36} {cost:>11} {value:>12}  {'!! ' if is_bad else ''}{words}", flush=True)
    return found, record, bad


def main():
    options = arguments()
    if not options.values and not shutil.which("valgrind" if options.counter == "callgrind" else "perf"):
        raise SystemExit(f"bench-check needs {options.counter} (scripts/setup bench installs valgrind)")
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        rows = rows_of(options.program, folder)
        words = [word for word in options.only.split(",") if word]
        wanted = {name: row for name, row in rows.items() if not words or any(word in name for word in words)}
        if not wanted:
            raise SystemExit(f"no row's name holds one of: {options.only}")
        found, record, bad = measure_all(options, wanted, folder)
    gone = sorted(set(record) - set(rows))
    for name in gone:
        print(f"{name:<36} gone")
    print(f"{len(found)} rows, {bad + len(gone)} worse than recorded, {time.monotonic() - begin:.0f} s")
    if options.record:
        document = json.loads(RECORD.read_text()) if RECORD.exists() else {}
        kept = {name: row for name, row in record.items() if name in rows and found.get(name, row) is not None}
        measured_now = {name: kept.get(name, {}) | row for name, row in found.items() if row is not None}
        document[options.counter] = dict(sorted((kept | measured_now).items()))
        RECORD.write_text(json.dumps(document, indent=1) + "\n")
        return 0
    return 1 if bad or gone else 0


if __name__ == "__main__":
    sys.exit(main())
