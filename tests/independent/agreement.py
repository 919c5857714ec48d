"""Runs the program on random problems and compares its answers with rules.py and optimum.py.

For each problem, plans by `auto` and by some other planners:
* the plan keeps every rule and has the value that it states;
* the lower bound is at most the best value of all plans (brute force, on problems small enough), `optimal` means that
  value, and `infeasible` that there is no plan;
* `check` says the same as rules.py of the plan, and of copies of it with one thing changed.

usage: agreement.py PROBLEMS [FIRST_SEED]   (PLACEWRIGHT_PROGRAM names the program)
"""

import collections
import copy
import json
import math
import os
import pathlib
import random
import subprocess
import sys
import tempfile

import optimum
import random_problems
import rules

PROGRAM = os.environ["PLACEWRIGHT_PROGRAM"]
OTHER_PLANNERS = 3
BRUTE_FORCE_OPS = {"throughput": 5, "call-latency": 4, "latency": 4, "total-completion": 4}
# auto and search work to the end of the budget if they cannot prove anything: a budget that keeps
# the whole run short.
BUDGET = ["--time-limit", "300ms", "--steps", "2000"]


class Agreement:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.counts = collections.Counter()
        self.served = collections.Counter()
        self.disagreements = []
        listed = json.loads(subprocess.run([PROGRAM, "planners", "--json"], capture_output=True, check=True).stdout)
        self.planners = {objective: [planner["name"] for planner in listed if objective in planner["objectives"]]
                         for objective in random_problems.OBJECTIVES}

    def report(self, seed, what):
        self.disagreements.append(f"problem {seed}: {what}")
        print(self.disagreements[-1], flush=True)

    def run(self, seed):
        dice = random.Random(seed)
        document = random_problems.random_problem(seed, most_ops=dice.choice([3, 4, 5, 9]))
        path = self.folder / "problem.json"
        path.write_text(json.dumps(document))
        self.counts["problems"] += 1
        objective = document["objective"]
        best = None
        if len(document["ops"]) <= BRUTE_FORCE_OPS[objective]:
            best = optimum.optimum(rules.Problem(document))
            self.counts["problems with brute force"] += 1
            self.counts["problems without a plan"] += math.isinf(best)
        others = [name for name in self.planners[objective] if name != "auto"]
        for planner in ["auto", *dice.sample(others, min(OTHER_PLANNERS, len(others)))]:
            self.plan(seed, document, planner, best, dice)

    def plan(self, seed, document, planner, best, dice):
        path = self.folder / "plan.json"
        path.unlink(missing_ok=True)
        done = subprocess.run([PROGRAM, "plan", self.folder / "problem.json", "--planner", planner, *BUDGET, "--quiet",
                               "-o", path], capture_output=True, text=True, timeout=120)
        who = f"{planner} ({document['objective']})"
        self.served[who] += done.returncode == 0
        if done.returncode == 1:
            self.counts["answers without a plan"] += 1
            if "infeasible" in done.stderr and best is not None and not math.isinf(best):
                self.report(seed, f"{who} says infeasible, there is a plan of {best}: {done.stderr.strip()}")
            return
        if done.returncode != 0:
            self.counts["refusals"] += 1
            if done.returncode not in (2, 3):
                self.report(seed, f"{who} ends with {done.returncode}: {done.stderr.strip()}")
            return
        self.counts["plans"] += 1
        plan = json.loads(path.read_text())
        value, faults = rules.check(plan, document)
        for fault in faults:
            self.report(seed, f"{who}: {fault}")
        self.certificate(seed, who, plan, best)
        self.verdict(seed, who, plan, document)
        for _ in range(2):
            self.verdict(seed, who, changed(plan, dice), document)

    def certificate(self, seed, who, plan, best):
        value, bound = plan["value"], plan["lower_bound"] or 0
        if not rules.at_most(bound, value):
            self.report(seed, f"{who}: the bound {bound} is above the value {value}")
        if (plan["status"] == "optimal") != (value - bound <= rules.OPTIMAL_GAP * value):
            self.report(seed, f"{who}: {plan['status']} with value {value} and bound {bound}")
        if best is None:
            return
        self.counts["plans compared with brute force"] += 1
        if not rules.at_most(best, value):
            self.report(seed, f"{who}: the value {value} is below the best of all plans, {best}")
        if bound - best > rules.OPTIMAL_GAP * best:
            self.report(seed, f"{who}: the bound {bound} is above the best of all plans, {best}")
        found = value - best <= rules.OPTIMAL_GAP * best
        self.counts["plans that are optimal"] += found
        if who.startswith("auto"):
            self.counts["auto: compared with brute force"] += 1
            self.counts["auto: optimal"] += found
            self.counts["auto: proved optimal"] += plan["status"] == "optimal"

    def verdict(self, seed, who, plan, document):
        path = self.folder / "changed.json"
        path.write_text(json.dumps(plan))
        done = subprocess.run([PROGRAM, "check", path, "--problem", self.folder / "problem.json", "--json"],
                              capture_output=True, text=True, timeout=60)
        if done.returncode not in (0, 1):
            self.report(seed, f"check of {who} ends with {done.returncode}: {done.stderr.strip()}")
            return
        said = json.loads(done.stdout)
        value, faults = rules.check(plan, document)
        self.counts["verdicts"] += 1
        self.counts["verdicts: not valid"] += bool(faults)
        if said["valid"] == bool(faults):
            self.report(seed, f"check of {who}: valid is {said['valid']}, here {faults}, there {said['violations']}")
            (self.folder / f"disagreement-{seed}.json").write_text(json.dumps(plan))
        elif said["valid"] and not rules.same(said["value"], value):
            self.report(seed, f"check of {who}: the value is {said['value']}, here {value}")


