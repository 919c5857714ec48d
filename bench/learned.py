#!/usr/bin/env python3
"""The tables of docs/results/learned.md.

    bench/learned.py TABLE [--models inceptionv3,resnet50,bert-base] [--clusters NAMES] [--seconds 20] [--seeds 5]
                     [--profiles FOLDER] [--results learned.json] [--write docs/results/learned.md]

    sizes      graph sizes, and after joining chains
    table      HSDAG's table: single devices, RNN, Placeto, HSDAG as published and ours, heft, auto
    spent      what that took: placements evaluated and processor time
    rates      RNN and Placeto with other learning rates
    training   processor time until hsdag is within 2 % of auto
    speed      placements for each second of processor time, learning included
    unseen     policies on families of graphs that they have not seen, in one pass and improving
    ablation   each part of hsdag switched off
    guide      a policy as the start of search, and as the source of moves, on large graphs
    policy     trains the policy that ships with the program again, next to --results

Every cell is kept in --results as soon as it is known; a second run goes on where the first was stopped. With --write
the table goes to the page, between the markers <!-- NAME --> and <!-- /NAME -->.

Budgets are placements to evaluate, or seconds of processor time, all threads together, so that a busy machine gives the
same table: a planner is interrupted (and then hands out its best plan) when it has used them. Learned planners run in
one thread.

The problems: a model of the zoo on a CPU and a GPU, and on two unequal sets of cores. Times on the CPU are those of
FOLDER/MODEL.json (written by `placewright profile` on one core if it is not there), without --profiles those that
`placewright import` estimates. On the GPU an op takes 10 us to start and its time on the CPU divided by a speed-up: 20
to 100 for convolutions and matrix products, 2 to 20 for the rest, drawn for each type with seed 1. The larger set of
cores takes 40 % of the smaller one's time.
"""

import argparse
import functools
import json
import os
import pathlib
import random
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
HEAVY = {"Convolution", "GroupConvolution", "MatMul"}
PUBLISHED_SIZES = {"inceptionv3": "728 / 764", "resnet50": "396 / 411", "bert-base": "1009 / 1071"}
ABLATION = {
    "ours": [], "the network alone": ["neighbours=0"], "walking without the network": ["guided=0"],
    "no parsing": ["parse=false"], "chains as published": ["coarsen=chains"],
    "no encoder": ["encoder=none"], "GIN": ["encoder=gin"], "GAT": ["encoder=gat"],
    "no structure features": ["structure=false"], "no cost features, from one device": ["costs=false"],
    "no baseline": ["baseline=none"], "moving baseline": ["baseline=moving"], "PPO": ["algorithm=ppo"],
    "no exploration": ["exploration=0"], "no imitation": ["imitation=0"]}
CONVOLUTIONAL = ["alexnet", "squeezenet", "bninception", "resnet50", "inceptionv3", "inceptionv4"]
TRANSFORMERS = ["bert-base", "gpt2", "swin-t"]
GENERATED_CONVOLUTIONAL = ["inception", "layered", "series-parallel"]
GENERATED = [*GENERATED_CONVOLUTIONAL, "transformer"]
ONE_PASS = ["one-pass=true", "samples=16384"]
SAMPLES = 128  # placements that one pass of hsdag's network serves
# What the learned planners of HSDAG's table may evaluate: about as much processor time for each.
PLACEMENTS = {"rnn": 2500, "placeto": 12500, "hsdag": 100000}
# Steps of a budget that one op of a placement counts.
STEPS_PER_OP = {"rnn": 32, "placeto": 32, "hsdag": 4}
LARGE = {2000: 1.5, 20000: 5}  # ops of large graphs, and processor seconds for each
MOST_WALKED = 5000  # ops: beyond that walking has hardly begun when the time is over


class Results:
    """Cells by key, on disk at once."""

    def __init__(self, path):
        self.path = pathlib.Path(path)
        self.cells = json.loads(self.path.read_text()) if self.path.exists() else {}

    def get(self, key, compute):
        if key not in self.cells:
            print(f"  {key} …", file=sys.stderr, flush=True)
            self.cells[key] = compute()
            scratch = self.path.with_suffix(".part")
            scratch.write_text(json.dumps(self.cells, indent=1))
            scratch.replace(self.path)
        return self.cells[key]


