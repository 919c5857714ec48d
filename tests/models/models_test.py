"""Models as people have them, from file to a run with equal outputs.

The ONNX models are made here (onnx_models.py). Usage: models_test.py [NAME…], the tests to run.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

import onnx_models

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
        placewright("import", file, "--device", "cpu:0", "-o", problem)
        alone[file.stem] = op_names(problem)
    assert alone["a"] == alone["b"] == alone["c"]  # they differ in their weights only
    for order in (files, files[::-1]):
        problem, plan = folder / "all.json", folder / "all-plan.json"
        placewright("profile", *order, "--repeat", 1, "-o", problem)
        expected = [f"{file.stem}/{name}" for file in order for name in alone[file.stem]]
        assert op_names(problem) == expected, f"{op_names(problem)}\n{expected}"
    placewright("plan", problem, "--planner", "heft", "-o", plan)
    expect_equal_outputs(plan)


def main():
    tests = {name: test for name, test in globals().items() if name.startswith("test_")}
    for name in sys.argv[1:] or tests:
        with tempfile.TemporaryDirectory() as folder:
            tests[name](pathlib.Path(folder))
        print(f"{name}: ok")


if __name__ == "__main__":
    main()
