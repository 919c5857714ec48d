#!/usr/bin/env python3
"""Random problems for as long as wanted: what the long random tests look at, seed after seed.

  tests/soak.py [--minutes 60] [--jobs N] [--seed N] [--tests FOLDER] [--json FILE]
  tests/soak.py --pack FOLDER    the programs with all that they load, for a machine where nothing is installed

Each job runs one test with one seed (tests/support/random_cases.h), until the minutes are over. The tests compare the
answers of all planners with each other, exact planners with brute force, bounds with optima, evaluators with the
verifier, and a problem with its scaled, renamed or eased copies. A failure says how to see it again, and the small
problem that shows it is in build/found. A test that counts no case, skips or never comes to its end is told, and is no
success. --json writes counts and failures. The exit code is 1 where anything failed.
"""

import argparse
import concurrent.futures
import itertools
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
# By program, which of its tests take random cases.
PROGRAMS = {
    "evaluate_full_tests": "*",
    "bounds_full_tests": "*",
    "planning_full_tests": "*Properties*",
    "planners_full_tests": "CpsatSchedule*:Decompose*:ToctExact*:Moirai*:SeveralModels*:CallsExact*:Exhaustive*:"
    "Ideals*:Programs*:Configuration*:Shared*:*Answers*-*Published*",
}
# The program that holds the answers of all planners, and whether the solvers are there.
PLANNERS = "planners_full_tests"
ANSWERS = "Answers.OfAll"
ANSWERS_A_ROUND = 40  # seeds of them for one of each other test: they are short
APART = 100_000  # between those seeds, so that no day meets another's
# What every Linux with a C++ compiler has.
OF_THE_SYSTEM = re.compile(r"/(libc|libm|libdl|libpthread|librt|libgcc_s|libstdc\+\+|ld-linux[^/]*)\.so")
SHOWN = 3000  # characters of a failure
DAY = 24 * 3600


def tests_of(program, pattern):
    """Names of the tests, as gtest takes them."""
    command = [program, "--gtest_list_tests", f"--gtest_filter={pattern}"]
    names, suite = [], ""
    listed = subprocess.run(command, check=True, capture_output=True, text=True, env=environment(program.parent))
    for line in listed.stdout.splitlines():
        if not line.startswith(" "):
            suite = line.split("#")[0].strip()
        elif suite.endswith("."):
            names.append(suite + line.split("#")[0].strip())
    return names


def environment(folder, **more):
    """Of a test program; one that was packed finds its libraries beside it."""
    result = {**os.environ, "PLACEWRIGHT_FOUND": str(ROOT / "build/found"), **more}
    if (folder / "lib").is_dir():
        result["LD_LIBRARY_PATH"] = f"{folder / 'lib'}:{os.environ.get('LD_LIBRARY_PATH', '')}"
        result["PLACEWRIGHT_ORTOOLS_LIB"] = str(next((folder / "lib").glob("libortools.so.*")))
    return result


def require_solvers(folder):
    """Without its solver a planner refuses, and a suite of refusals has tested nothing."""
    command = [folder / PLANNERS, "--gtest_filter=Solvers.AreThere", "--gtest_brief=1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment(folder))
    if done.returncode != 0:
        raise SystemExit(f"a solver cannot be loaded:\n{done.stdout}{done.stderr}")


def run_test(program, test, seed, end):
    """What one test says of the cases of one seed; None where the time was over before."""
    left = end - time.monotonic()
    if left <= 0:
        return None
    command = [str(program), f"--gtest_filter={test}", "--gtest_brief=1"]
    result = {"test": test, "seed": seed, "cases": 0, "answers": {}}
    began = time.monotonic()
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=left,
            cwd=ROOT,
            check=False,
            env=environment(program.parent, PLACEWRIGHT_SEED=str(seed)),
        )
    except subprocess.TimeoutExpired:
        return {**result, "cut_off": True}
    result["seconds"] = time.monotonic() - began
    result["cases"] = sum(map(int, re.findall(r"random cases: (\d+)", done.stdout)))
    for planner, objective, count in re.findall(r"answers of (\S+) for (\S+): (\d+)", done.stdout):
        result["answers"][f"{planner} ({objective})"] = int(count)
    if done.returncode == 0 and (result["cases"] == 0 or "SKIPPED" in done.stdout):
        result["nothing"] = True
    if done.returncode != 0:
        result["again"] = f"PLACEWRIGHT_SEED={seed} {' '.join(command)}"
        result["output"] = (done.stdout + done.stderr)[:SHOWN]
    return result