class Bench:
    def __init__(self, options, folder):
        self.options = options
        self.folder = pathlib.Path(folder)
        self.results = Results(options.results)

    def program(self, *words):
        subprocess.run([self.options.program, *map(str, words), "--quiet"], cwd=self.folder, check=True)

    @functools.lru_cache(maxsize=None)
    def imported(self, model):
        """The model's problem on one kind of CPU, as `profile` or `import` wrote it."""
        made = pathlib.Path(self.options.profiles or self.folder).resolve() / f"{model}.json"
        if not made.exists():
            self.program("zoo", "make", model)
            if self.options.profiles:
                self.program("profile", f"{model}.xml", "--device", "cpu:0", "-o", made)
            else:
                self.program("import", f"{model}.xml", "-o", made)
            for file in (f"{model}.xml", f"{model}.bin"):
                (self.folder / file).unlink()
        return json.loads(made.read_text())

    def problems(self, models=None):
        """(name, path) of each model's problems."""
        for model in models or self.options.models.split(","):
            base = self.imported(model)
            for cluster, made in (("CPU and GPU", with_second_kind(base, "GPU", gpu_times())),
                                  ("two core sets", with_second_kind(base, "large", lambda op: 0.4 * op["time"][0]))):
                if cluster not in self.options.clusters.split(","):
                    continue
                path = self.folder / f"{model}-{cluster.replace(' ', '-')}.json"
                path.write_text(json.dumps(made))
                yield f"{model}, {cluster}", path

    def plan(self, path, planner, *settings, seconds=None, placements=None, seed=1, threads=1, start=None, output=None):
        """The answer, with the processor seconds that it took; interrupted after `seconds` of them."""
        command = [self.options.program, "plan", str(path), "--planner", planner, "--time-limit", "1h", "--threads", str(threads),
                   "--seed", str(seed), "--json"]
        for setting in settings:
            command += ["--option", setting]
        if placements:
            command += ["--steps", str(placements * STEPS_PER_OP[planner] * len(json.loads(path.read_text())["ops"]))]
        if start:
            command += ["--start", str(start)]
        if output:
            command += ["-o", str(output)]
        printed = self.folder / "answer.json"
        with printed.open("w") as file:
            process = subprocess.Popen(command, stdout=file, stderr=subprocess.PIPE)
            used = 0.0
            while (pid_status := os.wait4(process.pid, os.WNOHANG))[0] == 0:
                if seconds and used < seconds <= (used := processor_seconds(process.pid, used)):
                    process.send_signal(signal.SIGINT)
                time.sleep(0.05)
        if pid_status[1] != 0:
            raise SystemExit(f"{planner} on {path}: {process.stderr.read().decode()}")
        answer = json.loads(printed.read_text())
        return {"value": answer["value"], "lower_bound": answer["lower_bound"],
                "processor": pid_status[2].ru_utime + pid_status[2].ru_stime}

    def cell(self, planner, name, path, *settings, seconds=None, placements=None, seed=1, threads=1):
        budget = f"{placements} placements" if placements else f"{seconds} s"
        key = f"{planner} {' '.join(settings)} {name} {budget} seed {seed} threads {threads}"
        return self.results.get(key, lambda: self.plan(path, planner, *settings, seconds=seconds, placements=placements, seed=seed,
                                                       threads=threads))

    def learned(self, name, path):
        """The learned columns of HSDAG's table, by title; the published settings end by themselves."""
        columns = {"rnn": ("rnn", PLACEMENTS["rnn"]), "placeto": ("placeto", PLACEMENTS["placeto"]),
                   "hsdag published": ("hsdag", None, "published=true"),
                   "hsdag, network alone": ("hsdag", PLACEMENTS["hsdag"], "neighbours=0"), "hsdag": ("hsdag", PLACEMENTS["hsdag"])}
        return {title: self.cell(planner, name, path, *settings, placements=placements)
                for title, (planner, placements, *settings) in columns.items()}

    def train(self, models, families, count, policy):
        """One policy from the models' problems and `count` generated ones, equally many of each family."""
        made = [word for family in families for word in ("--generate", f"{family}={count // len(families)}")]
        self.program("train", *(path for _, path in self.problems(models)), *made, "-o", policy, "--episodes", 3000, "--seed", 1,
                     "--channels", 32, "--imitation", 1)

    def auto(self, name, path):
        return self.cell("auto", name, path, seconds=3 * self.options.seconds, threads=2)


