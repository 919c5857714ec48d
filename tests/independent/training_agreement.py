"""Compares the program on training problems with training.py, and its predictions with runs that were really made.

usage: training_agreement.py [PROBLEMS]   (PLACEWRIGHT_PROGRAM names the program)
"""

import copy
import json
import math
import os
import pathlib
import random
import shlex
import statistics
import subprocess
import sys
import tempfile
import unittest

import training

PROGRAM = os.environ["PLACEWRIGHT_PROGRAM"]
ROOT = pathlib.Path(__file__).resolve().parents[2]
SAILOR = ROOT / "examples" / "sailor"
PROBLEMS = int(sys.argv.pop(1)) if len(sys.argv) > 1 and sys.argv[1].isdigit() else 40


def run(*arguments):
    done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, timeout=120, check=False)
    return done.returncode, done.stdout, done.stderr


def random_problem(dice, most_layers=5):
    layers = dice.randint(1, most_layers)
    degrees = sorted(dice.sample([1, 2, 4], dice.randint(1, 2)))
    micro_batches = sorted(dice.sample([1, 2, 3, 4], dice.randint(1, 3)))

    def numbers(most, least=0.0):
        return [round(dice.uniform(least, most), 3) for _ in range(layers)]

    kinds = [{"name": name, "memory": dice.choice([30e9, 60e9, 200e9]), "price": dice.choice([0, 1, 3.5]),
              "times": [{"degree": degree, "micro_batch": b, "forward": numbers(2 * b / degree),
                         "backward": numbers(4 * b / degree), "update": numbers(0.5)}
                        for degree in degrees for b in micro_batches]}
             for name in ["fast", "slow"][:dice.randint(1, 2)]]
    pools = [{"kind": kind["name"], "zone": zone, "gpus": dice.choice([1, 2, 4]), "count": dice.randint(1, 2)}
             for kind in kinds for zone in ["", "east"][:dice.randint(1, 2)]]
    names = [training.pool_name(pool) for pool in pools]
    links = [{"from": one, "to": other, "gpus": dice.choice([1, 2, 4]),
              "curve": [round(dice.uniform(-0.001, 0.01), 4), round(dice.uniform(0, 0.5), 3), dice.uniform(0.2, 3)],
              "best": dice.choice([1e9, 3e9, 1e10])}
             for i, one in enumerate(names) for other in names[i:] for _ in range(dice.randint(1, 2))]
    return {"placewright": "training-problem", "version": 1, "name": "random",
            "objective": dice.choice(["step-time", "step-price"]), "batch": dice.choice([4, 6, 12]),
            "sizes": [{"degree": degree, "parameters": numbers(1e9 / degree), "activations": numbers(2e9),
                       "outputs": [dice.choice([0, 1e5, 3e7, 4e9]) for _ in range(layers)]} for degree in degrees],
            "kinds": kinds, "pools": pools, "links": links,
            "constants": {"hidden_launches": dice.choice([0, 0.25]), "all_reduce_efficiency": dice.choice([1, 0.4]),
                          "bytes_per_parameter": 20, "activation_factor": dice.choice([1, 1.1]),
                          "framework": dice.choice([0, 4e9]), "framework_per_gpu": dice.choice([0, 5e8])}}


def random_plan(dice, problem):
    """A plan of the right form; its groups may not fit."""
    sizes = [b for b in {entry["micro_batch"] for entry in problem.document["kinds"][0]["times"]}
             if problem.batch % b == 0]
    if not sizes:
        return None
    micro_batch = dice.choice(sorted(sizes))
    micro_batches = problem.batch // micro_batch
    groups = training.groups_of(problem, micro_batch)
    if not groups:
        return None
    count = dice.randint(1, problem.layers)
    stages = []
    for layers in dice.choice(list(training.cuts(problem.layers, count))):
        share = dice.choice(list(training.shares(micro_batches, dice.randint(1, min(3, micro_batches)))))
        replicas = []
        for part in share:
            pool, degree = dice.choice(groups)
            replicas.append({"pool": pool, "degree": degree, "micro_batches": part})
        stages.append({"layers": list(layers), "replicas": replicas})
    return {"micro_batch": micro_batch, "stages": stages}


