"""Applies the schemas of docs/schema, with a real validator, to everything the program reads and writes.

What the program accepts a schema must accept, and what a schema refuses the program must refuse (unknown keys apart:
the program only warns of them).
"""

import copy
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

from jsonschema import Draft202012Validator
from referencing import Registry, Resource

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
PROGRAM = os.environ["PLACEWRIGHT_PROGRAM"]
SCHEMAS = {path.stem: json.loads(path.read_text()) for path in (ROOT / "docs" / "schema").glob("*.json")}
REGISTRY = Registry().with_resources(
    (schema["$id"], Resource.from_contents(schema)) for schema in SCHEMAS.values())

PUBLISHED = sorted(
    path.relative_to(EXAMPLES).as_posix()
    for folder in ("moirai", "msr/throughput", "msr/latency", "talos")
    for path in (EXAMPLES / folder).rglob("*.json"))

# One small problem with every key that a problem file can have.
EVERY_KEY = json.loads((ROOT / "fuzz/corpus/problem/placewright/every_key.json").read_text())
CLUSTER = json.loads((ROOT / "fuzz/corpus/cluster/links.json").read_text())


def validator(name):
    return Draft202012Validator(SCHEMAS[name], registry=REGISTRY)


def complaints(name, document):
    return [f"{'/'.join(map(str, e.absolute_path))}: {e.message}"[:300] for e in validator(name).iter_errors(document)]


def only_unknown_keys(name, document):
    closed = ("additionalProperties", "unevaluatedProperties")
    return all(error.validator in closed for error in validator(name).iter_errors(document))


def run(*arguments):
    done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, timeout=120, check=False)
    return done.returncode, done.stdout, done.stderr


class SchemaTest(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)
        cache = unittest.mock.patch.dict(os.environ, XDG_CACHE_HOME=str(self.folder / "cache"))
        cache.start()
        self.addCleanup(cache.stop)

    def write(self, name, document):
        path = self.folder / name
        path.write_text(json.dumps(document))
        return path

    def expect(self, schema, document):
        self.assertEqual(complaints(schema, document), [])

    def output(self, schema, *arguments, codes=(0,)):
        code, out, err = run(*arguments, "--json")
        self.assertIn(code, codes, err)
        document = json.loads(out)
        self.expect(schema, document)
        return document


class Schemas(SchemaTest):
    def test_are_schemas(self):
        self.assertGreaterEqual(len(SCHEMAS), 10)
        for name, schema in SCHEMAS.items():
            with self.subTest(name):
                Draft202012Validator.check_schema(schema)
                self.assertTrue(schema["$id"].endswith(f"/{name}.json"))


class Generated(SchemaTest):
    def test_file_schemas_are_those_of_the_program(self):
        """After a change of a list of fields: placewright schemas docs/schema"""
        code, _, err = run("schemas", self.folder)
        self.assertEqual(code, 0, err)
        made = sorted(self.folder.glob("*.json"))
        self.assertGreaterEqual(len(made), 5)
        for path in made:
            with self.subTest(path.name):
                self.assertEqual((ROOT / "docs" / "schema" / path.name).read_text(), path.read_text())


class Names(SchemaTest):
    def test_enumerations_are_those_that_the_program_takes(self):
        """The program's own tables are what completion offers."""
        _, script, _ = run("completion", "bash")
        plan = script[script.index("\n    plan)\n"):]
        definitions = SCHEMAS["common"]["$defs"]
        enumerations = {name: definitions[name]["enum"] for name in ("objective", "format")}
        rules = SCHEMAS["problem"]["properties"]["rules"]["properties"]
        enumerations |= {name: rule["enum"] for name, rule in rules.items()
                         if "enum" in rule}
        self.assertEqual(len(enumerations), 7)
        for name, values in enumerations.items():
            with self.subTest(name):
                offered = re.search(rf"--{name}\) COMPREPLY=\(\$\(compgen -W '([^']*)'", plan)
                self.assertCountEqual(values, offered.group(1).split())


