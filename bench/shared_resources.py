#!/usr/bin/env python3
"""All tables of docs/results/shared-resources.md that this machine can measure, written into the page, and those beside it.

  zoo       the models of the zoo on nested sets of all cores: latency and throughput, tuned, against what the cores give without a plan
  cuts      each core a device, plans that were not tuned: the tables of docs/results/real-models.md
  several   three and six models at once and arrivals over time, against shortest first and all at once (bench/cores.py)
  proofs    value, gap and seconds of `plan --time-limit 10s` on profiles and on generated graphs, for latency and throughput
  profile   how long `profile` takes

  chrt -f 10 bench/shared_resources.py --folder results           measures what the folder does not have yet, and writes the page
  bench/shared_resources.py --folder results --only proofs        one part
  bench/shared_resources.py --folder results --tables             prints what the folder has, measures nothing

`chrt` gives the runs the cores for themselves. Part `several` should run without it, on an idle machine: threads of one
priority do not share a core's time under it, so that models that are started at once would not run at once. On a machine
with more than two cores `several` and the plans of whole models fill the page's part of such machines.
"""

import argparse
import json
import os
import pathlib
import sys
import tempfile
import time

import cores
import zoo
from pages import Program, fill, table

PAGES = zoo.ROOT / "docs/results"
PROFILED = ["squeezenet", "bninception", "inceptionv3"]
GENERATED = [("inception", 50, 4), ("inception", 100, 4), ("inception", 200, 4), ("transformer", 200, 4), ("layered", 60, 4), ("inception", 100, 8)]


def stored(file):
    """What a part has measured so far; nothing: it was not begun."""
    return json.loads(file.read_text()) if file.exists() else {}


def once(options, part, key, measure):
    """Measured unless the part's file has it, and written at once. None: it has not, and nothing is to be measured."""
    file = options.folder / f"{part}.json"
    known = stored(file)
    if key not in known and not options.tables:
        known[key] = measure()
        file.write_text(json.dumps(known, indent=1) + "\n")
    return known.get(key)


def zoo_tables(program, options, name, *more):
    file = options.folder / f"{name}.json"
    if options.tables:
        results = stored(file)
    else:
        results = zoo.results_of(program, zoo.options_of(["--program", str(options.program), "--json", str(file), *more]))
    return zoo.tables(results) if results else ""


def zoo_part(program, options):
    return zoo_tables(program, options, "zoo")


def cuts_part(program, options):
    single = [f"cpu:{core}" for core in sorted(os.sched_getaffinity(0))]
    return zoo_tables(program, options, "cuts", "--devices", *single, "--rounds", "0")


def cores_options(options):
    arguments = ["--program", str(options.program), "--json", str(options.folder / "cores.json"), "--folder", str(options.folder / "cores"),
                 "--sets", str(options.sets), "--traces", str(options.traces)]
    return cores.options_of(arguments)


def several_part(_, options):
    if options.tables:
        return cores.tables(stored(options.folder / "cores.json"))
    bench = cores.Bench(cores_options(options))
    bench.until = float("inf")
    together = [model for model in cores.TOGETHER if model in bench.options.models]
    if many_cores():
        bench.measure_plans("latency")
        bench.measure_plans("throughput")
    bench.measure_sets(together, 3)
    bench.measure_sets(together, 6)
    bench.measure_arrivals(together)
    return cores.tables(bench.results)


def many_cores():
    return len(os.sched_getaffinity(0)) > 2


def proof(program, problem, objective):
    answer = program.run("plan", problem, "--objective", objective, "--time-limit", "10s", "--threads", 1)
    return {key: answer[key] for key in ("status", "value", "gap", "seconds")}


def proof_text(found):
    if found is None:
        return "-"
    if found["status"] == "optimal":
        return f"{found['value']:.4g} ms, proved in {found['seconds']:.2g} s"
    return f"{found['value']:.4g} ms, {100 * found['gap']:.1f} %"


def proofs_part(program, options):
    rows = []

    def add(title, prove):
        """`prove`: of an objective."""
        found = [once(options, "proofs", f"{title}: {objective}", lambda: prove(objective)) for objective in zoo.OBJECTIVES]
        if any(found):
            rows.append([title, *map(proof_text, found)])
            print("  ", *rows[-1], file=sys.stderr, flush=True)

    for name in PROFILED:
        add(f"profile of {name}", lambda objective: proof(program, profile_of(program, options, name), objective))
    for family, ops, shared in GENERATED:
        made = [family, "--ops", ops, "--shared-cores", shared]
        add(f"`generate {' '.join(map(str, made))}`", lambda objective: generated_proof(program, made, objective))
    return table(["problem", "latency: value, gap", "throughput: value, gap"], rows) if rows else ""


def generated_proof(program, made, objective):
    with tempfile.TemporaryDirectory() as place:
        problem = pathlib.Path(place) / "problem.json"
        program.write("generate", *made, "--objective", objective, "-o", problem)
        return proof(program, problem, objective)


def profile_path(options, name):
    return options.folder / f"{name}-problem.json"


def profile_seconds(program, options, name):
    """Profiles the model on nested sets of all cores."""
    program.write("zoo", "make", name, "-o", options.folder)
    begin = time.monotonic()
    program.run("profile", options.folder / f"{name}.xml", "-o", profile_path(options, name))
    return round(time.monotonic() - begin)


def profile_of(program, options, name):
    """Made once for each folder."""
    once(options, "profile", name, lambda: profile_seconds(program, options, name))
    return profile_path(options, name)


def profile_part(program, options):
    found = {name: once(options, "profile", name, lambda: profile_seconds(program, options, name)) for name in PROFILED}
    rows = [[name, seconds] for name, seconds in found.items() if seconds is not None]
    return table(["model", "seconds"], rows) if rows else ""


PARTS = {"zoo": zoo_part, "cuts": cuts_part, "profile": profile_part, "proofs": proofs_part, "several": several_part}


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=zoo.ROOT / "build/placewright", type=pathlib.Path)
    parser.add_argument("--folder", required=True, type=pathlib.Path, help="what was measured; what it has is not measured again")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--sets", type=int, default=3, help="of three models, and of six")
    parser.add_argument("--traces", type=int, default=2, help="of arrivals, each with three loads")
    parser.add_argument("--tables", action="store_true", help="print what the folder has, measure nothing, and leave the page as it is")
    options = parser.parse_args(arguments)
    if not options.tables:
        options.folder.mkdir(parents=True, exist_ok=True)
    program = Program(options.program)
    for name in options.only:
        print(f"== {name}", file=sys.stderr, flush=True)
        text = PARTS[name](program, options)
        if options.tables:
            print(f"## {name}\n\n{text or 'nothing was measured'}\n")
        elif name == "cuts":
            fill(PAGES / "real-models.md", "zoo", text)
        else:
            fill(PAGES / "shared-resources.md", "many cores" if name == "several" and many_cores() else name, text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
