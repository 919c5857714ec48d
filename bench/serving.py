#!/usr/bin/env python3
"""`placewright serve` beside other servers: each answers the same requests for the same models with the same cores.

  bench/serving.py --install                                 once: an environment for each server from PyPI, and the models
  bench/serving.py --json serving.json --page docs/results/serving.md
  bench/serving.py --only three --servers serve,together --requests 300 --seconds 1      a short look

Requests are those of a Poisson process, open loop: a client in C++ (serving_client.cpp) sends each at its moment, whether or not
others are answered, and its latency counts from that moment on. A load is the share of the time that all requests would take one
after the other; the time of a model is the median of OpenVINO alone.

It can be stopped and started again: what the JSON file has is not measured again. A server that cannot be measured stands there
with the reason, and is tried again. Parts, in their order:

  three    SqueezeNet, ResNet-50 and Inception-V4 at 6 : 3 : 1 and loads of 0.85, 0.8 (objectives of five times the own time) and 0.6
  empty    a model that computes nothing
  alone    ResNet-50 alone, closed loop
  mixes    ten random mixes of ten models at loads of 0.5 to 0.9
"""

import argparse
import json
import math
import os
import pathlib
import random
import re
import statistics
import sys
import time

from defaults import model_of
from pages import Program, fill
from serving_page import page_parts
from serving_servers import OPENVINO, PEERS, ROOT, SERVERS, BenchModel, Failure, Peer

THREE = {"squeezenet": 6, "resnet50": 3, "inceptionv4": 1}
LOADS = [0.85, 0.8, 0.6]
OBJECTIVE_LOAD = 0.8
POOL = ["squeezenet", "resnet50", "inceptionv3", "inceptionv4", "bninception", "layout", "orientation", "ocr-classify", "ocr-v4-recognise",
        "nudity"]
MIXES = 10
PARTS = ["three", "empty", "alone", "mixes"]