def turns(tests, first_seed):
    """Tests with their seeds, without end: a round of all, with the answers of planners many times among them."""
    answers = [each for each in tests if ANSWERS in each[1]]
    others = [each for each in tests if ANSWERS not in each[1]]
    for seed in itertools.count(first_seed):
        many = [(*each, seed + APART * k) for k in range(ANSWERS_A_ROUND) for each in answers]
        share = len(many) // max(1, len(others)) + 1
        for program, test in others:
            yield program, test, seed
            yield from many[:share]
            del many[:share]
        yield from many


def soak(options):
    tests = [
        (options.tests / program, test)
        for program, pattern in PROGRAMS.items()
        for test in tests_of(options.tests / program, pattern)
    ]
    end = time.monotonic() + 60 * options.minutes
    waiting = turns(tests, options.seed)
    one_at_a_time = threading.Lock()
    results = []

    def work():
        while time.monotonic() < end:
            with one_at_a_time:
                program, test, seed = next(waiting)
            result = run_test(program, test, seed, end)
            if result:
                results.append(result)
                if "output" in result:
                    print(f"FAILED: {result['again']}\n{result['output']}", flush=True)

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for job in [pool.submit(work) for _ in range(options.jobs)]:
            job.result()
    return report_of(options, [test for _, test in tests], results)


def report_of(options, tests, results):
    cases = dict.fromkeys(tests, 0)
    answers = {}
    for result in results:
        cases[result["test"]] += result["cases"]
        for planner, count in result["answers"].items():
            answers[planner] = answers.get(planner, 0) + count
    ended = {result["test"] for result in results if "cut_off" not in result}
    return {
        "minutes": options.minutes,
        "jobs": options.jobs,
        "first_seed": options.seed,
        "rounds": max((result["seed"] % APART for result in results), default=0) - options.seed % APART + 1,
        "cases": sum(cases.values()),
        "answers": sum(answers.values()),
        "failures": [result for result in results if "output" in result],
        "tested_nothing": sorted({result["test"] for result in results if "nothing" in result}),
        "never_ended": sorted(set(tests) - ended),
        "cases_by_test": dict(sorted(cases.items())),
        "answers_by_planner": dict(sorted(answers.items())),
    }


def pack(folder, programs):
    """The programs, stripped, and beside them in lib/ the libraries that they load."""
    lib = folder / "lib"
    lib.mkdir(parents=True, exist_ok=True)
    ortools = next((ROOT / ".deps/venv/lib").glob("python3*/site-packages/ortools/.libs/libortools.so.*"))
    for path in programs:
        shutil.copy(path, folder)
    shutil.copy(ortools, lib)
    for path in [*programs, ortools]:
        listed = subprocess.run(["ldd", path], check=True, capture_output=True, text=True).stdout
        for library in re.findall(r"=> (/\S+)", listed):
            if not OF_THE_SYSTEM.search(library):
                shutil.copy(library, lib)
    for path in [*folder.glob("*_tests"), *lib.iterdir()]:
        subprocess.run(["strip", "--strip-unneeded", path], check=False, capture_output=True)
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    print(f"{folder}: {size / 2**20:.1f} MiB; there: --tests {folder}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--seed", type=int, default=int(time.time() // DAY))
    parser.add_argument("--tests", type=pathlib.Path, default=ROOT / "build/release/tests", metavar="FOLDER")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE")
    parser.add_argument("--pack", type=pathlib.Path, metavar="FOLDER")
    options = parser.parse_args()
    options.tests = options.tests.resolve()
    missing = [name for name in PROGRAMS if not (options.tests / name).exists()]
    if missing:
        raise SystemExit(f"{options.tests} has no {', '.join(missing)}: build them first")
    if options.pack:
        pack(options.pack, [options.tests / name for name in PROGRAMS])
        return 0
    require_solvers(options.tests)
    report = soak(options)
    print(
        f"{report['cases']:,} cases and {report['answers']:,} planner answers in {report['rounds']} rounds from seed "
        f"{report['first_seed']} on, {len(report['failures'])} failures"
    )
    for what in ("tested_nothing", "never_ended"):
        if report[what]:
            print(f"{what.replace('_', ' ')}: {', '.join(report[what])}")
    if options.json:
        options.json.write_text(json.dumps({"soak": report}, indent=1) + "\n")
    return 1 if report["failures"] or report["tested_nothing"] or report["never_ended"] else 0


if __name__ == "__main__":
    sys.exit(main())