def processor_seconds(pid, otherwise):
    try:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return otherwise
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def gpu_times():
    dice = random.Random(1)
    speedups = {}

    def on_gpu(op):
        kind = op.get("type", "")
        speedup = speedups.setdefault(kind, dice.uniform(*((20, 100) if kind in HEAVY else (2, 20))))
        return min(op["time"][0] * 10, max(op["time"][0] / 100, 0.01 + op["time"][0] / speedup))
    return on_gpu


def with_second_kind(problem, name, time_of):
    """Two devices: the first kind as it is, the second with the time that `time_of` gives an op."""
    made = {key: value for key, value in problem.items() if key not in ("kinds", "devices", "interconnect", "resources", "spaces")}
    made["kinds"] = [{"name": "small"}, {"name": name}]
    made["devices"] = [{"name": "CPU", "kind": "small"}, {"name": name, "kind": name}]
    made["interconnect"] = {"kind": "links", "all": {"latency": 0.01, "bandwidth": 1e7}}
    made["ops"] = [{**op, "time": [op["time"][0], time_of(op)]} for op in problem["ops"]]
    made["models"] = [{"name": model["name"]} for model in problem["models"]]
    return made


def one_device(path, index):
    return sum(op["time"][index] for op in json.loads(path.read_text())["ops"])


def percent(share):
    return f"{100 * share:.1f} %"


def percentile(values, share):
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def sizes_table(bench):
    rows = ["| model | published ops / edges | ours | nodes after joining chains |", "| --- | --- | --- | --- |"]
    for model in bench.options.models.split(","):
        cell = bench.results.get(f"size {model}", lambda: measured_size(bench.imported(model)))
        rows.append(f"| {model} | {PUBLISHED_SIZES.get(model, '')} | {cell['ops']} / {cell['edges']} | {cell['chains']} |")
    return rows


def measured_size(problem):
    after = {}
    into = {}
    for tensor in problem["tensors"]:
        for reader in tensor["to"]:
            after.setdefault(tensor["from"], set()).add(reader)
            into.setdefault(reader, set()).add(tensor["from"])
    joined = sum(1 for op, readers in after.items() if len(readers) == 1 and len(into[next(iter(readers))]) == 1)
    return {"ops": len(problem["ops"]), "edges": sum(map(len, after.values())), "chains": len(problem["ops"]) - joined}


def main_table(bench):
    rows = []
    for name, path in bench.problems():
        best = bench.auto(name, path)
        learned = {title: cell["value"] for title, cell in bench.learned(name, path).items()}
        values = {"CPU only": one_device(path, 0), "other only": one_device(path, 1), "HETERO order": bench.cell("priority", name, path)["value"],
                  **learned, "heft": bench.cell("heft", name, path)["value"], "auto": best["value"], "bound": best["lower_bound"]}
        if not rows:
            rows = [f"| problem | {' | '.join(values)} | hsdag against auto |", "| --- |" + " ---: |" * (len(values) + 1)]
        rows.append(f"| {name} | " + " | ".join(f"{value:.4g}" for value in values.values()) +
                    f" | {round(100 * (learned['hsdag'] / best['value'] - 1), 1) + 0.0:+.1f} % |")
    return rows


def spent_table(bench):
    placements = {"rnn": PLACEMENTS["rnn"], "placeto": PLACEMENTS["placeto"], "hsdag published": 500,
                  "hsdag, network alone": PLACEMENTS["hsdag"], "hsdag": PLACEMENTS["hsdag"]}
    rows = [f"| problem | {' | '.join(placements)} | auto |", "| --- |" + " ---: |" * (len(placements) + 1),
            "| placements evaluated | " + " | ".join(f"{count:,}" for count in placements.values()) + " | |"]
    for name, path in bench.problems():
        seconds = [cell["processor"] for cell in bench.learned(name, path).values()] + [bench.auto(name, path)["processor"]]
        rows.append(f"| {name}, seconds | " + " | ".join(f"{each:.1f}" for each in seconds) + " |")
    return rows


def rates_table(bench):
    rates = ["3e-4", "1e-3", "3e-3", "1e-2"]
    rows = [f"| planner | problem | {' | '.join(rates)} |", "| --- | --- |" + " ---: |" * len(rates)]
    for planner in ("rnn", "placeto"):
        for name, path in bench.problems():
            values = [bench.cell(planner, name, path, f"learning-rate={rate}", placements=PLACEMENTS[planner])["value"] for rate in rates]
            rows.append(f"| {planner} | {name} | " + " | ".join(f"{value:.4g}" for value in values) + " |")
    return rows


