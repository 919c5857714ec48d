#!/usr/bin/env python3
"""Latency in device calls on the published inputs, in the rows of the paper's comparison.

For each input and number of calls per accelerator: the greedy fill, the best max-load plan and Scotch's
plan (both made for throughput and timed as calls), the expert's split where there is one, the chain
program, and `auto`. A plan that breaks a rule is listed with what it breaks. The last column is the
proven gap of the row's value.

  bench/calls.py                                the table in Markdown
  bench/calls.py --csv calls.csv --calls 1 2 4 --time-limit 10 --program build/placewright
"""

import argparse
import csv
import json
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
INPUTS = [
    "LayerGraphs/bert24_inference",
    "LayerGraphs/gnmt_inference",
    "LayerGraphs/resnet50_inference",
    "OperatorGraphs/bert_l-3_inference",
    "OperatorGraphs/bert_l-6_inference",
]
COLUMNS = ["input", "calls", "plan", "value", "gap", "seconds", "note"]


class Program:
    def __init__(self, path, time_limit):
        self.path = path
        self.time_limit = time_limit

    def run(self, *arguments):
        done = subprocess.run(
            [self.path, *map(str, arguments), "--json"], capture_output=True, text=True, check=False
        )
        if not done.stdout.strip():
            return {"error": done.stderr.strip().removeprefix("placewright: error: ")}
        return json.loads(done.stdout)

    def plan(self, problem, objective, planner, *arguments):
        return self.run(
            "plan", problem, "--objective", objective, "--planner", planner,
            "--time-limit", f"{self.time_limit}s", *arguments,
        )

    def check(self, split, problem, calls):
        return self.run(
            "check", split, "--problem", problem, "--objective", "call-latency", "--calls", calls
        )

    def planners(self):
        return {entry["name"] for entry in self.run("planners")}


def as_split(problem, placement):
    """A throughput plan's placement as an expert split: node ids by accelerator, all host ops together."""
    nodes = json.loads(problem.read_text())["nodes"]
    names = [str(node.get("name", node["id"])) for node in nodes]
    unique = len(set(names)) == len(names)
    accelerators, host = {}, []
    for node, name in zip(nodes, names):
        device = placement[name if unique else str(node["id"])]
        if device.startswith("acc"):
            accelerators.setdefault(int(device[3:]), []).append(node["id"])
        else:
            host.append(node["id"])
    lists = [{"nodes": accelerators.get(i, [])} for i in range(max(accelerators, default=-1) + 1)]
    return {"fpgas": lists, "cpus": [{"nodes": host}]}


def brief(violations):
    """What a plan breaks, each kind once with how often."""
    kinds = {}
    for violation in violations:
        kinds.setdefault(violation["code"], []).append(violation)
    notes = []
    for code, found in kinds.items():
        devices = sorted({device for one in found for device in one["devices"]})
        notes.append(f"{code} on {', '.join(devices)}" if devices else code)
    return "; ".join(notes)


def timed_placement(program, split, problem, calls):
    answer = program.check(split, problem, calls)
    if "error" in answer:
        return None, answer["error"].split(": ", 2)[-1]
    return answer["value"], brief(answer["violations"])


def rows_for(program, name, calls, known):
    problem = ROOT / "examples/msr/latency" / f"{name}.json"
    rows = []

    def add(plan, value, seconds, note):
        rows.append({"plan": plan, "value": value, "seconds": seconds, "note": note})

    def own(label, planner):
        answer = program.plan(problem, "call-latency", planner, "--calls", calls)
        add(label, answer.get("value"), answer.get("seconds"), answer.get("reason") or "")
        return answer

    def from_throughput(label, planner):
        if planner not in known:
            return add(label, None, None, f"no planner '{planner}'")
        begin = time.monotonic()
        answer = program.plan(problem, "throughput", planner)
        seconds = time.monotonic() - begin
        if not answer.get("placement"):
            return add(label, None, seconds, answer.get("reason") or answer.get("error", ""))
        with tempfile.NamedTemporaryFile("w", suffix=".json") as split:
            json.dump(as_split(problem, answer["placement"]), split)
            split.flush()
            value, note = timed_placement(program, split.name, problem, calls)
        return add(label, value, seconds, note)

    own("greedy", "calls-greedy")
    from_throughput("max-load plan", "ideals")
    from_throughput("Scotch", "scotch")
    expert = ROOT / "examples/msr/human-experts" / f"{pathlib.Path(name).name}_expert.json"
    if expert.exists() and name.startswith("LayerGraphs"):
        value, note = timed_placement(program, expert, problem, calls)
        add("expert", value, None, note)
    own("chain program", "calls-chain")
    best = own("placewright", "auto")
    bound = best["lower_bound"]
    rows[-1]["note"] = best["status"]
    for row in rows:
        row |= {"input": name, "calls": calls}
        valid = row["value"] and (not row["note"] or row["note"] in ("optimal", "feasible"))
        row["gap"] = max(0.0, (row["value"] - bound) / row["value"]) if valid else None
    return rows


def markdown(rows):
    def text(row, column):
        value = row[column]
        if value is None:
            return ""
        if column == "gap":
            return f"{100 * value:.2f} %"
        return {"value": f"{value:.6g}", "seconds": f"{value:.2f}"}.get(column, str(value)) \
            if isinstance(value, float) else str(value)

    lines = ["| " + " | ".join(COLUMNS) + " |", "|" + " --- |" * len(COLUMNS)]
    lines += ["| " + " | ".join(text(row, column) for column in COLUMNS) + " |" for row in rows]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", default=str(ROOT / "build/placewright"))
    parser.add_argument("--time-limit", type=float, default=10, help="seconds for each plan")
    parser.add_argument("--calls", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--csv", type=pathlib.Path, help="also write the rows here")
    parser.add_argument("inputs", nargs="*", default=INPUTS, help="names under examples/msr/latency")
    arguments = parser.parse_args()
    program = Program(arguments.program, arguments.time_limit)
    known = program.planners()
    rows = []
    for name in arguments.inputs:
        for calls in arguments.calls:
            rows += rows_for(program, name, calls, known)
            print(f"{name}, {calls} calls: done", file=sys.stderr)
    if arguments.csv:
        with arguments.csv.open("w", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS)
            writer.writeheader()
            writer.writerows(rows)
    print(markdown(rows))


if __name__ == "__main__":
    main()
