#!/usr/bin/env python3
"""Real models on the cores of this machine: predicted and measured, for every model of the zoo.

Each model is made, profiled on the devices, planned and tuned for latency and for throughput, and both plans are run beside what
the same cores give without a plan. Tables in Markdown: predicted against measured with the median and spread over the zoo, speed-ups, and
the number of ops before and after fusion and packing (Talos's NOD). A measurement that other work disturbed is listed as not valid.

  bench/zoo.py                                  all models, on nested sets of all cores
  bench/zoo.py --devices cpu:0 cpu:1 --rounds 0 each core a device, plans that were not tuned
  bench/zoo.py --models resnet50 inceptionv3 --time-limit 5 --repeat 30 --json zoo.json
  bench/zoo.py --json zoo.json --page docs/results/shared-resources.md    puts both tables into the page
  bench/zoo.py --nod                            only the table of ops
"""

import argparse
import json
import pathlib
import statistics
import sys
import tempfile

from pages import Program, fill, table

ROOT = pathlib.Path(__file__).resolve().parent.parent
OBJECTIVES = ["latency", "throughput"]
# The models of Talos's tables, and what they are called there.
TALOS = {"alexnet": "AlexNet", "bninception": "GoogLeNet", "squeezenet": "SqueezeNet", "resnet50": "ResNet-50", "bert-base": "BERT"}


def models_of(program, wanted):
    names = [entry["name"] for entry in program.run("zoo", "list")]
    unknown = set(wanted) - set(names)
    if unknown:
        raise SystemExit(f"not in the zoo: {', '.join(sorted(unknown))} (there is: {', '.join(names)})")
    return wanted or [name for name in names if not name.startswith("tiny")]


def device_flags(devices):
    return [word for device in devices for word in ("--device", device)]


def op_counts(program, model, problem, folder, options):
    """Ops as they are, as the backend fused them, then packed; and fused by rules alone, without a backend."""
    profiled = {row["method"]: row["ops"] for row in program.run("info", problem)["coarsening"]}
    imported = folder / "imported.json"
    program.write("import", model, *device_flags(options.devices), "-o", imported)
    ruled = {row["method"]: row["ops"] for row in program.run("info", imported)["coarsening"]}
    return {"ops": profiled["none"], "rules": ruled["fusion"], "fused": profiled["colocation"], "packed": profiled["chains"]}


def measured_plan(program, problem, objective, folder, options):
    plan = folder / f"{objective}.json"
    limit = ["--objective", objective, "--time-limit", f"{options.time_limit}s", "-o", plan]
    if options.rounds:
        tuned = program.run("tune", problem, *limit, "--rounds", options.rounds, "--repeat", options.repeat)
    else:
        tuned = None
        program.run("plan", problem, *limit)
    run = program.run("run", plan, "--repeat", options.repeat)
    own = run["measured"]
    rivals = {}
    for baseline in run["baselines"]:
        rival = baseline["latency" if objective == "latency" else "per_sample"]
        valid = own["valid"] and rival["valid"]
        rivals[baseline["name"]] = {"median": rival["median"], "valid": rival["valid"], "is_plan": baseline.get("is_plan", False),
                                    "speed_up": rival["median"] / own["median"] if valid else None}
    return {"predicted": run["predicted"], "measured": own, "tuning": tuned,
            "segments": len(run["segments"]), "outputs": run.get("outputs"), "baselines": rivals}


def measure(program, name, options):
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place)
        program.write("zoo", "make", name, "-o", folder)
        model, problem = folder / f"{name}.xml", folder / "problem.json"
        profile = program.run("profile", model, *device_flags(options.devices), "--repeat", options.repeat, "-o", problem)
        row = {"model": name, "valid": profile["valid"], "doubts": profile["doubts"],
               "kinds": profile["models"][0]["kinds"], "nod": op_counts(program, model, problem, folder, options)}
        if not options.nod:
            row["plans"] = {objective: measured_plan(program, problem, objective, folder, options) for objective in OBJECTIVES}
        return row


def number(value, pattern="{:.2f}"):
    return "-" if value is None else pattern.format(value)


def ratio_of(plan):
    return plan["predicted"] / plan["measured"]["median"] if plan["measured"]["valid"] else None