class TrainingAgreement(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)

    def written(self, document, plan, value):
        problem = {key: content for key, content in document.items() if key not in ("placewright", "version")}
        path = self.folder / "plan.json"
        path.write_text(json.dumps({"placewright": "training-plan", "version": 1, "problem": problem, "value": value,
                                    **plan}))
        return path

    def test_costs_and_rules_of_random_plans(self):
        dice = random.Random(36)
        valid = refused = 0
        for _ in range(PROBLEMS):
            document = random_problem(dice)
            problem = training.TrainingProblem(document)
            plan = random_plan(dice, problem)
            if plan is None:
                continue
            seconds, price, memory, fits = problem.cost(plan)
            value = seconds if problem.objective == "step-time" else price
            path = self.written(document, plan, value)
            code, printed, _ = run("check", path, "--json")
            may = fits and problem.packs(plan)
            self.assertEqual((code, json.loads(printed)["valid"]), (0, True) if may else (1, False), printed)
            valid += may
            refused += not may
            shown = json.loads(run("simulate", path, "--json", "--quiet")[1])
            self.assertTrue(math.isclose(shown["seconds"], seconds, rel_tol=1e-9), (shown, seconds))
            self.assertTrue(math.isclose(shown["price"], price, rel_tol=1e-9, abs_tol=1e-12), (shown, price))
            self.assertTrue(math.isclose(shown["memory"], memory, rel_tol=1e-9), (shown, memory))
            broken = copy.deepcopy(plan)
            broken["stages"][0]["replicas"][0]["micro_batches"] += 1
            self.assertEqual(run("check", self.written(document, broken, value))[0], 1)
            if value > 0:
                self.assertEqual(run("check", self.written(document, plan, value * 1.001))[0], 1)
        self.assertGreater(valid, PROBLEMS // 10)
        self.assertGreater(refused, PROBLEMS // 20)

    def test_plans_are_the_best_of_all(self):
        dice = random.Random(8)
        planned = impossible = 0
        for _ in range(PROBLEMS):
            document = random_problem(dice, most_layers=3)
            document["batch"] = dice.choice([2, 3, 4])
            while sum(pool["gpus"] * pool["count"] for pool in document["pools"]) > 4:
                for pool in document["pools"]:
                    pool["gpus"], pool["count"] = dice.choice([1, 2, 4]), 1
                if len(document["pools"]) > 3:
                    document["pools"].pop()
            names = {training.pool_name(pool) for pool in document["pools"]}
            document["links"] = [link for link in document["links"] if {link["from"], link["to"]} <= names]
            best = training.optimum(training.TrainingProblem(document))
            path = self.folder / "problem.json"
            path.write_text(json.dumps(document))
            code, printed, _ = run("plan", path, "--json", "-o", self.folder / "best.json")
            if math.isinf(best):
                self.assertEqual(code, 1)
                impossible += 1
                continue
            found = json.loads(printed)
            self.assertTrue(math.isclose(found["value"], best, rel_tol=1e-9, abs_tol=1e-12), (found, best, document))
            self.assertEqual(found["status"], "optimal")
            self.assertEqual(run("check", self.folder / "best.json")[0], 0)
            planned += 1
        self.assertGreater(planned, PROBLEMS // 3)
        self.assertGreater(impossible, 0)

    def test_bad_files_are_refused_with_their_place(self):
        document = random_problem(random.Random(1))
        plan = {"micro_batch": 1, "stages": [{"layers": [0, 99], "replicas": []}]}
        code, _, told = run("check", self.written(document, plan, 1))
        self.assertEqual(code, 3)
        self.assertIn("/stages/0/layers/1", told)
        short = copy.deepcopy(document)
        short["kinds"][0]["times"][0]["forward"].append(1)
        code, _, told = run("check", self.written(short, plan, 1))
        self.assertEqual(code, 3)
        self.assertIn("/problem/kinds/0/times/0/forward", told)


class Exports(unittest.TestCase):
    def test_a_uniform_plan_is_written_for_each_tool(self):
        with tempfile.TemporaryDirectory() as folder:
            ours = pathlib.Path(folder) / "plan.json"
            published = SAILOR / "plans" / "clariden-OPT-350-N8-N8_D4.json"
            self.assertEqual(run("import", SAILOR, "--format", "sailor", "--plan", published, "-o", ours)[0], 0)
            code, printed, _ = run("export", ours, "--to", "megatron")
            self.assertEqual(code, 0)
            self.assertIn('--pipeline-model-parallel-layout "E' + 11 * "t" + "|" + 13 * "t" + 'L"', printed)
            self.assertIn("--global-batch-size 512", printed)
            parts = json.loads(run("export", ours, "--to", "deepspeed")[1])
            self.assertEqual(parts["parts"], [0, 12, 26])
            self.assertEqual(parts["train_batch_size"], parts["train_micro_batch_size_per_gpu"]
                             * parts["gradient_accumulation_steps"] * parts["data_parallel"])
            self.assertIn("VLLM_PP_LAYER_PARTITION=11,13 ", run("export", ours, "--to", "vllm")[1])
            self.assertIn("SGLANG_PP_LAYER_PARTITION=11,13 ", run("export", ours, "--to", "sglang")[1])
            split = json.loads(run("export", ours, "--to", "torch-pipelining")[1])
            self.assertEqual(split["split_spec"], {"layers.11": "beginning"})
            self.assertEqual(split["ranks"], [list(range(16)), list(range(16, 32))])
            self.assertEqual(split["micro_batch"] * split["n_microbatches"] * split["data_parallel"], 512)
            code, _, told = run("export", ours, "--to", "llama.cpp")
            self.assertEqual(code, 3)
            self.assertIn("stages have 4 replicas of 4 GPUs; llama.cpp gives a stage one device", told)
            self.assertEqual(run("export", ours, "--to", "trace")[0], 2)
            document = json.loads(ours.read_text())
            document["stages"][0]["replicas"][0]["micro_batches"] += 1
            document["stages"][0]["replicas"][1]["micro_batches"] -= 1
            document["value"] = training.TrainingProblem(document["problem"]).cost(document)[0]
            ours.write_text(json.dumps(document))
            code, _, told = run("export", ours, "--to", "vllm")
            self.assertEqual(code, 3)
            self.assertIn("micro-batches; the tool gives each as many", told)

    def test_a_chain_of_single_gpus_is_written_for_llama_cpp(self):
        with tempfile.TemporaryDirectory() as folder:
            problem, plan = pathlib.Path(folder) / "problem.json", pathlib.Path(folder) / "plan.json"
            self.assertEqual(run("import", SAILOR, "--format", "sailor", "--model", "OPT-350", "--batch", 8,
                                 "--node", "GH-96=1", "-o", problem)[0], 0)
            document = json.loads(problem.read_text())
            replica = [{"pool": "GH-96@us-central1-a", "degree": 1, "micro_batches": 8}]
            answer = {"micro_batch": 1, "stages": [{"layers": [0, 11], "replicas": replica},
                                                   {"layers": [11, 26], "replicas": replica}]}
            value = training.TrainingProblem(document).cost(answer)[0]
            plan.write_text(json.dumps({"placewright": "training-plan", "version": 1, "value": value, **answer,
                                        "problem": document}))
            code, printed, told = run("export", plan, "--to", "llama.cpp")
            self.assertEqual(code, 0, told)
            self.assertEqual(printed, "llama-server -m MODEL.gguf --rpc STAGE1:50052,STAGE2:50052 "
                                      "-dev RPC0,RPC1 -ngl 25 -ts 10,15\n")

    def test_megatron_reads_its_layout(self):
        """Megatron-LM's own parser, in a process of its own with torch."""
        with tempfile.TemporaryDirectory() as folder:
            ours = pathlib.Path(folder) / "plan.json"
            published = SAILOR / "plans" / "clariden-OPT-350-N8-N8_D4.json"
            self.assertEqual(run("import", SAILOR, "--format", "sailor", "--plan", published, "-o", ours)[0], 0)
            words = shlex.split(run("export", ours, "--to", "megatron")[1])
        layout = words[words.index("--pipeline-model-parallel-layout") + 1]
        stages = words[words.index("--pipeline-model-parallel-size") + 1]
        code = ("import sys\n"
                "from megatron.core.transformer.pipeline_parallel_layer_layout import PipelineParallelLayerLayout\n"
                "layout = PipelineParallelLayerLayout.from_str(sys.argv[1], int(sys.argv[2]))\n"
                "layout.validate_layer_layout(24, 0)\n"
                "print(layout.pretty_repr())\n")
        found = subprocess.run([sys.executable, "-W", "ignore", "-c", code, layout, stages], capture_output=True, text=True,
                               env={**os.environ, "PYTHONPATH": str(ROOT / ".deps/torch")}, check=False)
        if "No module named" in found.stderr:
            self.skipTest(found.stderr.strip().splitlines()[-1])
        self.assertEqual(found.returncode, 0, found.stderr)
        self.assertRegex(found.stdout, r"embedding,decoder\*11\s")
        self.assertIn("decoder*13,loss", found.stdout)


class Stories(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.plan = pathlib.Path(holder.name) / "plan.json"
        published = SAILOR / "plans" / "clariden-OPT-350-N8-N8_D4.json"
        self.assertEqual(run("import", SAILOR, "--format", "sailor", "--plan", published, "-o", self.plan)[0], 0)
        self.document = json.loads(self.plan.read_text())

    def test_explain_says_what_faster_parts_bring(self):
        code, printed, told = run("explain", self.plan, "--json", "--step", "25")
        self.assertEqual(code, 0, told)
        found = json.loads(printed)
        self.assertTrue(math.isclose(found["seconds"], found["fill"] + found["steady"] + found["update"] + found["all_reduce"]))
        faster = copy.deepcopy(self.document["problem"])
        for times in faster["kinds"][0]["times"]:
            for key in ("forward", "backward", "update"):
                times[key] = [seconds / 1.25 for seconds in times[key]]
        links = copy.deepcopy(self.document["problem"])
        for link in links["links"]:
            link["curve"] = [number * 1.25 for number in link["curve"]]
            link["best"] *= 1.25
        for problem, word in ((faster, "GH-96 25 % faster"), (links, "network inside GH-96@us-central1-a 25 % faster")):
            expected = training.TrainingProblem(problem).cost(self.document)[0]
            gain = next(gain for gain in found["gains"] if gain["what"] == word)
            self.assertTrue(math.isclose(gain["seconds"], expected, rel_tol=1e-9), (gain, expected))
        self.assertEqual([gain["gain"] for gain in found["gains"]], sorted((g["gain"] for g in found["gains"]), reverse=True))
        self.assertLessEqual(found["work"], 1)
        self.assertIn("is the busiest", run("explain", self.plan)[1])
        self.assertEqual(run("explain", self.plan, "--op", "x")[0], 2)

    def test_report_draws_every_stage(self):
        page = self.plan.with_suffix(".html")
        code, printed, told = run("report", self.plan, "-o", page)
        self.assertEqual(code, 0, told)
        self.assertIn("a step of 2 stages", printed)
        text = page.read_text()
        for part in ("stage 1: 4 x 4 GH-96@us-central1-a", "stage 2: 4 x 4", "all-reduce: ", "<svg"):
            self.assertIn(part, text)
        self.assertNotIn("http", text.replace("http://www.w3.org/2000/svg", ""))
        self.assertEqual(run("report", self.plan, self.plan, "-o", page)[0], 2)
        self.document["stages"][0]["replicas"][0]["degree"] = 3
        self.plan.write_text(json.dumps(self.document))
        self.assertEqual(run("report", self.plan, "-o", page)[0], 1)


class Fit(unittest.TestCase):
    def test_constants_are_fitted_and_kept(self):
        with tempfile.TemporaryDirectory() as folder:
            kept = pathlib.Path(folder) / "constants.json"
            plans = [SAILOR / "plans" / f"clariden-OPT-350-{name}.json" for name in ("N2-N2_D1", "N2-N2_D2")]
            done = subprocess.run([SAILOR / "fit", SAILOR, *plans, "--write", kept], capture_output=True, text=True, check=False,
                                  env={**os.environ, "PLACEWRIGHT_PROGRAM": PROGRAM})
            self.assertEqual(done.returncode, 0, done.stderr)
            errors = {line.split("|")[1].strip(): float(line.split("|")[2].strip("% ")) for line in done.stdout.splitlines()[2:]}
            self.assertLessEqual(errors["step time, fitted"], errors["step time, without constants"])
            self.assertLessEqual(errors["memory of GH-96, fitted"], errors["memory of GH-96, without constants"])
            self.assertIn("step time, left out", errors)
            ours = pathlib.Path(folder) / "plan.json"
            self.assertEqual(run("import", SAILOR, "--format", "sailor", "--plan", plans[0], "--constants", kept, "-o", ours)[0], 0)
            constants = json.loads(kept.read_text())["clusters"][0]["constants"]
            self.assertEqual(json.loads(ours.read_text())["problem"]["constants"], constants)


class OtherClusters(unittest.TestCase):
    def test_a_slow_node_is_left_out_and_more_nodes_are_never_worse(self):
        with tempfile.TemporaryDirectory() as folder:
            problem = pathlib.Path(folder) / "problem.json"
            chart = pathlib.Path(folder) / "prices.svg"
            self.assertEqual(run("import", SAILOR, "--format", "sailor", "--model", "OPT-350", "--batch", 256,
                                 "--node", "GH-96=2", "--node", "Titan-RTX=1", "--price", "GH-96=4", "--price",
                                 "Titan-RTX=0.5", "-o", problem)[0], 0)
            code, printed, _ = run("whatif", problem, "--json", "--chart", chart)
            self.assertEqual(code, 0)
            found = {variant["cluster"]: variant for variant in json.loads(printed)["variants"]}
            whole = found["as it is"]
            self.assertEqual(found["without Titan-RTX@us-central1-a"]["seconds"], whole["seconds"])
            self.assertGreater(found["without GH-96@us-central1-a"]["seconds"], 5 * whole["seconds"])
            for variant in found.values():
                if all(more >= now for more, now in zip(variant["nodes"], whole["nodes"], strict=True)):
                    self.assertLessEqual(variant["seconds"], whole["seconds"])
            self.assertIn("<svg", chart.read_text())


class PublishedPlans(unittest.TestCase):
    def predictions(self, *arguments):
        done = subprocess.run([SAILOR / "predict", SAILOR, *map(str, arguments)], capture_output=True, text=True,
                              timeout=300, check=False)
        return [json.loads(line) for line in done.stdout.splitlines()], done.stderr

    def test_predictions_are_near_what_was_measured(self):
        lines, _ = self.predictions(*sorted((SAILOR / "plans").glob("*.json")))
        self.assertEqual(len(lines), 17)
        steps = sorted(abs(line["predicted"] / line["measured"] - 1) for line in lines)
        self.assertLess(statistics.median(steps), 0.05)
        self.assertLess(statistics.quantiles(steps, n=10, method="inclusive")[-1], 0.15)
        memory = [abs(line["predicted_memory"] / line["measured_memory"] - 1) for line in lines
                  if "clariden" in line["file"]]
        self.assertLess(statistics.median(memory), 0.05)
        self.assertLess(max(memory), 0.15)

    def test_what_the_profiles_lack_is_estimated_and_told(self):
        plan = json.loads((SAILOR / "plans" / "clariden-OPT-350-N8-N8_D2.json").read_text())
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "other.json"
            plan["mbs"], plan["gbs"] = 6, 384
            plan["pipeline_list"][0]["tmp_per_stage"][1][0] = [[["A100-40", 3, "us-central1-a"]], 3]
            path.write_text(json.dumps(plan))
            lines, told = self.predictions(path)
        self.assertEqual(len(lines), 1)
        self.assertTrue(math.isfinite(lines[0]["predicted"]))
        self.assertIn("with micro-batches of 6: estimated", told)
        self.assertIn("on 3 x A100-40: estimated", told)
        self.assertIn("no constants for these GPUs", told)


if __name__ == "__main__":
    unittest.main()
