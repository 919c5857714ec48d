"""Models as people have them, from file to a run with equal outputs.

The ONNX models are made here (onnx_models.py). Usage: models_test.py [NAME…], the tests to run.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

import onnx
import onnx_models

FIXTURES = pathlib.Path(__file__).resolve().parent / "fixtures"  # made by make_fixtures.py
PROGRAM = os.environ["PLACEWRIGHT_PROGRAM"]


def placewright(*arguments, code=0):
    done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, timeout=300)
    if done.returncode != code:
        raise AssertionError(f"{arguments}: exit code {done.returncode}, expected {code}\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def op_names(problem):
    return [op["name"] for op in json.loads(problem.read_text())["ops"]]


def expect_equal_outputs(plan):
    """Runs a plan. Times do not matter here: a busy machine (exit code 1) is no failure of this test."""
    arguments = [PROGRAM, "run", str(plan), "--repeat", "3", "--no-baselines", "--json"]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=300)
    assert done.returncode in (0, 1), done.stderr
    assert json.loads(done.stdout)["outputs"]["equal"], done.stdout


def test_names_depend_on_the_file_alone(folder):
    """Whatever was read before, in this process or another, an op is called the same."""
    files = [
        onnx_models.convolutional(folder / f"{name}.onnx", opset=13, seed=seed) for seed, name in enumerate("abc")
    ]
    alone = {}
    for file in files:
        problem = folder / f"{file.stem}.json"
        placewright("import", file, "--device", f"cpu:{min(os.sched_getaffinity(0))}", "-o", problem)
        alone[file.stem] = op_names(problem)
    assert alone["a"] == alone["b"] == alone["c"]  # they differ in their weights only
    for order in (files, files[::-1]):
        problem, plan = folder / "all.json", folder / "all-plan.json"
        placewright("profile", *order, "--repeat", 1, "-o", problem)
        expected = [f"{file.stem}/{name}" for file in order for name in alone[file.stem]]
        assert op_names(problem) == expected, f"{op_names(problem)}\n{expected}"
    placewright("plan", problem, "--planner", "heft", "-o", plan)
    expect_equal_outputs(plan)


SHAPES = ["inputs:ids=1x7", "inputs:mask=1x7", "inputs:vector=1x4", "open:image=2x3x16x16"]


def test_open_shapes_are_chosen_and_given_by_model(folder):
    models = [onnx_models.several_inputs(folder / "inputs.onnx"), onnx_models.open_shape(folder / "open.onnx")]
    problem = folder / "both.json"
    message = placewright("profile", *models, "--repeat", 1, "-o", problem)
    usual = ["ids=1x128", "mask=1x128", "vector=1x4", "image=1x3x16x16"]
    assert "'inputs:ids' (?x?) is taken as 1x128" in message, message
    for shape in usual:
        assert f":{shape}'" in message, message
    sources = [shape for model in json.loads(problem.read_text())["models"] for shape in model["source"]["shapes"]]
    assert sources == usual, sources
    assert "taken as" not in placewright("import", models[1], "-q", "-o", problem)
    message = placewright("profile", *models, "--shape", "ids=1x7", "-o", problem, code=2)
    assert "which model" in message and "inputs, open" in message, message
    flags = [word for shape in SHAPES for word in ("--shape", shape)]
    placewright("profile", *models, *flags, "--repeat", 1, "-o", problem)
    sources = [model["source"]["shapes"] for model in json.loads(problem.read_text())["models"]]
    assert sources == [["ids=1x7", "mask=1x7", "vector=1x4"], ["image=2x3x16x16"]], sources


def test_info_lists_inputs_and_outputs(folder):
    model = onnx_models.several_inputs(folder / "inputs.onnx")
    (described,) = json.loads(placewright("info", model, "--json"))["models"]
    assert described["inputs"][0] == {"name": "ids", "type": "i64", "shape": [None, None]}, described
    assert described["inputs"][2] == {"name": "vector", "type": "f32", "shape": [None, 4]}, described
    assert [output["shape"] for output in described["outputs"]] == [[None, 4]], described
    assert "ids     i64   ?x?" in placewright("info", model)


def test_problems_profiled_one_by_one_are_planned_together(folder):
    problems = []
    for seed, name in enumerate("ab"):
        model = onnx_models.convolutional(folder / f"{name}.onnx", opset=17, seed=seed)
        problems.append(folder / f"{name}.json")
        cores = sorted(os.sched_getaffinity(0))[:2]
        devices = [argument for core in cores for argument in ("--device", f"cpu:{core}")]
        placewright("profile", model, "--repeat", 2, *devices, "-o", problems[-1])
    plan = folder / "plan.json"
    placewright("plan", *problems, "--objective", "total-completion", "--planner", "heft", "-o", plan)
    assert "the means of what the 2 joined problems state" in plan.read_text()
    expect_equal_outputs(plan)


def test_every_model_from_file_to_run_in_one_plan_and_one_run(folder):
    os.environ["XDG_CACHE_HOME"] = str(folder / "cache")
    models = onnx_models.folder_of_models(folder)
    models |= {name: (FIXTURES / name, []) for name in ("saved_model", "classifier.tflite")}
    for name, (model, shapes) in models.items():
        plan = folder / f"{name}-plan.json"
        flags = [word for shape in shapes for word in ("--shape", shape)]
        placewright("plan", model, *flags, "--planner", "heft", "-o", plan)
        expect_equal_outputs(plan)


def test_three_models_together_in_both_orders(folder):
    os.environ["XDG_CACHE_HOME"] = str(folder / "cache")
    models = [
        onnx_models.convolutional(folder / "image.onnx", opset=7),
        onnx_models.attention(folder / "text.onnx"),
        onnx_models.quantised(folder / "quantised.onnx"),
    ]
    for order in (models, models[::-1]):
        plan = folder / "plan.json"
        placewright("plan", *order, "--planner", "heft", "-o", plan)
        expect_equal_outputs(plan)


def test_a_quantized_model_stays_as_it_is(folder):
    """Whole and cut, at the default precision and in f32: what the file has quantized is quantized in every part."""
    model = onnx_models.quantized(folder / "quantized.onnx")
    for precision in ("default", "f32"):
        problem, plan, parts = folder / f"{precision}.json", folder / f"{precision}-plan.json", folder / precision
        placewright("import", model, "--precision", precision, "-o", problem)
        placewright("plan", problem, "--planner", "random", "--option", "samples=1", "--seed", 3, "-o", plan)
        expect_equal_outputs(plan)
        placewright("export", plan, "--to", "parts", "-o", parts)
        graphs = [onnx.load(part).graph for part in parts.glob("*.onnx")]
        assert len(graphs) > 1, "the plan cuts nothing"
        for graph in graphs:
            types = [node.op_type for node in graph.node]
            if "Conv" not in types and "Gemm" not in types:
                continue
            assert "QuantizeLinear" in types and "DequantizeLinear" in types, types
            assert any(weight.data_type == onnx.TensorProto.INT8 and len(weight.dims) > 1 for weight in graph.initializer), types


def main():
    tests = {name: test for name, test in globals().items() if name.startswith("test_")}
    for name in sys.argv[1:] or tests:
        with tempfile.TemporaryDirectory() as folder:
            tests[name](pathlib.Path(folder))
        print(f"{name}: ok")


if __name__ == "__main__":
    main()