class Bench:
    def __init__(self, options):
        self.options = options
        self.kept = json.loads(options.json.read_text()) if options.json.exists() else {"own": {}, "cells": {}, "errors": {}}
        self.program = Program(options.program)

    def save(self):
        part = self.options.json.with_suffix(".part")
        part.write_text(json.dumps(self.kept, indent=1) + "\n")
        part.replace(self.options.json)

    # Models.

    def fixed_model(self, name):
        """The file of a model without open shapes, which all servers read."""
        import openvino

        folder = self.options.models
        path = folder / "fixed" / f"{name}.xml"
        if path.exists():
            return path
        path.parent.mkdir(parents=True, exist_ok=True)
        if name == "empty":
            nodes = openvino.opset13
            value = nodes.parameter([1, 16], openvino.Type.f32, name="x")
            model = openvino.Model([nodes.relu(value)], [value], "empty")
        else:
            file, shapes = model_of(self.program, name, folder)
            model = openvino.Core().read_model(file)
            if shapes:
                model.reshape({name: list(map(int, shape.split("x"))) for name, _, shape in (each.partition("=") for each in shapes[1::2])})
        openvino.save_model(model, path, compress_to_fp16=False)
        return path

    def model(self, name):
        path = self.fixed_model(name)
        if name not in self.kept["own"]:
            self.kept["own"][name] = own_time(path)
            self.save()
        return BenchModel(path, self.kept["own"][name])

    # Cells: what one server did in one row.

    def wanted(self, row, name):
        return f"{row}/{name}" not in self.kept["cells"]

    def keep(self, row, name, cell):
        self.kept["cells"][f"{row}/{name}"] = cell
        self.kept["errors"].pop(f"{row}/{name}", None)
        self.save()

    def each_server(self, names, models, rows):
        """`rows`: what to do by name of the row, with a running server. A server starts once for all of them."""
        for name in names:
            if name not in self.options.servers:
                continue
            left = [row for row in rows if self.wanted(row, name)]
            if not left:
                continue
            begin = time.monotonic()
            try:
                with SERVERS[name].start(self.options, models) as running:
                    print(f"{name}: started in {time.monotonic() - begin:.0f} s", file=sys.stderr, flush=True)
                    for row in left:
                        begin = time.monotonic()
                        self.keep(row, name, rows[row](running))
                        print(f"{row}/{name}: {time.monotonic() - begin:.0f} s", file=sys.stderr, flush=True)
            except Exception as error:  # the others are measured all the same
                reason = str(error) if isinstance(error, Failure) else f"{type(error).__name__}: {error}"
                print(f"{name}: {reason}", file=sys.stderr, flush=True)
                for row in left:
                    if self.wanted(row, name):
                        self.kept["errors"][f"{row}/{name}"] = reason
                self.save()

    def replay(self, models, arrivals):
        """A row: the requests of `arrivals`, after a few of each model that do not count."""
        warm = [(0.05 * index, index % len(models)) for index in range(4 * len(models))]

        def row(running):
            running.ask({"arrivals": [[moment, model, moment] for moment, model in warm]}, 60)
            order = [[moment, model, moment + models[model].objective / 1000] for moment, model in arrivals]
            outcomes = running.ask({"arrivals": order}, 2 * arrivals[-1][0] + 90)
            return summary(models, [(arrivals[index][1], *outcome) for index, outcome in enumerate(outcomes)])

        return row

    # Parts.

    def three(self):
        models = [self.model(name) for name in THREE]
        shares = list(THREE.values())
        rows = {f"three-{load}": self.replay(models, poisson(models, shares, load, self.options.requests, self.options.seed))
                for load in LOADS}
        self.each_server(["serve", *PEERS], models, rows)
        objectives = {row: rows[row] for row in [f"three-{OBJECTIVE_LOAD}"]}
        self.each_server(["serve-objectives", "serve-late", "deadline"], models, objectives)
        for load in LOADS:
            self.predict(f"three-{load}", models, poisson(models, shares, load, self.options.requests, self.options.seed))

    def predict(self, row, models, arrivals):
        """What `serve --simulate` says about the same arrivals, from the times that OpenVINO alone takes."""
        if not self.wanted(row, "predicted"):
            return
        folder = self.options.work
        files = []
        for model in models:
            files.append(folder / f"{model.name}.json")
            files[-1].write_text(json.dumps({
                "placewright": "problem", "version": 1, "name": model.name, "unit": "ms", "models": [{"name": model.name}],
                "kinds": [{"name": "cores"}], "devices": [{"name": "cores", "kind": "cores"}],
                "interconnect": {"kind": "links", "all": {"latency": 0, "bandwidth": 1}},
                "ops": [{"name": model.name, "model": model.name, "time": [model.own]}]}))
        trace = folder / f"{row}.csv"
        trace.write_text("time,model\n" + "".join(f"{1000 * moment:.6f},{models[model].name}\n" for moment, model in arrivals))
        printed = self.program.run("serve", *files, "--simulate", trace)
        self.keep(row, "predicted", {each["model"]: {key: each[key] for key in ("mean", "p50", "p99")} for each in printed["models"]})

    def empty(self):
        models = [self.model("empty")]
        rows = {f"empty-{clients}": closed(clients, self.options.seconds) for clients in (1, 8)}
        self.each_server(["serve", "triton", "mlserver", "ray"], models, rows)

    def alone(self):
        models = [self.model("resnet50")]
        rows = {f"alone-{clients}": closed(clients, self.options.seconds) for clients in (1, 4)}
        self.each_server(["serve", *PEERS], models, rows)

    def mixes(self):
        everything = {name: self.model(name) for name in POOL}
        mixes = [random_mix(everything, number, self.options) for number in range(MIXES)]
        self.kept["mixes"] = [{"models": [model.name for model in models], "load": load} for models, _, load in mixes]
        for number, (models, arrivals, _) in enumerate(mixes):
            self.each_server(["serve", "together"], models, {f"mix-{number}": self.replay(models, arrivals)})
        # These take no notice of models that nobody asks for: one start for all mixes.
        order = list(everything.values())
        rows = {}
        for number, (models, arrivals, _) in enumerate(mixes):
            there = [order.index(model) for model in models]
            rows[f"mix-{number}"] = self.replay(order, [(moment, there[model]) for moment, model in arrivals])
        self.each_server(["openvino", "triton", "mlserver", "ray"], order, rows)


def own_time(path):
    """The median milliseconds of OpenVINO alone, over a second and at least 20 inferences."""
    from served import Model

    model = Model(path)
    arrays, times = model.example(), []
    for _ in range(5):
        model.infer(arrays)
    until = time.perf_counter() + 1
    while time.perf_counter() < until or len(times) < 20:
        begin = time.perf_counter()
        model.infer(arrays)
        times.append(1000 * (time.perf_counter() - begin))
    return statistics.median(times)


def poisson(models, shares, load, count, seed):
    """Arrivals: second, number of the model."""
    mean = sum(share * model.own for share, model in zip(shares, models)) / sum(shares) / 1000
    draw, now, arrivals = random.Random(seed), 0.0, []
    for _ in range(count):
        now += draw.expovariate(load / mean)
        arrivals.append((now, draw.choices(range(len(models)), shares)[0]))
    return arrivals


def random_mix(everything, number, options):
    draw = random.Random(1000 * options.seed + number)
    models = [everything[name] for name in draw.sample(sorted(everything), draw.randint(2, 5))]
    shares = [draw.uniform(1, 6) / math.sqrt(model.own) for model in models]
    load = round(draw.uniform(0.5, 0.9), 2)
    mean = sum(share * model.own for share, model in zip(shares, models)) / sum(shares) / 1000
    count = max(20, round(options.seconds * load / mean))
    return models, poisson(models, shares, load, count, number), load


