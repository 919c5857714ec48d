#!/usr/bin/env python3
"""`auto` beside a plain CP-SAT script, HEFT and PEFT on generated graphs of public shapes.

  bench/portfolio.py [--rows FILE] [--minutes N] [--jobs N] [--only WORDS] [--program FILE] [--json]
  bench/portfolio.py --rows FILE --page docs/results/portfolio.md      the page's tables, from the rows there are

Cases are measured side by side, and each row is appended to FILE as it comes: a run that was stopped goes on where it
was. The order of the cases is fixed and mixes all sets, so that any part of them is a fair sample. A case takes as many
cores as its threads; --jobs says how many cores there are to share. Needs the packages ortools and numpy.

The plain script is `plain_cp_sat` below: an optional interval for each op and device, a literal for each edge that says
whether both ends share a device. It has the same threads and the same time as `auto`. `heft` and `peft` are those of
the program. The best known value of a case is the best of all methods; the best known bound likewise.
"""

import argparse
import concurrent.futures
import json
import math
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import pages
import portfolio_graphs

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAM = ROOT / "build" / "placewright"
RATIOS = (0.1, 0.5, 1, 2, 5, 10)
MACHINES = ("equal", "uniform", "unrelated")
ROUNDING = 1e-6


def cases():
    """Every case by name: set, shape, ops, machines, devices, ratio, seed, and which methods run how."""
    made = []
    for shape in portfolio_graphs.SHAPES:
        for number, ratio in enumerate(RATIOS):
            for machines in MACHINES:
                devices = (2, 4, 8, 16)[(number + MACHINES.index(machines)) % 4]
                for kind, ops in (("10", 10), ("16", 16), ("21-30", 21 + 3 * (number % 4))):
                    made.append(case(kind, shape, ops, machines, devices, ratio, 1, seconds=2, threads=1, plain=True))
                    if kind == "21-30":
                        made.append(case("21-30, 20 s", shape, ops, machines, devices, ratio, 1, seconds=20, threads=1))
            devices = (8, 16, 32, 64)[number % 4]
            size = (76, 96, 150, 223, 334)[(number + len(shape)) % 5]
            for seed in (1, 2, 3):
                made.append(
                    case("large", shape, size, "unrelated", devices, ratio, seed, seconds=20, threads=2, plain=True)
                )
            made.append(case("gaps", shape, size, "unrelated", devices, ratio, 1, seconds=5, threads=1))
            for threads in (1, 2):
                made.append(case("threads", shape, size, "unrelated", devices, ratio, 1, seconds=5, threads=threads))
    random.Random(38).shuffle(made)
    return made


def case(kind, shape, ops, machines, devices, ratio, seed, *, seconds, threads, plain=False):
    name = f"{kind}: {shape} {ops} x {devices} {machines}, transfers {ratio}, seed {seed}, {threads} threads"
    return {
        "name": name,
        "set": kind,
        "shape": shape,
        "ops": ops,
        "machines": machines,
        "devices": devices,
        "ratio": ratio,
        "seed": seed,
        "seconds": seconds,
        "threads": threads,
        "plain": plain,
    }


def plain_cp_sat(problem, seconds, threads):
    """The model that anybody would write first."""
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    kinds = {kind["name"]: number for number, kind in enumerate(problem["kinds"])}
    devices = [kinds[device["kind"]] for device in problem["devices"]]
    horizon = sum(max(op["time"]) for op in problem["ops"]) + sum(tensor["bytes"] for tensor in problem["tensors"])
    starts, ends, here, intervals = [], [], [], [[] for _ in devices]
    for op in problem["ops"]:
        start, end = model.new_int_var(0, horizon, ""), model.new_int_var(0, horizon, "")
        literals = [model.new_bool_var("") for _ in devices]
        for device, literal in enumerate(literals):
            length = op["time"][devices[device]]
            intervals[device].append(model.new_optional_interval_var(start, length, end, literal, ""))
        model.add_exactly_one(literals)
        starts.append(start)
        ends.append(end)
        here.append(literals)
    for device in intervals:
        model.add_no_overlap(device)
    for tensor in problem["tensors"]:
        a, b, same = tensor["from"], tensor["to"][0], model.new_bool_var("")
        for x, y in zip(here[a], here[b]):
            model.add_implication(x, y).only_enforce_if(same)
        model.add(starts[b] >= ends[a])
        model.add(starts[b] >= ends[a] + tensor["bytes"]).only_enforce_if(~same)
    makespan = model.new_int_var(0, horizon, "")
    model.add_max_equality(makespan, ends)
    model.minimize(makespan)
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = seconds
    solver.parameters.num_workers = threads
    status = solver.solve(model)
    found = status in (cp_model.OPTIMAL, cp_model.FEASIBLE)
    return {"value": solver.objective_value if found else None, "bound": solver.best_objective_bound}


