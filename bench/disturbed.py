#!/usr/bin/env python3
"""Whether a profile tells that another process had one of its cores.

Twenty trials: while a model is profiled on two cores, another process computes on one of them, at the usual priority, at a real-time
one (where that is allowed), or beginning only after half a second. Each profile must say that it is not valid. As many profiles with
nothing beside them say how often that is a false alarm; they mean something on an idle machine only. A profile that ends before the
other process begins is an error of the trial, not an answer.

  bench/disturbed.py
  bench/disturbed.py --trials 4 --model squeezenet --repeat 3000
"""

import argparse
import contextlib
import os
import pathlib
import subprocess
import sys
import tempfile
import time

from pages import Program, table

ROOT = pathlib.Path(__file__).resolve().parent.parent
SPIN = "import os, sys, time\ntime.sleep(float(sys.argv[1]))\nwhile True: pass"


def usual(core):
    os.sched_setaffinity(0, {core})


def real_time(core):
    usual(core)
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50))


KINDS = {"usual priority": (usual, 0), "real time": (real_time, 0), "from half a second on": (usual, 0.5)}
LEAST = 2  # seconds of a profile: the other process must begin well before its end


@contextlib.contextmanager
def taken(core, kind):
    prepare, delay = KINDS[kind]
    with subprocess.Popen([sys.executable, "-c", SPIN, str(delay)], preexec_fn=lambda: prepare(core)) as other:
        try:
            time.sleep(0.1)
            yield
        finally:
            other.kill()


def told(program, model, cores, repeat, seconds):
    begin = time.monotonic()
    profile = program.run("profile", model, "--device", f"cpu:{cores[0]}-{cores[1]}", "--whole", "--repeat", repeat, "--profile-time", seconds)
    if time.monotonic() - begin < LEAST:
        raise SystemExit(f"a profile took less than {LEAST} seconds: choose a larger --repeat")
    return not profile["valid"]


def kinds_here(core):
    kinds = []
    for kind in KINDS:
        with contextlib.suppress(subprocess.SubprocessError, PermissionError), taken(core, kind):
            kinds.append(kind)
    return kinds


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=ROOT / "build/placewright", type=pathlib.Path)
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--model", default="resnet50")
    parser.add_argument("--repeat", type=int, default=300, help="undisturbed runs of each profile")
    parser.add_argument("--seconds", type=int, default=10, help="of each profile, at most")
    options = parser.parse_args(arguments)
    cores = sorted(os.sched_getaffinity(0))[:2]
    if len(cores) < 2 or cores[1] != cores[0] + 1:
        raise SystemExit("needs two neighbouring cores")
    program = Program(options.program)
    with tempfile.TemporaryDirectory() as folder:
        program.write("zoo", "make", options.model, "-o", folder)
        model = pathlib.Path(folder) / f"{options.model}.xml"
        kinds = kinds_here(cores[1])
        counts = {kind: [0, 0] for kind in [*kinds, "nobody"]}
        for trial in range(options.trials):
            kind = kinds[trial % len(kinds)]
            with taken(cores[1], kind):
                counts[kind][0] += told(program, model, cores, options.repeat, options.seconds)
            counts[kind][1] += 1
            counts["nobody"][0] += told(program, model, cores, options.repeat, options.seconds)
            counts["nobody"][1] += 1
    print(table(["the other process", "told", "trials"], [[kind, *numbers] for kind, numbers in counts.items()]))
    missed = sum(trials - told for kind, (told, trials) in counts.items() if kind != "nobody")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
