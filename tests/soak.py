#!/usr/bin/env python3
"""Random problems for as long as wanted: what the long random tests look at, seed after seed.

  tests/soak.py [--minutes 60] [--jobs N] [--seed N] [--tests FOLDER] [--json FILE] [--page FILE]

Each job runs one test with one seed (tests/support/random_cases.h), until the minutes are over. The tests compare exact
planners with brute force and with each other, bounds with optima, evaluators with the verifier, and a problem with its
scaled, renamed or eased copies. A failure says how to see it again. --json writes counts and failures, --page the table
of a results page. The exit code is 1 where anything failed.
"""

import argparse
import concurrent.futures
import itertools
import json
import os
import pathlib
import re
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
    "Ideals*:Programs*:Configuration*:Shared*-*Published*",
}
SHOWN = 3000  # characters of a failure
DAY = 24 * 3600


def tests_of(program, pattern):
    """Names of the tests, as gtest takes them."""
    command = [program, "--gtest_list_tests", f"--gtest_filter={pattern}"]
    names, suite = [], ""
    for line in subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines():
        if not line.startswith(" "):
            suite = line.split("#")[0].strip()
        elif suite.endswith("."):
            names.append(suite + line.split("#")[0].strip())
    return names


def run_test(program, test, seed, end):
    """What one test says of the cases of one seed; None where the time was over before."""
    left = end - time.monotonic()
    if left <= 0:
        return None
    command = [str(program), f"--gtest_filter={test}", "--gtest_brief=1"]
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=left,
            cwd=ROOT,
            check=False,
            env={**os.environ, "PLACEWRIGHT_SEED": str(seed)},
        )
    except subprocess.TimeoutExpired:
        return None
    cases = sum(map(int, re.findall(r"random cases: (\d+)", done.stdout)))
    result = {"test": test, "seed": seed, "cases": cases}
    if done.returncode != 0:
        result["again"] = f"PLACEWRIGHT_SEED={seed} {' '.join(command)}"
        result["output"] = (done.stdout + done.stderr)[:SHOWN]
    return result


def soak(options):
    end = time.monotonic() + 60 * options.minutes
    tests = [
        (options.tests / program, test)
        for program, pattern in PROGRAMS.items()
        for test in tests_of(options.tests / program, pattern)
    ]
    waiting = ((program, test, seed) for seed in itertools.count(options.seed) for program, test in tests)
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
    counts = {}
    for result in results:
        counts[result["test"]] = counts.get(result["test"], 0) + result["cases"]
    return {
        "minutes": options.minutes,
        "jobs": options.jobs,
        "first_seed": options.seed,
        "last_seed": max((result["seed"] for result in results), default=options.seed),
        "cases": sum(counts.values()),
        "failures": [result for result in results if "output" in result],
        "by_test": dict(sorted(counts.items())),
    }


def page_of(report):
    failed = [failure["test"] for failure in report["failures"]]
    rows = [f"| `{test}` | {cases:,} | {failed.count(test)} |" for test, cases in report["by_test"].items()]
    lines = [
        "# Random problems",
        "",
        f"`make soak MINUTES={report['minutes']:g}` looked at {report['cases']:,} random cases, with seeds",
        f"{report['first_seed']} to {report['last_seed']}. A test that finds a wrong case counts as one failure; there",
        f"were {len(failed)}.",
        "",
        "| test | cases | failures |",
        "| --- | ---: | ---: |",
        *rows,
    ]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--seed", type=int, default=int(time.time() // DAY))
    parser.add_argument("--tests", type=pathlib.Path, default=ROOT / "build/release/tests", metavar="FOLDER")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE")
    parser.add_argument("--page", type=pathlib.Path, metavar="FILE")
    options = parser.parse_args()
    missing = [name for name in PROGRAMS if not (options.tests / name).exists()]
    if missing:
        raise SystemExit(f"{options.tests} has no {', '.join(missing)}: build them first")
    report = soak(options)
    seeds = f"seeds {report['first_seed']} to {report['last_seed']}"
    print(f"{report['cases']:,} cases, {len(report['failures'])} failures, {seeds}")
    if options.json:
        options.json.write_text(json.dumps(report, indent=1) + "\n")
    if options.page:
        options.page.write_text(page_of(report))
    return 1 if report["failures"] else 0


if __name__ == "__main__":
    sys.exit(main())