class Measurement:
    """Cases on a number of cores, rows into a file."""

    def __init__(self, options):
        self.options = options
        self.program = pages.Program(options.program)
        self.path = pathlib.Path(options.rows)
        self.until = time.monotonic() + 60 * options.minutes
        self.cores = threading.Semaphore(options.jobs)
        self.two_at_once = threading.Lock()  # nobody holds one core and waits for another that waits as well
        self.writing = threading.Lock()

    def planned(self, path, planner, seconds, threads):
        answer = self.program.run(
            "plan", path, "--planner", planner, "--time-limit", f"{seconds}s", "--threads", threads, "--quiet"
        )
        return {"value": answer["value"], "bound": answer["lower_bound"], "found_by": answer.get("found_by", planner)}

    def row(self, one, folder):
        draw = random.Random(
            f"{one['shape']} {one['ops']} {one['machines']} {one['devices']} {one['ratio']} {one['seed']}"
        )
        made = portfolio_graphs.problem(one["shape"], one["ops"], one["machines"], one["devices"], one["ratio"], draw)
        path = pathlib.Path(folder) / f"{threading.get_ident()}.json"
        path.write_text(json.dumps(made))
        row = {**one, "count": len(made["ops"]), "auto": self.planned(path, "auto", one["seconds"], one["threads"])}
        for planner in ("heft", "peft"):
            row[planner] = self.planned(path, planner, one["seconds"], 1)
        if one["plain"]:
            command = [sys.executable, __file__, "--plain", str(path), str(one["seconds"]), str(one["threads"])]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            row["plain"] = json.loads(done.stdout)
        return row

    def measure(self, one, folder):
        with self.two_at_once:
            for _ in range(one["threads"]):
                self.cores.acquire()
        try:
            if time.monotonic() + one["seconds"] * (2 if one["plain"] else 1) > self.until:
                return
            row = self.row(one, folder)
            with self.writing, self.path.open("a") as file:
                file.write(json.dumps(row) + "\n")
        finally:
            for _ in range(one["threads"]):
                self.cores.release()

    def run(self):
        known = {row["name"] for row in rows_in(self.path)}
        waiting = [one for one in cases() if one["name"] not in known and self.options.only in one["name"]]
        with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(self.options.jobs) as pool:
            for done in [pool.submit(self.measure, one, folder) for one in waiting]:
                done.result()


def rows_in(path):
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def optimal(answer):
    """Whether an answer proves itself."""
    return answer["value"] is not None and answer["bound"] >= answer["value"] * (1 - ROUNDING)


def gap(answer):
    return 1 - answer["bound"] / answer["value"]


def best_of(row):
    """The best value known of the case."""
    values = [row[method]["value"] for method in ("auto", "plain", "heft", "peft") if row.get(method)]
    return min(value for value in values if value is not None)


def percent(part, digits=1):
    return f"{100 * part:.{digits}f} %"


def share(rows, test):
    return percent(sum(map(test, rows)) / len(rows)) if rows else ""


def small_rows(rows):
    """Of each set of small graphs: how often the best known value is met, and proved. Runs of 20 s help to know it."""
    best = {}
    for row in rows:
        key = row["name"].split(": ")[1].rsplit(",", 1)[0]
        best[key] = min(best.get(key, math.inf), best_of(row))
    for kind in ("10", "16", "21-30", "21-30, 20 s"):
        of_kind = [row for row in rows if row["set"] == kind]
        if not of_kind:
            continue

        def met(row, method):
            value = row[method]["value"]
            return value is not None and value <= best[row["name"].split(": ")[1].rsplit(",", 1)[0]] * (1 + ROUNDING)

        plain = [row for row in of_kind if row.get("plain")]
        yield [
            f"{kind} ops" if "s" not in kind else kind.replace(",", " ops,"),
            len(of_kind),
            share(of_kind, lambda row: met(row, "auto")),
            share(of_kind, lambda row: optimal(row["auto"])),
            share(plain, lambda row: met(row, "plain")),
            share(plain, lambda row: optimal(row["plain"])),
            share(of_kind, lambda row: met(row, "heft")),
        ]