def training_table(bench):
    """A shorter run with the same seed is the beginning of a longer one, so doubling finds how many episodes are needed."""
    rows = ["| problem | episodes | placements | processor seconds | value | auto |", "| --- | ---: | ---: | ---: | ---: | ---: |"]
    for name, path in bench.problems():
        best = bench.auto(name, path)["value"]
        for doubling in range(9):
            episodes = 25 << doubling
            found = bench.cell("hsdag", name, path, f"episodes={episodes}")
            if found["value"] <= 1.02 * best:
                break
        reached = "" if found["value"] <= 1.02 * best else " (not reached)"
        rows.append(f"| {name} | {episodes}{reached} | {episodes * SAMPLES:,} | {found['processor']:.1f} | {found['value']:.4g} | {best:.4g} |")
    return rows


def speed_table(bench):
    """From the processor time of a short and of a longer run, subtracted."""
    rows = ["| problem | placements, ours | placements, rnn | passes of the network, published |", "| --- | ---: | ---: | ---: |"]
    for name, path in bench.problems():
        def rate(planner, placements_each, short, long, *settings):
            few = bench.cell(planner, name, path, f"episodes={short}", *settings)
            many = bench.cell(planner, name, path, f"episodes={long}", *settings)
            return (long - short) * placements_each / max(1e-9, many["processor"] - few["processor"])

        rows.append(f"| {name} | {rate('hsdag', SAMPLES, 50, 400):,.0f} | {rate('rnn', 32, 4, 24):,.0f} | "
                    f"{rate('hsdag', 20, 2, 12, 'published=true'):,.0f} |")
    return rows


def generated(bench, family, count):
    """(name, path) of generated problems with two to four devices; their seeds are none that `train` uses."""
    for i in range(count):
        path = bench.folder / f"{family}-{i}.json"
        bench.program("generate", family, "--ops", 60 + 20 * i, "--devices", 2 + i % 3, "--kinds", 2 + i % 3, "--seed", 500 + i, "-o", path)
        yield f"{family} {i}", path


def unseen_table(bench):
    rows = ["| trained on | tested on | | one pass | after 1 s | after 10 s |", "| --- | --- | --- | ---: | ---: | ---: |"]
    for seen, families, unseen, family in (("convolutional", GENERATED_CONVOLUTIONAL, "transformers", "transformer"),
                                           ("transformers", ["transformer"], "convolutional", "inception")):
        policy = pathlib.Path(bench.options.results).resolve().with_suffix(f".{seen}.pw")
        if not policy.exists():
            bench.train(CONVOLUTIONAL if seen == "convolutional" else TRANSFORMERS, families, 30, policy)
        tested = [*bench.problems(TRANSFORMERS if unseen == "transformers" else CONVOLUTIONAL), *generated(bench, family, 4)]
        distances = {"one pass": [], "1 s": [], "10 s": []}
        wins = {"one pass": 0, "1 s": 0, "10 s": 0}
        open_cases = 0  # in which auto is better than heft
        for name, path in tested:
            best = bench.auto(name, path)["value"]
            heft = bench.cell("heft", name, path)["value"]
            open_cases += best < heft * (1 - 1e-9)
            for column, settings, seconds in (("one pass", ONE_PASS, None), ("1 s", [], 1), ("10 s", [], 10)):
                key = f"{policy.name} {column} {' '.join(settings)} {name}"
                found = bench.results.get(key, lambda: bench.plan(path, "hsdag", f"policy={policy}", *settings, seconds=seconds))["value"]
                distances[column].append(found / best - 1)
                wins[column] += found < heft * (1 - 1e-9)
        title = f"| {seen}, generated | {unseen} ({len(tested)}) |"
        rows.append(f"{title} median above auto | " + " | ".join(percent(statistics.median(cells)) for cells in distances.values()) + " |")
        rows.append("| | | 90th percentile | " + " | ".join(percent(percentile(cells, 0.9)) for cells in distances.values()) + " |")
        rows.append(f"| | | better than heft (auto: {open_cases}) | " + " | ".join(f"{count} of {len(tested)}" for count in wins.values()) + " |")
    return rows