def changed(plan, dice):
    """A copy of a plan with one thing changed, which may or may not break a rule."""
    plan = copy.deepcopy(plan)
    change = dice.choice(["lower_bound", "gap", "status", "value", None, None, None, None, None, None])
    if change == "status":
        plan["status"] = dice.choice(["optimal", "feasible", "unknown", "infeasible"])
    elif change is not None:
        plan[change] = (plan[change] or 0) * dice.choice([0.5, 2, 1 + 1e-7, 1]) + dice.choice([0, 0, 1])
    if change is not None:
        return plan
    value = plan["value"]
    del plan["value"], plan["gap"], plan["lower_bound"]
    plan["status"] = "feasible"
    parts = plan.get("schedule", {}).get("ops", []) + plan.get("schedule", {}).get("transfers", []) + plan.get("calls", [])
    stages = plan.get("stages", [])
    of_stages = ["stages", "move", "load"] + ["offset"] * (3 if any("offset" in stage for stage in stages) else 0)
    change = dice.choice(["time", "time", "device", "swap"] if parts else of_stages)
    if change == "time" and parts:
        part = dice.choice(parts)
        ends = [other["end"] for other in parts]
        shift = dice.choice([part["end"] - part["start"], max(ends), dice.choice(ends) - part["start"], 1e-3])
        shift *= dice.choice([-1, 1, 0.5])
        part["start"] = max(0, part["start"] + shift)
        part["end"] += shift
    elif change == "swap" and len(parts) > 1:
        a, b = dice.sample(parts, 2)
        a["start"], b["start"] = b["start"], a["start"]
    elif change == "stages" and len(stages) > 1:
        dice.shuffle(stages)
    elif change == "move" and len(stages) > 1:
        a, b = dice.sample(stages, 2)
        if len(a["ops"]) > 1:
            op = a["ops"].pop(dice.randrange(len(a["ops"])))
            b["ops"].append(op)
            plan["placement"][op] = b["devices"][0]
        for stage in stages:
            stage.pop("load", None)
    elif change == "offset" and stages:
        if dice.random() < 0.5:
            plan["value"] = value * dice.choice([1, 1, 0.5, 0.9, 1.5])
        for stage in stages:
            for name in ("offset", "backward_offset"):
                stage[name] = (stage.get(name) or 0) + value * dice.choice([0, 0, 0, 0.25, 0.5, 1])
                if dice.random() < 0.3:
                    del stage[name]
    elif change == "load" and stages:
        dice.choice(stages)["load"] *= dice.choice([1, 0.5, 1 + 1e-7])
    return plan


def main():
    problems = int(sys.argv[1])
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    with tempfile.TemporaryDirectory() as folder:
        agreement = Agreement(folder)
        for seed in range(first, first + problems):
            agreement.run(seed)
    for what, count in sorted(agreement.counts.items()):
        print(f"{what}: {count}")
    print("plans by planner:", ", ".join(f"{who} {count}" for who, count in sorted(agreement.served.items())))
    print(f"disagreements: {len(agreement.disagreements)}")
    return 1 if agreement.disagreements else 0


if __name__ == "__main__":
    sys.exit(main())