def large_rows(rows):
    of_kind = [row for row in rows if row["set"] == "large" and row["plain"]["value"] is not None]
    for words, chosen in [
        ("all", of_kind),
        *((f"transfers {ratio}", [row for row in of_kind if row["ratio"] == ratio]) for ratio in RATIOS),
    ]:
        if not chosen:
            continue
        values = [row["auto"]["value"] / row["plain"]["value"] for row in chosen]
        bounds = [row["auto"]["bound"] / max(row["plain"]["bound"], 1e-9) for row in chosen]
        heft = [row["auto"]["value"] / row["heft"]["value"] for row in chosen]
        peft = [row["auto"]["value"] / row["peft"]["value"] for row in chosen]
        yield [
            words,
            len(chosen),
            f"{statistics.geometric_mean(values):.3f}",
            f"{statistics.median(values):.3f}",
            f"{max(values):.3f}",
            f"{statistics.median(bounds):.3f}",
            f"{min(bounds):.3f}",
            f"{statistics.geometric_mean(heft):.3f}",
            f"{statistics.geometric_mean(peft):.3f}",
        ]


def gap_rows(rows):
    for ratio in RATIOS:
        gaps = [gap(row["auto"]) for row in rows if row["set"] == "gaps" and row["ratio"] == ratio]
        if gaps:
            yield [str(ratio), len(gaps), percent(statistics.median(gaps)), percent(max(gaps))]


def thread_rows(rows):
    """Pairs of the same case on one thread and on two."""
    pairs = {}
    for row in rows:
        if row["set"] == "threads":
            pairs.setdefault(row["name"].rsplit(",", 1)[0], {})[row["threads"]] = row["auto"]
    both = [pair for pair in pairs.values() if len(pair) == 2]
    for words, chosen in (("all", both), ("one thread left a gap", [pair for pair in both if not optimal(pair[1])])):
        if chosen:
            values = [pair[2]["value"] / pair[1]["value"] for pair in chosen]
            bounds = [pair[2]["bound"] / pair[1]["bound"] for pair in chosen]
            yield [
                words,
                len(chosen),
                f"{statistics.median(values):.4f}",
                f"{max(values):.4f}",
                f"{statistics.median(bounds):.3f}",
            ]


TABLES = {
    "small": (
        ["graphs", "cases", "`auto` best", "`auto` proved", "CP-SAT best", "CP-SAT proved", "HEFT best"],
        small_rows,
    ),
    "large": (
        [
            "cases",
            "number",
            "value, mean",
            "value, median",
            "value, worst",
            "bound, median",
            "bound, worst",
            "value against HEFT",
            "value against PEFT",
        ],
        large_rows,
    ),
    "gaps": (["transfers / work", "cases", "median gap", "largest"], gap_rows),
    "threads": (["cases", "number", "value, median", "value, worst", "bound, median"], thread_rows),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", default=str(ROOT / "build" / "portfolio.jsonl"))
    parser.add_argument("--minutes", type=float, default=math.inf)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", default="", help="only cases with these words in their names")
    parser.add_argument("--program", default=str(PROGRAM))
    parser.add_argument("--json", action="store_true", help="print the tables as JSON")
    parser.add_argument("--page", type=pathlib.Path, help="measure nothing; write the tables into this page")
    parser.add_argument(
        "--plain", nargs=3, help=argparse.SUPPRESS
    )  # one run of the plain script, in a process of its own
    options = parser.parse_args()
    if options.plain:
        path, seconds, threads = options.plain
        print(json.dumps(plain_cp_sat(json.loads(pathlib.Path(path).read_text()), float(seconds), int(threads))))
        return
    if not options.page:
        Measurement(options).run()
    rows = rows_in(pathlib.Path(options.rows))
    tables = {name: (titles, list(made(rows))) for name, (titles, made) in TABLES.items()}
    if options.json:
        print(json.dumps({name: [dict(zip(titles, row)) for row in made] for name, (titles, made) in tables.items()}))
        return
    for name, (titles, made) in tables.items():
        if options.page:
            pages.fill(options.page, name, pages.table(titles, made))
        else:
            print(pages.table(titles, made))


if __name__ == "__main__":
    main()