def ablation_table(bench):
    chosen = list(bench.problems())
    rows = ["| setting | " + " | ".join(f"{name}: median above auto | worst less best seed" for name, _ in chosen) + " |",
            "| --- |" + " ---: | ---: |" * len(chosen)]
    for setting, flags in ABLATION.items():
        cells = []
        for name, path in chosen:
            best = bench.auto(name, path)["value"]
            found = [bench.cell("hsdag", name, path, *flags, seconds=bench.options.seconds, seed=seed)["value"] / best - 1
                     for seed in range(1, bench.options.seeds + 1)]
            cells += [f"{100 * statistics.median(found):.2f} %", f"{100 * (max(found) - min(found)):.2f} %"]
        rows.append(f"| {setting} | " + " | ".join(cells) + " |")
    return rows


def guide_table(bench):
    """Large graphs, the same processor time for each way: medians over the seeds of the value over that of search with the same seed."""
    ways = ["search from one pass of hsdag", "walking, moves of the policy", "walking alone"]
    rows = [f"| graph | ops | seconds | search | {' | '.join(ways)} |", "| --- | ---: | ---: |" + " ---: |" * (len(ways) + 1)]
    for family in ("layered", "inception", "transformer"):
        for ops, seconds in LARGE.items():
            path = bench.folder / f"{family}-{ops}.json"
            bench.program("generate", family, "--ops", ops, "--devices", 4, "--kinds", 3, "--seed", 1, "-o", path)
            alone, others = [], {way: [] for way in ways}
            for seed in range(1, bench.options.seeds + 1):
                alone.append(bench.cell("search", path.stem, path, seconds=seconds, seed=seed)["value"])
                found = [bench.results.get(f"guided {path.stem} {seconds} s seed {seed}", lambda: guided_search(bench, path, seconds, seed))]
                if ops <= MOST_WALKED:
                    found += [bench.cell("hsdag", path.stem, path, "policy=shipped", guided, seconds=seconds, seed=seed)
                              for guided in ("guided=0.5", "guided=0")]
                for way, cell in zip(ways, found):
                    others[way].append(cell["value"] / alone[-1] - 1)
            cells = [spread(shares) if shares else "" for shares in others.values()]
            rows.append(f"| {family} | {ops:,} | {seconds} | {statistics.median(alone):.4g} | {' | '.join(cells)} |")
    return rows


def guided_search(bench, path, seconds, seed):
    """One pass of the shipped policy, then search from its plan for what is left of the time."""
    start = bench.folder / "start.json"
    passed = bench.plan(path, "hsdag", "one-pass=true", seconds=seconds, seed=seed, output=start)
    return bench.plan(path, "search", seconds=max(0.1, seconds - passed["processor"]), seed=seed, start=start)


def spread(shares):
    return f"{100 * statistics.median(shares):+.2f} % ({100 * min(shares):+.2f} to {100 * max(shares):+.2f})"


def shipped_policy(bench):
    policy = pathlib.Path(bench.options.results).resolve().with_name("shipped_policy.pw")
    bench.train([*CONVOLUTIONAL, *TRANSFORMERS], GENERATED, 32, policy)
    return [str(policy)]


TABLES = {"sizes": sizes_table, "table": main_table, "spent": spent_table, "rates": rates_table, "training": training_table, "speed": speed_table, "unseen": unseen_table,
          "ablation": ablation_table, "guide": guide_table, "policy": shipped_policy}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", choices=TABLES)
    parser.add_argument("--program", default=str(ROOT / "build/placewright"))
    parser.add_argument("--models", default="inceptionv3,resnet50,bert-base")
    parser.add_argument("--clusters", default="CPU and GPU,two core sets")
    parser.add_argument("--profiles", default="")
    parser.add_argument("--seconds", type=float, default=20, help="of processor time, for each learned planner; auto has three times as many")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--results", default="learned-results.json")
    parser.add_argument("--write", default="")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        table = "\n".join(TABLES[options.table](Bench(options, folder)))
    print(table)
    if options.write:
        page = pathlib.Path(options.write)
        marked = re.compile(f"<!-- {options.table} -->.*?<!-- /{options.table} -->", re.DOTALL)
        page.write_text(marked.sub(lambda _: f"<!-- {options.table} -->\n{table}\n<!-- /{options.table} -->", page.read_text()))


if __name__ == "__main__":
    main()
