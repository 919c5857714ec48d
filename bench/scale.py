#!/usr/bin/env python3
"""How planners behave as problems grow: limits kept, values found, memory taken. Fills docs/results/scale.md.

  bench/scale.py limits [--time-limit 1,10] [filters]   every planner: seconds over its limit, value, peak memory
  bench/scale.py auto   [--time-limit 1]    [filters]   auto against the best single quick planner, median of three
  bench/scale.py quick  [filters]                       seconds of the quick planners alone, against the number of ops
  bench/scale.py cases  [--only WORDS]                  single cases, each with its own limit
  bench/scale.py page                                   the page's tables and plot, from all rows measured so far

Filters are comma-separated lists: --objectives, --families, --ops, --devices, --planners. Each row is a run of its own.
Rows are kept in docs/results/scale.jsonl as they come: a row that is there is not measured again (--again does).
Seconds are those of the planning itself, from the request to the checked answer, as `plan --json` states them: reading
and writing files is not in them. Processor seconds and memory are those of the process, reading included. A limit L is
kept when the answer comes within 1.05 L + 0.1 s. Under `chrt -f 10` other work on the machine does not disturb it.
"""

import argparse
import json
import math
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAM = ROOT / "build" / "placewright"
PAGE = ROOT / "docs" / "results" / "scale.md"
ROWS = ROOT / "docs" / "results" / "scale.jsonl"
PLOT = ROOT / "docs" / "images" / "scale-growth.svg"

OBJECTIVES = ["latency", "total-completion", "throughput", "call-latency"]
FAMILIES = ["layered", "transformer", "inception", "series-parallel"]
OPS = [200, 2000, 20000, 100000]
DEVICES = [4, 16, 64]
QUICK = {
    "latency": ["heft", "lists", "etf", "repeats", "topo", "single"],
    "total-completion": ["heft", "lists", "etf", "topo", "tsam"],
    "throughput": ["ideals-linear", "kinds", "repeats", "topo", "proportional", "scotch"],
    "call-latency": ["calls-greedy", "calls-chain", "topo", "single"],
}
COUNTED = 600  # seconds: a limit that quick planners never reach

# In order of the page: words of the case, family, objective, ops, devices, further options of
# `generate`, planner, limit in seconds, how the result is read.
CASES = [
    ("HEFT, layered 100,000 x 64, latency: seconds", "layered", "latency", 100000, 64, (), "heft", COUNTED, "seconds"),
    ("ETF, layered 20,000 x 16, latency: seconds", "layered", "latency", 20000, 16, (), "etf", COUNTED, "seconds"),
    *[(f"{family} 20,000 x {devices}, latency, 2 s: better than HEFT by", family, "latency", 20000, devices, (), "auto",
       2, "gain") for devices in (16, 64) for family in ("layered", "inception", "transformer")],
    *[(f"{family} 20,000 x {devices}, latency, 20 s: gap", family, "latency", 20000, devices, (), "auto", 20, "gap")
      for devices in (16, 64) for family in ("layered", "inception", "transformer")],
    *[(f"transformer of equal layers, 20,000 x {devices}, latency, {limit} s: gap", "transformer", "latency", 20000,
       devices, ("--variation", "0"), "auto", limit, "gap") for devices, limit in [(16, 2), (16, 20), (64, 20)]],
    *[(f"transformer {ops:,} x {devices}, {objective}, layers planned once, 10 s: gap", "transformer", objective, ops,
       devices, (), "repeats", 10, "gap") for objective in ("latency", "throughput") for ops in (2000, 20000)
      for devices in (16, 64)],
    *[(f"layered 20,000 x {devices}, throughput, 10 s: gap", "layered", "throughput", 20000, devices, (), "auto", 10,
       "gap") for devices in (16, 64)],
    ("transformer 20,000 x 64, three kinds, throughput, 10 s: gap", "transformer", "throughput", 20000, 64, (), "auto",
     10, "gap"),
    ("the same: memory, MB", "transformer", "throughput", 20000, 64, (), "auto", 10, "memory_mb"),
    ("encoder-decoder 1,400 x 4, latency, 60 s: gap", "encoder-decoder", "latency", 1400, 4, (), "auto", 60, "gap"),
    ("layered 100 x 6 accelerators, throughput, 60 s: gap", "layered", "throughput", 100, 6, (), "auto", 60, "gap"),
    ("series-parallel 200 x 8 accelerators, throughput, 60 s: gap", "series-parallel", "throughput", 200, 8, (), "auto",
     60, "gap"),
    *[(f"{models} models of 40 ops x 4 devices, total completion, 10 s: gap", "series-parallel", "total-completion",
       40 * models, 4, ("--models", str(models)), "auto", 10, "gap") for models in (2, 4, 8)],
    ("layered 60 x 6 accelerators, calls, 60 s: gap", "layered", "call-latency", 60, 6, (), "auto", 60, "gap"),
]