class Files(SchemaTest):
    def test_quantities_are_of_the_dimension_of_their_place(self):
        rates = {"mine": {"flops": "2TFLOPS", "bandwidth": "100 GB/s", "launch": "5us"}}
        document = {"placewright": "cluster", "version": 1, "rates": rates,
                    "devices": [{"name": name, "kind": "mine", "memory": "8GiB", "send_overhead": "1ms"} for name in "ab"],
                    "interconnect": {"kind": "links", "all": {"latency": "5 us", "bandwidth": "16GB/s"}}}
        self.expect("cluster", document)
        wrong = {("devices", 0, "memory"): "5us", ("devices", 0, "send_overhead"): "8GB", ("rates", "mine", "flops"): 0,
                 ("rates", "mine", "bandwidth"): "1GB", ("rates", "mine", "launch"): "1TFLOPS",
                 ("interconnect", "all", "latency"): "1GB/s", ("interconnect", "all", "bandwidth"): "1GB"}
        for path, value in wrong.items():
            with self.subTest(path):
                self.assertNotEqual(complaints("cluster", mutated(document, path, value)), [])
                changed = self.write("cluster.json", mutated(document, path, value))
                code, _, err = run("import", EXAMPLES / "talos/six_ops.json", "--cluster", changed, "-o", "-")
                self.assertEqual(code, 3)
                self.assertIn("/" + "/".join(map(str, path)) + ": ", err)

    def test_every_published_problem_as_imported(self):
        self.assertGreater(len(PUBLISHED), 10)
        for name in PUBLISHED:
            with self.subTest(name):
                code, out, err = run("import", EXAMPLES / name, "-o", "-")
                self.assertEqual(code, 0, err)
                self.expect("problem", json.loads(out))

    def test_hand_written_problems_and_clusters(self):
        for path in (ROOT / "fuzz/corpus/problem/placewright").glob("*.json"):
            with self.subTest(path.name):
                self.expect("problem", json.loads(path.read_text()))
                code, out, err = run("import", path, "-o", "-")
                self.assertEqual(code, 0, err)
                self.expect("problem", json.loads(out))
        for path in (ROOT / "fuzz/corpus/cluster").glob("*.json"):
            with self.subTest(path.name):
                self.expect("cluster", json.loads(path.read_text()))

    def test_a_file_has_the_version_of_its_keys(self):
        """What a version does not have yet, the schema and the program refuse alike."""
        needs = {"share": 2, "cuts": 2, "resources": 2, "spaces": 2, "node": 3, "schedule": 3, "micro_batches": 3}
        base = {"placewright": "problem", "kinds": [{"name": "k"}], "interconnect": {"kind": "links"}}
        for key, version in needs.items():
            device, op, tensor, rules, top = {"name": "d", "kind": "k"}, {"name": "a", "time": [1]}, {}, {}, {}
            holder, value = {"share": (op, [0.5]), "cuts": (tensor, [{"kind": "k"}]), "resources": (top, [{"name": "r"}]),
                             "spaces": (top, [{"name": "s"}]), "node": (device, "n"), "schedule": (rules, "interleaved"),
                             "micro_batches": (rules, 2)}[key]
            holder[key] = value
            document = base | top | {"devices": [device], "ops": [op, {"name": "b", "time": [1]}], "rules": rules,
                                     "tensors": [{"from": "a", "to": ["b"]} | tensor]}
            for stated in (1, 2, 3):
                with self.subTest(key=key, version=stated):
                    document["version"] = stated
                    code, _, err = run("import", self.write("versions.json", document))
                    self.assertEqual(code == 0, stated >= version, err)
                    self.assertEqual(complaints("problem", document) == [], stated >= version)

    def test_plans_of_planners_and_objectives(self):
        cases = [
            ("moirai/example-1.json", ["--planner", "heft"]),
            ("moirai/example-1.json", ["--planner", "random", "--embed"]),
            ("moirai/GoogLeNet.json", ["--planner", "etf", "--no-congestion"]),
            ("talos/six_ops.json", ["--planner", "single", "--embed", "--pin", "op1=GPU"]),
            ("msr/throughput/LayerGraphs/bert24_training.json", ["--planner", "topo", "--training", "phased", "--embed"]),
            ("msr/throughput/LayerGraphs/bert24_inference.json", ["--planner", "proportional", "--format", "msr"]),
            ("msr/latency/LayerGraphs/bert24_inference.json", ["--objective", "call-latency", "--calls", "4", "--time-limit", "1s"]),
        ]
        for number, (name, flags) in enumerate(cases):
            with self.subTest(f"{name} {flags}"):
                path = self.folder / f"plan{number}.json"
                code, _, err = run("plan", EXAMPLES / name, *flags, "-o", path, "-q")
                self.assertEqual(code, 0, err)
                plan = json.loads(path.read_text())
                self.expect("plan", plan)
                self.assertEqual("embedded" in plan["problem"], "--embed" in flags)
                self.assertEqual(run("check", path)[0], 0)

    def test_kept_plans(self):
        for path in (ROOT / "fuzz/corpus/plan").glob("*.json"):
            with self.subTest(path.name):
                self.expect("plan", json.loads(path.read_text()))

    def test_a_plan_with_a_cluster_file(self):
        model = {"placewright": "problem", "version": 1, "ops": [{"name": "a", "time": {"gpu": 1, "npu": 2}}]}
        self.expect("problem", model)
        problem = self.write("model.json", model)
        cluster = self.write("cluster.json", CLUSTER)
        path = self.folder / "plan.json"
        code, _, err = run("plan", problem, "--cluster", cluster, "-o", path, "-q")
        self.assertEqual(code, 0, err)
        self.expect("plan", json.loads(path.read_text()))