def closed(clients, seconds):
    def row(running):
        running.ask({"closed": {"seconds": 0.5, "clients": clients}}, 90)
        outcomes = running.ask({"closed": {"seconds": seconds, "clients": clients}}, seconds + 90)
        good = [took for status, took in outcomes if status == 0]
        if not good:
            raise Failure("answered no request")
        return {"answered": len(good), "failed": len(outcomes) - len(good), "a_second": len(good) / seconds, "p50": percentile(good, 0.5),
                "p99": percentile(good, 0.99)}

    return row


UNAVAILABLE = 14


def summary(models, met):
    """By model, and of all. `met`: number of the model, status, milliseconds."""
    found = {}
    for name in [*(model.name for model in models), "all"]:
        asked = [(models[number], status, took) for number, status, took in met if name in (models[number].name, "all")]
        good = [took for _, status, took in asked if status == 0]
        if not asked:
            continue
        refused = sum(status == UNAVAILABLE for _, status, _ in asked)
        in_time = sum(status == 0 and took <= model.objective for model, status, took in asked)
        found[name] = {"requests": len(asked), "refused": refused, "failed": len(asked) - len(good) - refused, "in_time": in_time,
                       "mean": statistics.fmean(good) if good else None, "p50": percentile(good, 0.5), "p99": percentile(good, 0.99),
                       "times_own": statistics.fmean(took / model.own for model, status, took in asked if status == 0) if good else None}
    return found


def machine():
    """What the figures depend on, in a sentence."""
    found = re.search(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text())
    packages = [server.packages.split()[0].replace("==", " ") for server in SERVERS.values() if isinstance(server, Peer)]
    return f"{len(os.sched_getaffinity(0))} cores of {found[1] if found else 'this machine'}; openvino {OPENVINO}, {', '.join(packages)}"


def percentile(values, share):
    return sorted(values)[math.ceil(share * len(values)) - 1] if values else None


def options_of(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=pathlib.Path, default=ROOT / "build/placewright")
    parser.add_argument("--client", type=pathlib.Path, default=ROOT / "build/release/bench/serving_client")
    parser.add_argument("--models", type=pathlib.Path, default=ROOT / "build/serving/models", help="folder that keeps the models")
    parser.add_argument("--environments", type=pathlib.Path, default=ROOT / "build/serving", help="folder that keeps an environment for each server")
    parser.add_argument("--json", type=pathlib.Path, default=ROOT / "build/serving/serving.json", help="what was measured; kept from run to run")
    parser.add_argument("--page", type=pathlib.Path, help="put the tables into this page, between its markers")
    parser.add_argument("--only", type=lambda text: text.split(","), default=PARTS, metavar="PART,…", help="of " + ", ".join(PARTS))
    parser.add_argument("--servers", type=lambda text: text.split(","), default=list(SERVERS), metavar="SERVER,…", help="of " + ", ".join(SERVERS))
    parser.add_argument("--requests", type=int, default=3000, help="of the three models, at each load")
    parser.add_argument("--seconds", type=float, default=3, help="of each closed loop and each mix")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--install", action="store_true", help="make the environments and models, and measure nothing")
    options = parser.parse_args(arguments)
    for given, known in ((options.only, PARTS), (options.servers, SERVERS)):
        if unknown := set(given) - set(known):
            parser.error(f"there is no '{unknown.pop()}', there is: {', '.join(known)}")
    return options


def main(arguments):
    options = options_of(arguments)
    options.work = options.json.parent / "work"
    for folder in (options.environments, options.models, options.work):
        folder.mkdir(parents=True, exist_ok=True)
    for file, how in ((options.program, "make build"), (options.client, "cmake --build --preset release --target serving_client")):
        if not file.exists():
            raise SystemExit(f"{file} is not there: {how}")
    os.environ.setdefault("PIP_DISABLE_PIP_VERSION_CHECK", "1")
    bench = Bench(options)
    if options.install:
        for name in options.servers:
            try:
                SERVERS[name].install(options)
            except Failure as failure:
                print(f"{name}: {failure}", file=sys.stderr)
        for name in [*THREE, *POOL, "empty"]:
            bench.fixed_model(name)
        return 0
    for part in PARTS:
        if part in options.only:
            getattr(bench, part)()
    bench.kept["machine"] = machine()
    bench.save()
    text = page_parts(bench.kept, {name: server.title for name, server in SERVERS.items()})
    for name, tables in text.items():
        print(f"{tables}\n")
        if options.page:
            fill(options.page, name, tables)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