class Rows:
    """What has been measured so far, by what names a row."""

    def __init__(self, path, again):
        self.path = path
        self.again = again
        lines = path.read_text().splitlines() if path.exists() else []
        self.rows = {self.key(row): row for row in map(json.loads, lines)}

    @staticmethod
    def key(row):
        return tuple(row.get(name) for name in ("objective", "family", "ops", "devices", "more", "planner", "limit", "run", "threads"))

    def get(self, case, measure):
        key = self.key(case)
        if self.again or key not in self.rows:
            self.rows[key] = {**case, **measure()}
            with self.path.open("a") as file:  # of two rows with the same key the later one counts
                file.write(json.dumps(self.rows[key]) + "\n")
        return self.rows[key]


def generate(folder, case):
    """The path of a generated problem; calls and the small pipelines need accelerators, the others have three kinds."""
    more = case["more"].split()
    name = "-".join([case["objective"], case["family"], str(case["ops"]), str(case["devices"]), *(word.strip("-") for word in more)])
    path = pathlib.Path(folder) / f"{name}.json"
    if not path.exists():
        small_pipeline = case["objective"] == "throughput" and case["ops"] < 2000
        cluster = ["--accelerators" if case["objective"] == "call-latency" or small_pipeline else "--devices", str(case["devices"])]
        models = ["--models", "4"] if case["objective"] == "total-completion" and "--models" not in more else []
        subprocess.run([str(PROGRAM), "generate", case["family"], "--objective", case["objective"], "--ops", str(case["ops"]),
                        *cluster, *models, *more, "--quiet", "-o", str(path)], check=True)
    return path


def plan(path, planner, limit, threads):
    """One process: what it answered, its seconds, processor seconds and peak memory in MB."""
    begin = time.monotonic()
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        process = subprocess.Popen([str(PROGRAM), "plan", str(path), "--planner", planner, "--time-limit", f"{limit}s",
                                    "--threads", str(threads), "--json", "--quiet"], stdout=output, stderr=errors)
        # A planner that does not end is a row of the table, not the end of it.
        patience = threading.Timer(20 * min(limit, 60) + 60, process.kill)
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
    return {"status": answer["status"], "value": answer.get("value"), "lower_bound": answer.get("lower_bound"),
            "found_by": answer.get("found_by"), "reason": answer.get("reason", ""),
            "seconds": round(answer.get("seconds", wall), 4), "cpu_seconds": round(usage.ru_utime + usage.ru_stime, 3),
            "memory_mb": round(usage.ru_maxrss / 1024)}


def kept(row):
    return row["seconds"] <= 1.05 * row["limit"] + 0.1


def gap(row):
    value, bound = row["value"], row["lower_bound"]
    return None if value is None or bound is None else max(0.0, (value - bound) / value) if value > 0 else 0.0


def known_planners(objective):
    listed = json.loads(subprocess.run([str(PROGRAM), "planners", "--json"], check=True, capture_output=True).stdout)
    entries = listed["planners"] if isinstance(listed, dict) else listed
    return [entry["name"] for entry in entries if objective in entry["objectives"]]


def percent(value):
    return "" if value is None else f"{100 * value:.1f} %"


class Bench:
    def __init__(self, options, folder):
        self.options = options
        self.folder = folder
        self.rows = Rows(pathlib.Path(options.rows), options.again)

    def row(self, family, objective, ops, devices, planner, limit, more=(), run=0):
        case = {"objective": objective, "family": family, "ops": ops, "devices": devices, "more": " ".join(more),
                "planner": planner, "limit": limit, "run": run}
        threads = self.options.threads
        if threads > 1:
            case["threads"] = threads
        row = self.rows.get(case, lambda: plan(generate(self.folder, case), planner, limit, threads))
        print(f"{objective} {family} {ops} x {devices} {planner} {limit:g} s: {row['status']} {row['value']} "
              f"gap {percent(gap(row))} in {row['seconds']:.2f} s ({row['cpu_seconds']:.2f} CPU), {row['memory_mb']} MB"
              f"{'' if kept(row) else ', NOT KEPT'}", flush=True)
        return row

    def cases(self):
        asked = self.options
        return [(family, objective, ops, devices) for objective in asked.objectives for family in asked.families
                for ops in asked.ops for devices in asked.devices]

    def limits(self):
        for case in self.cases():
            for planner in self.options.planners or known_planners(case[1]):
                for limit in self.options.time_limit:
                    self.row(*case, planner, limit)

    def auto(self):
        for case in self.cases():
            for limit in self.options.time_limit:
                for planner in QUICK[case[1]]:
                    self.row(*case, planner, limit)
                for run in range(3):
                    self.row(*case, "auto", limit, run=run)

    def quick(self):
        for case in self.cases():
            for planner in self.options.planners or QUICK[case[1]]:
                self.row(*case, planner, COUNTED)

    def cases(self):
        for words, family, objective, ops, devices, more, planner, limit, reading in CASES:
            if self.options.only not in words:
                continue
            self.row(family, objective, ops, devices, planner, limit, more)
            if reading == "gain":
                self.row(family, objective, ops, devices, "heft", COUNTED, more)