class Outputs(SchemaTest):
    def test_plan(self):
        document = self.output("plan-output", "plan", EXAMPLES / "moirai/example-1.json", "--time-limit", "1s")
        self.assertTrue(document["placement"])
        coarse = self.output("plan-output", "plan", EXAMPLES / "moirai/GoogLeNet.json", "--planner", "heft", "--coarsen", "chains")
        self.assertIn("coarsening", coarse)
        full = copy.deepcopy(EVERY_KEY)
        full["objective"] = "latency"
        full["rules"] = {}
        for device in full["devices"]:
            device["memory"] = 1
        refused = self.output("plan-output", "plan", self.write("full.json", full), codes=(1,))
        self.assertEqual(refused["status"], "infeasible")

    def test_explain_and_whatif(self):
        plan = self.folder / "plan.json"
        for name in ("moirai/example-1.json", "msr/throughput/LayerGraphs/bert24_inference.json"):
            with self.subTest(name):
                self.assertEqual(run("plan", EXAMPLES / name, "--planner", "topo", "-q", "-o", plan)[0], 0)
                document = self.output("explain-output", "explain", plan, "--planner", "topo")
                self.assertIn("sensitivity", document)
        problem = json.loads((EXAMPLES / "moirai/example-1.json").read_text())
        for device in problem["devices"]:
            device["memory"] = 12
        document = self.output("explain-output", "explain", self.write("small.json", problem), codes=(1,))
        self.assertEqual(document["status"], "infeasible")
        self.assertEqual(run("plan", EXAMPLES / "talos/six_ops.json", "-q", "-o", plan)[0], 0)
        self.assertIn("moves", self.output("explain-output", "explain", plan, "--op", "op1"))
        document = self.output("whatif-output", "whatif", EXAMPLES / "moirai/example-1.json", "--planner", "etf",
                               "--memory-factor", "0.5,1,2")
        self.assertEqual(len(document["points"]), 3)

    def test_several_models(self):
        six, chains = EXAMPLES / "talos/six_ops.json", EXAMPLES / "talos/two_chains.json"
        document = self.output("plan-output", "plan", six, six, "--planner", "talos")
        self.assertEqual(len(document["completion"]["models"]), 4)
        plan = self.folder / "plan.json"
        self.assertEqual(run("plan", six, six, "--planner", "tsam", "-q", "-o", plan)[0], 0)
        self.assertEqual(run("check", plan)[0], 0)
        document = self.output("affinity-output", "affinity", chains, *sorted((EXAMPLES / "talos/speedups").glob("*.csv")))
        self.assertEqual(len(document["affinity"]), 7)
        document = self.output("online-output", "online", chains, "--poisson", "6")
        self.assertEqual([row["method"] for row in document["methods"]], ["talos", "afresh", "aswm", "tsam", "shortest"])
        trace = EXAMPLES / "traces/arrivals.json"
        self.expect("trace", json.loads(trace.read_text()))
        document = self.output("online-output", "online", trace)
        self.assertIsNone(document["methods"][0]["models"][3]["completion"])
        self.assertEqual(run("online", chains)[0], 2)

    def test_serve(self):
        chains, trace = EXAMPLES / "talos/two_chains.json", EXAMPLES / "traces/arrivals.json"
        rates = ("--rate", "first=0.006", "--rate", "second=0.003", "--requests", "500")
        document = self.output("serve-output", "serve", chains, *rates, "--objective", "first=200s")
        self.assertEqual([row["model"] for row in document["models"]], ["first", "second", "all"])
        self.assertIsNone(document["models"][1]["in_time"])
        self.assertEqual(document["models"][2]["requests"], 500)
        document = self.output("serve-output", "serve", "--simulate", trace)
        self.assertEqual(document["models"][2]["cancelled"], 1)
        rows = self.folder / "arrivals.csv"
        rows.write_text("model,time\nfirst,0\nsecond,5\n")
        document = self.output("serve-output", "serve", chains, "--simulate", rows, "--policy", "arrival")
        self.assertEqual(document["models"][2]["answered"], 2)
        self.assertEqual(run("serve", chains)[0], 3)  # no model
        self.assertEqual(run("serve", chains, "--rate", "1", "--measure", "1s")[0], 3)
        self.assertEqual(run("serve", chains, "--rate", "1", "--load", "0.5")[0], 2)
        self.assertEqual(run("serve", chains, "--rate", "third=1")[0], 2)

    def test_serve_measure(self):
        names = ("tiny-branches", "tiny-bert")
        self.assertEqual(run("zoo", "make", *names, "-o", self.folder, "-q")[0], 0)
        models = [self.folder / f"{name}.xml" for name in names]
        for policy in ("normalised", "together"):
            document = self.output("serve-measure-output", "serve", *models, "--rate", "1", "--load", "0.2",
                                   "--measure", "1s", "--policy", policy)
            self.assertEqual([row["model"] for row in document["measured"]], [*names, "all"])
            self.assertEqual(document["policy"], policy)
            self.assertAlmostEqual(document["load"], 0.2, delta=0.1)
            for row in document["measured"]:
                self.assertEqual(row["answered"], row["requests"])
                self.assertLessEqual(row["p50"], row["p99"])
        self.assertEqual(run("serve", *models, "--measure", "1s")[0], 2)

    def test_fleet(self):
        nodes, plan = EXAMPLES / "fleet/nodes.json", self.folder / "fleet.json"
        self.expect("nodes", json.loads(nodes.read_text()))
        command = ("fleet", EXAMPLES / "talos/two_chains.json", "--nodes", nodes, "--rate", "1", "--objective", "second=5s")
        document = self.output("fleet-output", *command, "-o", plan)
        self.assertEqual([row["name"] for row in document["nodes"]], ["node1", "node2", "node3"])
        self.expect("fleet", json.loads(plan.read_text()))
        again = self.output("fleet-output", "fleet", plan)
        self.assertEqual(again, document)
        left = self.output("fleet-output", "fleet", plan, "--without", "node1")
        self.assertEqual([row["name"] for row in left["nodes"]], ["node2", "node3"])
        self.assertGreater(left["lower_bound"], document["lower_bound"])
        self.assertIsNotNone(self.output("fleet-output", "fleet", plan, "--rate", "500", codes=(1,))["obstacle"])
        self.assertEqual(run("fleet", EXAMPLES / "talos/two_chains.json", "--rate", "2")[0], 2)
        self.assertEqual(run("fleet", plan, "--without", "node9")[0], 2)
        for path, value in ((("nodes", 0, "speed"), 0), (("nodes", 1, "memory"), -1), (("models", 0, "times", 0), "x")):
            changed = mutated(json.loads(plan.read_text()), path, value)
            self.assertNotEqual(complaints("fleet", changed), [])
            self.assertEqual(run("fleet", self.write("changed.json", changed))[0], 3)

    def test_compare(self):
        for name in ("moirai/example-1.json", "msr/throughput/LayerGraphs/bert24_inference.json", "talos/six_ops.json"):
            with self.subTest(name):
                self.output("compare-output", "compare", EXAMPLES / name, "--time-limit", "1s")

    def test_check_and_simulate(self):
        for name, objective in (("moirai/example-1.json", "latency"), ("talos/six_ops.json", "total-completion"),
                                ("msr/throughput/LayerGraphs/bert24_inference.json", "throughput"),
                                ("msr/latency/LayerGraphs/bert24_inference.json", "call-latency")):
            with self.subTest(name):
                path = self.folder / "plan.json"
                code, _, err = run("plan", EXAMPLES / name, "--objective", objective, "--time-limit", "1s", "-o", path, "-q")
                self.assertEqual(code, 0, err)
                self.assertTrue(self.output("check-output", "check", path)["valid"])
                self.output("simulate-output", "simulate", path)
                broken = json.loads(path.read_text())
                broken["value"] = 2 * broken["value"] + 1
                answer = self.output("check-output", "check", self.write("broken.json", broken), "--problem",
                                     EXAMPLES / name, codes=(1,))
                self.assertFalse(answer["valid"])

    def test_plans_on_shared_resources(self):
        problem, plan = self.folder / "cores.json", self.folder / "plan.json"
        cores, streams = ("--shared-cores", "4"), ("--accelerators", "2", "--streams", "2")
        for objective, cluster in (("latency", cores), ("throughput", cores), ("latency", streams), ("call-latency", streams)):
            with self.subTest(objective=objective, cluster=cluster):
                self.assertEqual(run("generate", "layered", "--ops", "12", *cluster, "--objective", objective, "-o",
                                     problem)[0], 0)
                self.expect("problem", json.loads(problem.read_text()))
                self.assertEqual(run("plan", problem, "--planner", "topo", "-q", "-o", plan)[0], 0)
                self.output("simulate-output", "simulate", plan)
                self.output("explain-output", "explain", plan, "--planner", "topo")

    def test_training(self):
        problem, plan, priced = (self.folder / name for name in ("cluster.json", "plan.json", "priced.json"))
        sailor = ("import", EXAMPLES / "sailor", "--format", "sailor")
        flags = ("--model", "OPT-350", "--batch", "512", "--node", "GH-96=2")
        self.assertEqual(run(*sailor, *flags, "-o", problem, "-q")[0], 0)
        self.assertEqual(run(*sailor, *flags, "--price", "GH-96=4", "--minimise", "step-price", "-o", priced, "-q")[0], 0)
        for path in (problem, priced):
            document = self.output("training-plan-output", "plan", path, "--time-limit", "1s", "-o", plan)
            self.assertEqual(self.output("training-simulate-output", "simulate", plan)["value"], document["value"])
            self.assertTrue(self.output("training-check-output", "check", plan)["valid"])
            self.expect("training-problem", json.loads(path.read_text()))
            self.expect("training-plan", json.loads(plan.read_text()))
            cut = json.loads(plan.read_text())
            cut["stages"][0]["layers"][1] -= 1
            self.assertFalse(self.output("training-check-output", "check", self.write("cut.json", cut), codes=(1,))["valid"])
            self.assertGreaterEqual(self.output("training-explain-output", "explain", plan)["busiest_stage"], 1)
            self.output("training-whatif-output", "whatif", path, "--time-limit", "200ms")
        for kind in ("plan", "check", "simulate", "whatif"):
            self.assertNotEqual(complaints(f"training-{kind}-output", {"objective": "step-time", "value": -1}), [])
        made = next((EXAMPLES / "sailor" / "plans").rglob("*.json"))
        code, _, err = run(*sailor, "--plan", made, "-o", plan, "-q")
        self.assertEqual(code, 0, err)
        self.output("training-simulate-output", "simulate", plan)

    def test_check_of_an_expert_split(self):
        self.output("check-output", "check", EXAMPLES / "msr/human-experts/bert24_inference_expert.json", "--problem",
                    EXAMPLES / "msr/throughput/LayerGraphs/bert24_inference.json", codes=(0, 1))

    def test_info(self):
        for name in PUBLISHED[:4] + PUBLISHED[-2:]:
            with self.subTest(name):
                self.output("info-output", "info", EXAMPLES / name)
        self.output("info-output", "info", self.write("every.json", EVERY_KEY))

    def test_planners(self):
        document = self.output("planners-output", "planners")
        self.assertIn("auto", [planner["name"] for planner in document])

    def test_run(self):
        """Exit code 1 too: where others use the machine the measurement is not valid."""
        problem = self.folder / "problem.json"
        self.assertEqual(run("zoo", "make", "tiny-branches", "-o", self.folder, "-q")[0], 0)
        self.assertEqual(run("import", self.folder / "tiny-branches.xml", "-o", problem, "-q")[0], 0)
        for objective in ("latency", "throughput"):
            with self.subTest(objective):
                plan, written, page = (self.folder / f"{objective}{end}" for end in (".json", "-run.json", ".html"))
                planned = self.output("plan-output", "plan", problem, "--objective", objective, "--time-limit", "1s", "-o", plan)
                self.assertEqual("samples_per_second" in planned, objective == "throughput")
                printed = self.output("run-output", "run", plan, "--repeat", "3", "-o", written, codes=(0, 1))
                self.assertEqual(json.loads(written.read_text()), printed)
                self.assertTrue(printed["baselines"])
                self.assertTrue(printed["outputs"]["equal"])
                code, _, err = run("report", plan, "--run", written, "-o", page)
                self.assertEqual((code, err), (0, ""))
                self.assertIn('"run":{"measured":', page.read_text())
        code, _, err = run("report", self.folder / "latency.json", "--run", self.folder / "throughput-run.json", "-o", page)
        self.assertEqual(code, 3)
        self.assertIn("the run was for throughput, the plan is for latency", err)

    def test_run_of_several_models(self):
        for name in ("tiny-branches", "tiny-pair"):
            self.assertEqual(run("zoo", "make", name, "-o", self.folder, "-q")[0], 0)
            self.assertEqual(run("import", self.folder / f"{name}.xml", "-o", self.folder / f"{name}.json", "-q")[0], 0)
        for objective in ("latency", "total-completion", "throughput"):
            with self.subTest(objective):
                plan, written = self.folder / "plan.json", self.folder / "run.json"
                self.assertEqual(run("plan", self.folder / "tiny-branches.json", self.folder / "tiny-pair.json", "--objective",
                                     objective, "--time-limit", "1s", "-o", plan, "-q")[0], 0)
                printed = self.output("run-output", "run", plan, "--repeat", "3", "-o", written, codes=(0, 1))
                self.assertEqual([baseline["name"].split(" on ")[0] for baseline in printed["baselines"]], ["in turn", "all at once"])
                for baseline in printed["baselines"]:
                    self.assertEqual("total_completion" in baseline, objective == "total-completion")
                self.assertEqual(run("report", plan, "--run", written, "-o", self.folder / "page.html")[0], 0)

    def test_tune_of_several_models_has_words_for_several(self):
        names = ("tiny-branches", "tiny-pair")
        for name in names:
            self.assertEqual(run("zoo", "make", name, "-o", self.folder, "-q")[0], 0)
        code, out, err = run("tune", *(self.folder / f"{name}.xml" for name in names), "--rounds", "1", "--repeat", "3",
                             "--time-limit", "200ms")
        self.assertEqual(code, 0, err)
        self.assertRegex(out, "kept: (the models one after the other|the other plan|.* as fast as the models one after the other)")

    def test_run_of_a_trace(self):
        for name in ("tiny-branches", "tiny-pair"):
            self.assertEqual(run("zoo", "make", name, "-o", self.folder, "-q")[0], 0)
            self.assertEqual(run("import", self.folder / f"{name}.xml", "-o", self.folder / f"{name}.json", "-q")[0], 0)
        trace = {"placewright": "trace", "version": 1, "models": ["tiny-branches.json", "tiny-pair.json"],
                 "arrivals": [{"model": "tiny-branches", "time": 0}, {"model": "tiny-pair", "time": 1, "weight": 2},
                              {"model": "tiny-pair", "name": "gone", "time": 2, "cancelled": 2}, {"model": "tiny-branches", "time": 2}]}
        path, lanes = self.write("arrivals.json", trace), self.folder / "lanes.json"
        printed = self.output("run-trace-output", "run", "--trace", path, "--repeat", "2", "--timeline", lanes,
                              codes=(0, 1))
        self.assertEqual([row["method"] for row in printed["methods"]], ["talos", "aswm", "tsam", "shortest", "together"])
        self.assertTrue(printed["outputs"]["equal"])
        for row in printed["methods"]:
            self.assertEqual(len(row["runs"]), 2)
            self.assertGreaterEqual(row["kept"] + row["rejected"], 2)
            for arrival, model in zip(trace["arrivals"], row["models"]):
                self.assertEqual(model["cancelled"], "cancelled" in arrival)
                self.assertEqual(model["predicted"] is None, model["cancelled"] or row["method"] == "together")
                if not model["cancelled"]:
                    self.assertGreaterEqual(model["start"], arrival["time"])
                    self.assertGreaterEqual(model["end"], model["start"])
        self.assertIn("tiny-pair 1", lanes.read_text())
        trace["arrivals"][1]["model"] = "other"
        code, _, err = run("run", "--trace", self.write("wrong.json", trace))
        self.assertEqual(code, 3)
        self.assertIn("/arrivals/1/model: no model is called 'other', there is: tiny-branches, tiny-pair", err)
        self.assertEqual(run("run")[0], 2)
        self.assertEqual(run("run", path, "--trace", path)[0], 2)

    def test_devices_profile_and_tune(self):
        document = self.output("devices-output", "devices")
        self.assertEqual([backend["name"] for backend in document["backends"]], ["openvino"])
        self.assertEqual(run("zoo", "make", "tiny-branches", "-o", self.folder, "-q")[0], 0)
        model = self.folder / "tiny-branches.xml"
        profile = self.output("profile-output", "profile", model, "--repeat", "2")
        self.assertEqual(profile["models"][0]["name"], "tiny-branches")
        tuned = self.output("tune-output", "tune", model, "--rounds", "1", "--repeat", "2", "--time-limit", "200ms")
        self.assertEqual(len(tuned["rounds"]), 1)
        self.assertTrue(all(finalist["uncut"] for finalist in tuned["finalists"][:-1]), tuned)
        self.assertLessEqual(tuned["best"], len(tuned["finalists"]))

    def test_train(self):
        policy = self.folder / "policy.pw"
        arguments = ("train", "--generate", "chain=2", "--ops", "8", "--channels", "4", "--samples", "4", "--episodes", "3", "-o", policy)
        code, _, err = run(*arguments)
        if code == 3 and "libtorch" in err:
            self.skipTest("built without libtorch")
        document = self.output("train-output", *arguments)
        self.assertEqual((document["policy"], document["episodes"], document["problems"]), (str(policy), 3, 2))

    def test_training_files(self):
        problem, plan = self.folder / "cluster.json", self.folder / "step.json"
        self.assertEqual(run("import", EXAMPLES / "sailor", "--format", "sailor", "--model", "OPT-350", "--batch", "64",
                             "--node", "GH-96=1", "--node", "Titan-RTX=1", "--price", "GH-96=4", "-o", problem, "-q")[0], 0)
        self.assertEqual(run("plan", problem, "--time-limit", "1s", "-o", plan, "-q")[0], 0)
        for kind, path, verb in (("training-problem", problem, "plan"), ("training-plan", plan, "check")):
            document = json.loads(path.read_text())
            self.assertEqual(complaints(kind, document), [])
            inner = (lambda made: made) if kind == "training-problem" else (lambda made: made["problem"])
            for change in (
                    lambda made: inner(made).update(batch=0), lambda made: inner(made).update(sizes=[]),
                    lambda made: inner(made)["kinds"][0].pop("memory"), lambda made: inner(made)["pools"][0].update(count=0),
                    lambda made: inner(made)["links"][0].update(curve=[1, 2]), lambda made: inner(made)["sizes"][0].update(degree=1.5),
                    lambda made: inner(made).update(objective="latency"), lambda made: made.update(version=9),
                    lambda made: inner(made).update(constants={"hidden_launches": 2}),
                    lambda made: inner(made)["kinds"][0]["times"][0]["forward"].__setitem__(0, -1)):
                made = copy.deepcopy(document)
                change(made)
                self.assertNotEqual(complaints(kind, made), [])
                self.assertEqual(run(verb, self.write("changed.json", made))[0], 3, made.keys())
        constants = json.loads((EXAMPLES / "sailor" / "constants.json").read_text())
        self.assertEqual(complaints("training-constants", constants), [])
        constants["clusters"][0].pop("kinds")
        self.assertNotEqual(complaints("training-constants", constants), [])

    def test_llama_hosts(self):
        times = {"layer": 0.001, "entry": -1e-4, "rest": 0.002}
        hosts = {"placewright": "llama-hosts", "version": 1, "measured": "llama, 2 layers",
                 "hosts": [{"name": "here", "times": times},
                           {"name": "a", "endpoint": "h:1", "memory": 1e9, "times": {**times, "experts_here": 0.1}}]}
        self.assertEqual(complaints("llama-hosts", hosts), [])
        for change in ({"hosts": []}, {"hosts": [{"endpoint": "h:1"}]}, {"hosts": [{"name": "a", "endpoint": "h"}]},
                       {"version": 2}, {"hosts": [{"name": "a", "memory": -1}]}):
            self.assertNotEqual(complaints("llama-hosts", {**hosts, **change}), [], change)

    def test_zoo(self):
        document = self.output("zoo-output", "zoo", "list")
        self.assertIn("inceptionv3", [model["name"] for model in document])


