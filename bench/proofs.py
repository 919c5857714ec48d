#!/usr/bin/env python3
"""What two versions of the program need for the same proofs: prints a table of processor seconds.

  bench/proofs.py OLD NEW [--runs 5] [--only WORDS]

OLD and NEW are two programs. Both prove the same problems, published ones and some that OLD generates, in turns, with
one thread and a limit that no proof reaches. Seconds are processor seconds of the whole process, the median of the
runs. A row says `no proof` for a program that did not prove its plan within the limit; two proofs of different values
end the script.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

EXAMPLES = pathlib.Path(__file__).resolve().parent.parent / "examples"
LIMIT = "120s"
TOLERANCE = 1e-6

PUBLISHED = [  # file, planner, further options of `plan`
    ("moirai/GoogLeNet.json", "decompose", ()),
    ("moirai/inceptionv4.json", "decompose", ("--no-congestion",)),
    ("msr/throughput/LayerGraphs/gnmt_training.json", "refine", ("--contiguity", "none")),
    ("msr/throughput/LayerGraphs/bert24_training.json", "refine", ("--contiguity", "none")),
    ("msr/throughput/OperatorGraphs/bert_l-3_training.json", "refine", ("--contiguity", "none")),
    ("msr/throughput/OperatorGraphs/resnet50_inference.json", "cpsat", ("--contiguity", "none")),
    ("msr/latency/OperatorGraphs/bert_l-6_inference.json", "calls-exact", ("--objective", "call-latency")),
]
GENERATED = [  # family, objective, ops, cluster, further options of `generate`, planner
    ("layered", "throughput", 60, ("--accelerators", "3"), ("--seed", "2"), "ideals"),
    ("layered", "throughput", 60, ("--accelerators", "3"), ("--layers", "12", "--cores", "1"), "ideals"),
    ("layered", "throughput", 60, ("--accelerators", "2"), ("--layers", "12", "--cores", "1"), "ideals"),
    ("layered", "throughput", 48, ("--accelerators", "4"), (), "ideals"),
    ("series-parallel", "throughput", 100, ("--accelerators", "4"), (), "ideals"),
    ("inception", "latency", 200, ("--devices", "4"), (), "decompose"),
    ("layered", "latency", 22, ("--devices", "3"), (), "cpsat"),
    ("layered", "total-completion", 24, ("--devices", "3"), ("--models", "2"), "toct-exact"),
    ("series-parallel", "total-completion", 27, ("--devices", "3"), ("--models", "3"), "toct-exact"),
    ("series-parallel", "total-completion", 27, ("--devices", "3"), ("--models", "3", "--seed", "2"), "toct-exact"),
    ("series-parallel", "total-completion", 27, ("--devices", "3"), ("--models", "3", "--seed", "6"), "toct-exact"),
    ("layered", "call-latency", 26, ("--accelerators", "3"), (), "calls-exact"),
    ("series-parallel", "call-latency", 60, ("--accelerators", "4"), (), "calls-exact"),
]


def cases(old, folder):
    """Words of the case, file, planner, further options of `plan`."""
    for name, planner, more in PUBLISHED:
        words = name.removesuffix(".json").removeprefix("msr/")
        yield " ".join([words, *more]).replace("--", ""), EXAMPLES / name, planner, more
    for number, (family, objective, ops, cluster, more, planner) in enumerate(GENERATED):
        path = pathlib.Path(folder) / f"{number}.json"
        subprocess.run([old, "generate", family, "--objective", objective, "--ops", str(ops), *cluster, *more, "--quiet",
                        "-o", str(path)], check=True)
        words = f"{family} {ops} x {cluster[1]}{' accelerators' if 'acc' in cluster[0] else ''}"
        yield " ".join([words, *more]).replace("--", "") + f", {objective}", path, planner, ()


def proof(program, path, planner, more):
    """Processor seconds of one run, and the value that it proved; None where it proved none."""
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen([program, "plan", str(path), "--planner", planner, *more, "--time-limit", LIMIT,
                                    "--threads", "1", "--json", "--quiet"], stdout=output)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        answer = json.load(output)
    return usage.ru_utime + usage.ru_stime, answer["value"] if answer["status"] == "optimal" else None


def compare(programs, path, planner, more, runs):
    """Median seconds and value of each program; runs alternate, so that both see the same machine."""
    seconds = [[] for _ in programs]
    values = [set() for _ in programs]
    for _ in range(runs):
        for i, program in enumerate(programs):
            taken, value = proof(program, path, planner, more)
            seconds[i].append(taken)
            values[i].add(value)
    proved = [value for found in values for value in found if value is not None]
    if proved and max(proved) - min(proved) > TOLERANCE * max(proved):
        sys.exit(f"{path.name}, {planner}: different values are proved: {sorted(proved)}")
    return [None if None in found else statistics.median(taken) for taken, found in zip(seconds, values)], proved


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--only", default="", help="only cases and planners with these words")
    options = parser.parse_args()
    print("| problem | planner | proved value | before, CPU s | now, CPU s | ratio |")
    print("| --- | --- | ---: | ---: | ---: | ---: |")
    with tempfile.TemporaryDirectory() as folder:
        for words, path, planner, more in cases(options.old, folder):
            if options.only not in f"{words} {planner}":
                continue
            (before, now), proved = compare((options.old, options.new), path, planner, more, options.runs)
            ratio = f"{now / before:.2f}" if before and now else ""
            shown = [f"{seconds:.2f}" if seconds is not None else "no proof" for seconds in (before, now)]
            print(f"| {words} | `{planner}` | {min(proved):.6g} | {' | '.join(shown)} | {ratio} |" if proved else
                  f"| {words} | `{planner}` | | {' | '.join(shown)} | |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