def nature_of(plan):
    """The setting without a plan that the plan is, or into how many segments it cuts the model."""
    same = [name for name, rival in plan["baselines"].items() if rival.get("is_plan")]
    return same[0] if same else f"{plan['segments']} segments"


def agreement_table(results, objective):
    rows = []
    for result in results:
        plan = result["plans"][objective]
        own = plan["measured"]
        spread = (own["high"] - own["low"]) / own["median"] if own["valid"] else None
        rivals = [number(rival["speed_up"], "{:.2f}x") for rival in plan["baselines"].values()]
        measured = [rival for rival in plan["baselines"].values() if rival["median"]]
        best = min(measured, key=lambda rival: rival["median"])["speed_up"] if measured else None  # null: one of them is not valid
        equal = "-" if plan["outputs"] is None else "equal" if plan["outputs"]["equal"] else "NOT equal"
        rows.append([result["model"], number(plan["predicted"]), number(own["median"]) if own["valid"] else "not valid",
                     number(ratio_of(plan), "{:.3f}"), number(spread, "{:.1%}"), nature_of(plan), *rivals, number(best, "{:.2f}x"), equal,
                     "" if result["valid"] else "profile not valid"])
    names = list(results[0]["plans"][objective]["baselines"])
    return table(["model", "predicted ms", "measured ms", "ratio", "spread", "the plan is", *[f"against {name}" for name in names],
                  "against the best", "outputs", ""], rows, numbers=False)


def summary(results, objectives):
    """How far predictions are off, over all plans for these objectives."""
    ratios = [ratio_of(result["plans"][objective]) for result in results for objective in objectives]
    errors = [abs(ratio - 1) for ratio in ratios if ratio]
    if not errors:
        return f"{', '.join(objectives)}: no measurement is valid.\n"
    return (f"{', '.join(objectives)}: the prediction is off by {statistics.median(errors):.1%} in the median over {len(errors)} of {len(ratios)} runs "
            f"(from {min(errors):.1%} to {max(errors):.1%}).\n")


def nod_table(results):
    rows = [[result["model"], TALOS.get(result["model"], ""), *(result["nod"][key] for key in ("ops", "rules", "fused", "packed"))]
            for result in results]
    return table(["model", "in Talos's tables", "ops", "fused by rules", "fused by the backend", "then packed"], rows)


def tables(results):
    """Both objectives and what they say together."""
    parts = [f"### {objective}\n\n{agreement_table(results, objective)}\n{summary(results, [objective])}" for objective in OBJECTIVES]
    return "\n".join([*parts, summary(results, OBJECTIVES)])


def options_of(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=ROOT / "build/placewright", type=pathlib.Path)
    parser.add_argument("--models", nargs="+", default=[])
    parser.add_argument("--devices", nargs="+", default=[], help="nested sets of all cores unless given")
    parser.add_argument("--repeat", type=int, default=30)
    parser.add_argument("--rounds", type=int, default=2, help="of tuning; 0: none")
    parser.add_argument("--time-limit", type=float, default=3, help="seconds for each plan")
    parser.add_argument("--nod", action="store_true", help="only the table of ops, of Talos's models unless --models says otherwise")
    parser.add_argument("--json", type=pathlib.Path, help="write all numbers here, model by model; those that it has already are not measured again")
    parser.add_argument("--page", type=pathlib.Path, help="put the tables into this page, between its markers")
    return parser.parse_args(arguments)


def results_of(program, options):
    """By model; what the JSON file has is not measured again."""
    known = json.loads(options.json.read_text()) if options.json and options.json.exists() else []
    results = []
    for name in models_of(program, options.models or (list(TALOS) if options.nod else [])):
        print(name, file=sys.stderr, flush=True)
        if not any(row["model"] == name for row in known):
            known.append(measure(program, name, options))
        results.append(next(row for row in known if row["model"] == name))
        if options.json:
            options.json.write_text(json.dumps(known, indent=1) + "\n")
    return results


def main(arguments):
    options = options_of(arguments)
    results = results_of(Program(options.program), options)
    if not options.nod:
        print(tables(results))
        if options.page:
            fill(options.page, "zoo", tables(results))
    print(f"### Ops before and after fusion\n\n{nod_table(results)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