class Page:
    """The tables of the page, from rows."""

    def __init__(self, rows):
        self.rows = rows
        self.measured = list(rows.rows.values())

    def find(self, **wanted):
        return [row for row in self.measured if all(row[name] == value for name, value in wanted.items())]

    def limits(self):
        yield "| objective | limit | ops x devices | planners | kept | the longest | most memory, MB | no plan, where `topo` has one |"
        yield "| --- | ---: | --- | ---: | ---: | --- | ---: | --- |"
        ran = [row for row in self.measured if row["limit"] in (1, 10) and row["run"] == 0 and row["status"] != "refused"]
        for objective in OBJECTIVES:
            for limit in (1, 10):
                for ops in OPS:
                    for devices in DEVICES:
                        rows = [row for row in ran if (row["objective"], row["limit"], row["ops"], row["devices"]) ==
                                (objective, limit, ops, devices)]
                        if len(rows) >= 8:
                            yield self.limits_line(objective, limit, ops, devices, rows)

    @staticmethod
    def limits_line(objective, limit, ops, devices, rows):
        late = sorted((row for row in rows if not kept(row)), key=lambda row: -row["seconds"])
        longest = max(rows, key=lambda row: row["seconds"])
        shown = ", ".join(f"`{row['planner']}` {row['seconds']:.2f} s" for row in late) or f"{longest['seconds']:.2f} s"
        found = {row["planner"]: row["value"] is not None for row in rows}
        without = ", ".join(f"`{row['planner']}`" for row in rows if row["value"] is None) if found.get("topo") else ""
        return (f"| {objective} | {limit} s | {ops:,} x {devices} | {len(rows)} | {len(rows) - len(late)} | {shown} | "
                f"{max(row['memory_mb'] for row in rows):,} | {without} |")

    def auto(self):
        yield "| objective | problem | best quick planner | its value | `auto`, median of three | found by | `auto` is worse by |"
        yield "| --- | --- | --- | ---: | ---: | --- | ---: |"
        for last in self.find(planner="auto", limit=1, run=2):
            same = {name: last[name] for name in ("objective", "family", "ops", "devices", "more", "limit")}
            runs = self.find(planner="auto", **same)
            quick = [row for row in self.find(**same) if row["planner"] in QUICK[last["objective"]] and
                     row["value"] is not None and kept(row)]
            if not quick:
                continue
            best = min(quick, key=lambda row: row["value"])
            value = statistics.median(math.inf if row["value"] is None else row["value"] for row in runs)
            yield (f"| {last['objective']} | {last['family']} {last['ops']:,} x {last['devices']} | `{best['planner']}` | "
                   f"{best['value']:.6g} | {value:.6g} | `{last['found_by']}` | {percent(max(0, value / best['value'] - 1))} |")

    def reading(self, words, family, objective, ops, devices, more, planner, limit, reading):
        same = {"family": family, "objective": objective, "ops": ops, "devices": devices, "more": " ".join(more), "run": 0}
        rows = self.find(planner=planner, limit=limit, **same)
        if not rows:
            return "not measured", None
        row = max(rows, key=lambda row: row.get("threads", 1))
        if reading == "gap":
            return percent(gap(row)), row
        if reading == "gain":
            heft = self.find(planner="heft", limit=COUNTED, **same)
            return percent(1 - row["value"] / heft[0]["value"]) if heft else "not measured", row
        return f"{row[reading]:,.3g}", row

    def cases(self):
        yield "| case | threads | result | value | lower bound | by |"
        yield "| --- | ---: | ---: | ---: | ---: | --- |"
        for case in CASES:
            result, row = self.reading(*case)
            figures = ("", "", "") if row is None else (f"{row['value']:.6g}", f"{row['lower_bound']:.6g}",
                                                        f"`{row['found_by'] or row['planner']}`")
            threads = 1 if row is None else row.get("threads", 1)
            yield f"| {case[0]} | {threads} | {result} | {' | '.join(figures)} |"

    def growth(self):
        """Processor seconds of quick planners against ops."""
        lines = {}
        for row in self.find(objective="latency", family="layered", devices=64, limit=COUNTED):
            if "threads" in row:
                continue
            lines.setdefault(row["planner"], []).append((row["ops"], max(row["cpu_seconds"], 0.001)))
        PLOT.write_text(growth_plot({name: sorted(points) for name, points in lines.items() if len(points) > 1}))
        yield f"![Processor seconds against ops](../images/{PLOT.name})"

    def write(self):
        text = PAGE.read_text()
        for name in ("limits", "auto", "cases", "growth"):
            block = "\n".join(getattr(self, name)())
            pattern = re.compile(rf"(<!-- {name}: bench/scale.py -->\n).*?(<!-- end -->)", re.DOTALL)
            if not pattern.search(text):
                sys.exit(f"{PAGE.name} has no place for '{name}'")
            text = pattern.sub(lambda found: f"{found[1]}{block}\n{found[2]}", text)
        PAGE.write_text(text)