def places(document, at=()):
    """Every place in a document, as a path of keys."""
    yield at
    if isinstance(document, dict):
        for key, value in document.items():
            yield from places(value, (*at, key))
    elif isinstance(document, list):
        for index, value in enumerate(document):
            yield from places(value, (*at, index))


def mutated(document, path, replacement):
    """A copy with the value at the path replaced, or removed where the replacement is `remove`."""
    result = copy.deepcopy(document)
    holder = result
    for key in path[:-1]:
        holder = holder[key]
    if replacement == "remove":
        del holder[path[-1]]
    else:
        holder[path[-1]] = replacement
    return result


REPLACEMENTS = ["remove", None, -1, 0, 1, 2.5, 1e300, "", "nonsense", True, [], {}, [[]], {"nonsense": 1}]


class Refusals(SchemaTest):
    """Broken documents: refused by the schema and by the program alike."""

    PLAN = {
        "placewright": "plan", "version": 1, "problem": {"path": "model.json"}, "rules": {"memory": "resident"},
        "status": "feasible", "objective": "latency", "planner": "hand", "settings": {"order": "rank"}, "seed": 1,
        "value": 4, "lower_bound": 1, "unit": "none", "seconds": 0,
        "placement": {"a": "gpu0", "b": "cpu0"},
        "schedule": {"ops": [{"op": "a", "device": "gpu0", "start": 0, "end": 1}, {"op": "b", "start": 2, "end": 4}],
                     "transfers": [{"tensor": 0, "leg": "direct", "from": "gpu0", "to": "cpu0", "start": 1, "end": 2}]},
    }
    MODEL = {
        "placewright": "problem", "version": 1, "kinds": [{"name": "gpu"}, {"name": "cpu"}],
        "devices": [{"name": "gpu0", "kind": "gpu"}, {"name": "cpu0", "kind": "cpu"}],
        "interconnect": {"kind": "links", "all": {"latency": 1}},
        "ops": [{"name": "a", "time": [1, 2]}, {"name": "b", "time": [1, 2]}],
        "tensors": [{"name": "x", "from": "a", "to": ["b"]}],
    }

    TIME = {"valid": True, "median": 4.5, "low": 4, "high": 6, "kept": 9, "rejected": 1}
    RUN = {
        "placewright": "run", "version": 1, "objective": "latency", "unit": "ms", "predicted": 4, "measured": TIME,
        "interrupted": False, "models": [{"name": "model", "predicted": 4, "completion": TIME}],
        "devices": [{"name": "gpu0", "segments": 1, "ops": 1, "predicted": 1, "busy": 1}, {"name": "cpu0", "busy": 2}],
        "segments": [{"device": "gpu0", "ops": 1, "first_op": "a", "last_op": "a", "predicted": 1, "measured": TIME},
                     {"device": "cpu0", "ops": 1, "first_op": "b", "last_op": "b", "predicted": 2, "measured": TIME}],
        "transfers": [{"tensor": "a", "from": "gpu0", "to": "cpu0", "bytes": 8, "measured": {**TIME, "watched": False}}],
        "timeline": [{"device": "gpu0", "segment": 1, "sample": 3, "start": 0, "end": 1.5},
                     {"device": "cpu0", "transfer": 1, "sample": 3, "start": 1.5, "end": 2},
                     {"device": "cpu0", "segment": 2, "sample": 3, "start": 2, "end": 4.5}],
        "baselines": [{"name": "2 threads", "latency": TIME, "per_sample": TIME}],
        "outputs": {"equal": True, "largest_difference": 0, "tolerance": 1e-5},
    }

    def read_problem(self, document):
        return run("import", self.write("problem.json", document), "-o", "-", "-q")

    def read_cluster(self, document):
        model = self.write("model.json", {"placewright": "problem", "version": 1,
                                          "ops": [{"name": "a", "time": {"gpu": 1, "npu": 2}}]})
        return run("info", model, "--cluster", self.write("cluster.json", document))

    def read_plan(self, document):
        self.write("model.json", self.MODEL)
        return run("check", self.write("plan.json", document))

    def read_run(self, document):
        self.write("model.json", self.MODEL)
        plan = self.write("plan.json", self.PLAN)
        return run("report", plan, "--run", self.write("run.json", document), "-o", self.folder / "page.html")

    def test_the_whole_ones_are_read(self):
        code, out, err = self.read_run(self.RUN)
        self.assertEqual((code, err), (0, ""))
        self.assertEqual(self.read_problem(EVERY_KEY)[0], 0)
        self.assertEqual(self.read_cluster(CLUSTER)[0], 0)
        code, out, err = self.read_plan(self.PLAN)
        self.assertEqual(code, 0, out + err)

    def refuse(self, schema, read, document):
        self.assertNotEqual(complaints(schema, document), [])
        code, _, err = read(document)
        self.assertEqual(code, 3, f"the schema refuses what the program reads: {json.dumps(document)[:600]}")
        self.assertIn("placewright: error: ", err)

    def test_named_mistakes(self):
        cases = [
            ("problem", self.read_problem, EVERY_KEY, [
                (("version",), 4), (("placewright",), "plan"), (("unit",), "hours"), (("objective",), "speed"),
                (("ops",), "remove"), (("ops", 0, "time"), "remove"), (("ops", 0, "time", 0), -1), (("ops", 0, "memory"), "much"),
                (("rules", "calls_per_device"), 0), (("rules", "training"), "none"), (("devices", 0, "lanes"), 0),
                (("devices", 0, "kind"), "remove"), (("kinds",), "remove"), (("interconnect", "kind"), "bus"),
                (("tensors", 0, "from"), "remove"), (("tensors", 0, "bytes"), -4), (("weights", 0, "bytes"), None),
                (("models", 0, "arrival"), -1), (("devices",), []), (("colocate",), {})]),
            ("cluster", self.read_cluster, CLUSTER, [
                (("placewright",), "problem"), (("version",), "1"), (("devices", 0, "kind"), "remove"),
                (("devices", 0, "memory"), -1), (("devices", 0, "memory"), "8 apples"),
                (("interconnect", "all", "bandwidth"), 0), (("interconnect", "links", 0, "to"), "remove")]),
            ("plan", self.read_plan, self.PLAN, [
                (("version",), 0), (("status",), "good"), (("objective",), "speed"), (("placement",), "remove"),
                (("placement", "a"), 3), (("schedule", "ops", 0, "start"), "remove"), (("schedule", "transfers", 0, "leg"), "up"),
                (("schedule", "transfers", 0, "from"), "remove"), (("seed",), -1), (("problem", "format"), "csv"),
                (("settings", "order"), 1), (("rules", "memory"), "none")]),
            ("run-output", self.read_run, self.RUN, [
                (("version",), 2), (("placewright",), "plan"), (("objective",), "call-latency"), (("unit",), "s"), (("predicted",), None),
                (("measured", "valid"), "yes"), (("measured", "median"), None), (("measured", "kept"), -1), (("devices",), "remove"),
                (("devices", 0, "busy"), "much"), (("segments", 0, "ops"), 0), (("segments", 0, "first_op"), "remove"),
                (("timeline", 0, "segment"), 0), (("timeline", 0, "start"), -1), (("timeline", 0, "sample"), 1.5),
                (("baselines", 0, "latency"), None), (("outputs", "equal"), "remove"), (("models", 0, "name"), 1)]),
        ]
        for schema, read, document, mistakes in cases:
            for path, replacement in mistakes:
                with self.subTest(f"{schema} {path} {replacement}"):
                    self.refuse(schema, read, mutated(document, path, replacement))

    def test_random_mistakes(self):
        """What the program reads without a warning, the schema accepts."""
        random.seed(4)
        refused = 0
        for schema, read, document in (("problem", self.read_problem, EVERY_KEY), ("cluster", self.read_cluster, CLUSTER),
                                       ("plan", self.read_plan, self.PLAN), ("run-output", self.read_run, self.RUN)):
            for path in random.sample([path for path in places(document) if path], 25):
                changed = mutated(document, path, random.choice(REPLACEMENTS))
                found = complaints(schema, changed)
                if only_unknown_keys(schema, changed):
                    continue
                with self.subTest(f"{schema} {path}"):
                    code, _, _ = read(changed)
                    self.assertEqual(code, 3, f"{found}: {json.dumps(changed)[:900]}")
                    refused += 1
        self.assertGreater(refused, 25)


if __name__ == "__main__":
    unittest.main(argv=sys.argv)
