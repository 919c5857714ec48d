#!/usr/bin/env python3
"""All tables of docs/results/shared-resources.md that this machine can measure, written into the page, and those beside it.

  zoo       the models of the zoo on nested sets of all cores: latency and throughput, tuned, against what the cores give without a plan
  cuts      each core a device, plans that were not tuned: the tables of docs/results/real-models.md
  several   three and six models at once and arrivals over time, against shortest first and all at once (bench/cores.py)
  proofs    value, gap and seconds of `plan --time-limit 10s` on profiles and on generated graphs, for latency and throughput
  profile   how long `profile` takes

  chrt -f 10 bench/shared_resources.py --folder results           measures what the folder does not have yet, and writes the page
  bench/shared_resources.py --folder results --only proofs        one part
  bench/shared_resources.py --folder results --tables             only writes the page

`chrt` gives the runs the cores for themselves. Part `several` should run without it, on an idle machine: threads of one
priority do not share a core's time under it, so that models that are started at once would not run at once. On a machine
with more than two cores `several` and the plans of whole models fill the page's part of such machines.
"""

import argparse
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


def zoo_options(options, name, *more):
    file = options.folder / f"{name}.json"
    return zoo.options_of(["--program", str(options.program), "--json", str(file), *more])


def zoo_part(program, options):
    return zoo.tables(zoo.results_of(program, zoo_options(options, "zoo")))


def cuts_part(program, options):
    single = [f"cpu:{core}" for core in sorted(os.sched_getaffinity(0))]
    return zoo.tables(zoo.results_of(program, zoo_options(options, "cuts", "--devices", *single, "--rounds", "0")))


def cores_options(options):
    arguments = ["--program", str(options.program), "--json", str(options.folder / "cores.json"), "--folder", str(options.folder / "cores"),
                 "--sets", str(options.sets), "--traces", str(options.traces)]
    return cores.options_of(arguments)


def several_part(_, options):
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
    if answer["status"] == "optimal":
        return f"{answer['value']:.4g} ms, proved in {answer['seconds']:.2g} s"
    return f"{answer['value']:.4g} ms, {100 * answer['gap']:.1f} %"


def proofs_part(program, options):
    rows = []
    with tempfile.TemporaryDirectory() as place:
        problem = pathlib.Path(place) / "problem.json"
        for name in PROFILED:
            profiled = profile_of(program, options, name)
            rows.append([f"profile of {name}", *(proof(program, profiled, objective) for objective in zoo.OBJECTIVES)])
        for family, ops, shared in GENERATED:
            row = [f"`generate {family} --ops {ops} --shared-cores {shared}`"]
            for objective in zoo.OBJECTIVES:
                program.write("generate", family, "--ops", ops, "--shared-cores", shared, "--objective", objective, "-o", problem)
                row.append(proof(program, problem, objective))
            rows.append(row)
            print("  ", *row, file=sys.stderr, flush=True)
    return table(["problem", "latency: value, gap", "throughput: value, gap"], rows)


def profile_of(program, options, name):
    """The profile on nested sets of all cores, made once for each folder."""
    problem = options.folder / f"{name}-problem.json"
    if not problem.exists():
        program.write("zoo", "make", name, "-o", options.folder)
        begin = time.monotonic()
        program.run("profile", options.folder / f"{name}.xml", "-o", problem)
        (options.folder / f"{name}-seconds").write_text(f"{time.monotonic() - begin:.0f}")
    return problem


def profile_part(program, options):
    rows = []
    for name in PROFILED:
        profile_of(program, options, name)
        rows.append([name, (options.folder / f"{name}-seconds").read_text()])
    return table(["model", "seconds"], rows)


PARTS = {"zoo": zoo_part, "cuts": cuts_part, "profile": profile_part, "proofs": proofs_part, "several": several_part}


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=zoo.ROOT / "build/placewright", type=pathlib.Path)
    parser.add_argument("--folder", required=True, type=pathlib.Path, help="what was measured; what it has is not measured again")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--sets", type=int, default=3, help="of three models, and of six")
    parser.add_argument("--traces", type=int, default=2, help="of arrivals, each with two loads")
    parser.add_argument("--tables", action="store_true", help="print the parts, and leave the page as it is")
    options = parser.parse_args(arguments)
    options.folder.mkdir(parents=True, exist_ok=True)
    program = Program(options.program)
    for name in options.only:
        print(f"== {name}", file=sys.stderr, flush=True)
        text = PARTS[name](program, options)
        if options.tables:
            print(f"## {name}\n\n{text}")
        elif name == "cuts":
            fill(PAGES / "real-models.md", "zoo", text)
        else:
            fill(PAGES / "shared-resources.md", "many cores" if name == "several" and many_cores() else name, text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