def growth_plot(lines):
    """An SVG with two logarithmic axes."""
    width, height, left, bottom = 640, 360, 60, 40
    colours = ["#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#8c564b"]
    points = [point for line in lines.values() for point in line] or [(1, 1), (10, 10)]
    bounds = [(math.floor(math.log10(min(p[axis] for p in points))), math.ceil(math.log10(max(p[axis] for p in points))))
              for axis in (0, 1)]

    def place(point):
        parts = [(math.log10(point[axis]) - low) / max(1, high - low) for axis, (low, high) in enumerate(bounds)]
        return left + parts[0] * (width - left - 120), (height - bottom) - parts[1] * (height - bottom - 20)

    shapes = []
    for axis, (low, high) in enumerate(bounds):
        for power in range(low, high + 1):
            x, y = place((10**power, 10**bounds[1][0]) if axis == 0 else (10**bounds[0][0], 10**power))
            text = f"{10**power:g}"
            far = place((10**bounds[0][1], 10**bounds[1][1]))
            end = (x, far[1]) if axis == 0 else (far[0], y)
            shapes.append(f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{end[0]:.1f}" y2="{end[1]:.1f}" stroke="#ddd"/>')
            at = (x, y + 16, "middle") if axis == 0 else (x - 6, y + 4, "end")
            shapes.append(f'<text x="{at[0]:.1f}" y="{at[1]:.1f}" text-anchor="{at[2]}">{text}</text>')
    for (name, line), colour in zip(lines.items(), colours):
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in map(place, line))
        shapes.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        x, y = place(line[-1])
        shapes.append(f'<text x="{x + 6:.1f}" y="{y + 4:.1f}" fill="{colour}">{name}</text>')
    shapes.append(f'<text x="{width / 2 - 60:.0f}" y="{height - 4}" text-anchor="middle">ops (layered, 64 devices)</text>')
    shapes.append(f'<text x="14" y="{height / 2:.0f}" text-anchor="middle" transform="rotate(-90 14 {height / 2:.0f})">'
                  "processor seconds</text>")
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">\n'
            f'<rect width="{width}" height="{height}" fill="white"/>\n' + "\n".join(shapes) + "\n</svg>\n")


def words(value):
    return value.split(",")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["limits", "auto", "quick", "cases", "page"])
    parser.add_argument("--objectives", type=words, default=OBJECTIVES)
    parser.add_argument("--families", type=words, default=FAMILIES)
    parser.add_argument("--ops", type=lambda value: [int(word) for word in words(value)], default=OPS)
    parser.add_argument("--devices", type=lambda value: [int(word) for word in words(value)], default=DEVICES)
    parser.add_argument("--planners", type=words, help="only these; without it all that serve the objective")
    parser.add_argument("--time-limit", type=lambda value: [float(word) for word in words(value)], default=[1.0])
    parser.add_argument("--only", default="", help="cases: only cases with these words")
    parser.add_argument("--threads", type=int, default=1, help="of each planner; the page shows the row with the most")
    parser.add_argument("--problems", help="keep generated problems in this folder")
    parser.add_argument("--rows", default=str(ROWS), help="the file of rows")
    parser.add_argument("--again", action="store_true", help="measure rows again that are there")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if options.problems:
            os.makedirs(options.problems, exist_ok=True)
        bench = Bench(options, options.problems or folder)
        Page(bench.rows).write() if options.what == "page" else getattr(bench, options.what)()
    return 0


if __name__ == "__main__":
    sys.exit(main())
