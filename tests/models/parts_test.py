"""Plans as parts for other runtimes: the parts of an ONNX model, run in ONNX Runtime by the manifest, give what the whole
model gives there; those of other models are run in OpenVINO. Usage: parts_test.py [NAME…], the tests to run."""

import json
import os
import pathlib
import sys
import tempfile

import jsonschema
import numpy as np
import onnx
import onnx_models
import onnxruntime
import openvino
import referencing
from models_test import FIXTURES, placewright

onnxruntime.set_default_logger_severity(3)  # the models of opset 7 list their weights as inputs, which it warns of
SCHEMAS = pathlib.Path(__file__).resolve().parents[2] / "docs/schema"
WHOLE_NUMBERS = {"i64": np.int64, "i32": np.int32}


def check_manifest(manifest):
    resources = [(f"https://placewright.dev/schema/{file.name}", json.loads(file.read_text())) for file in SCHEMAS.glob("*.json")]
    registry = referencing.Registry().with_contents(resources)
    schema = json.loads((SCHEMAS / "parts.json").read_text())
    jsonschema.Draft202012Validator(schema, registry=registry).validate(manifest)
    for number, part in enumerate(manifest["parts"], start=1):
        for given in part["inputs"]:
            assert given["from"] == "model" or given["from"] < number, "the order of the parts"
            if given["from"] != "model":
                (output,) = [o for o in manifest["parts"][given["from"] - 1]["outputs"] if o["tensor"] == given["tensor"]]
                assert number in output["to"], output


def model_inputs(manifest):
    """Values for what comes from the model itself, the same for every part that reads it."""
    random = np.random.default_rng(1)
    inputs = {}
    for part in manifest["parts"]:
        for port in part["inputs"]:
            if port["from"] != "model" or port["tensor"] in inputs:
                continue
            if port["type"] in WHOLE_NUMBERS:
                inputs[port["tensor"]] = random.integers(0, 90, port["shape"]).astype(WHOLE_NUMBERS[port["type"]])
            else:
                inputs[port["tensor"]] = random.standard_normal(port["shape"]).astype(np.float32)
    return inputs


def run_parts(folder, manifest, inputs, run_part):
    """The model's outputs, by name."""
    tensors, outputs = dict(inputs), {}
    for part in manifest["parts"]:
        names = [output["tensor"] for output in part["outputs"]]
        given = {port["tensor"]: tensors[port["tensor"]] for port in part["inputs"]}
        for port, value in zip(part["outputs"], run_part(folder / part["file"], names, given)):
            tensors[port["tensor"]] = value
            assert list(value.shape) == port["shape"], port
            if "model_output" in port:
                outputs[port["model_output"]] = value
    return outputs


def in_onnxruntime(file, names, given):
    return onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"]).run(names, given)


def in_openvino(file, names, given):
    compiled = openvino.Core().compile_model(file, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    results = compiled(given)
    return [results[compiled.output(name)] for name in names]


def exported(folder, model, shapes=(), seed=1):
    """The parts of a plan that scatters the ops, so that there are many."""
    plan, parts = folder / "plan.json", folder / f"{model.stem}-parts"
    problem = folder / "problem.json"
    flags = [word for shape in shapes for word in ("--shape", shape)]
    placewright("import", model, *flags, "-o", problem)
    placewright("plan", problem, "--planner", "random", "--option", "samples=1", "--seed", seed, "-o", plan)
    placewright("export", plan, "--to", "parts", "-o", parts)
    manifest = json.loads((parts / "manifest.json").read_text())
    check_manifest(manifest)
    return parts, manifest


def expect_close(found, expected, name):
    assert found.shape == expected.shape and found.dtype == expected.dtype, name
    tolerance = 1e-5 * max(1, np.abs(expected).max(initial=0))
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance, err_msg=name)


def test_onnx_models_in_onnxruntime(folder):
    counts = []
    for name, (model, shapes) in onnx_models.folder_of_models(folder).items():
        parts, manifest = exported(folder, model, shapes)
        counts.append(len(manifest["parts"]))
        assert all(part["file"].endswith(".onnx") for part in manifest["parts"]), manifest
        inputs = model_inputs(manifest)
        outputs = run_parts(parts, manifest, inputs, in_onnxruntime)
        whole = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
        names = [output.name for output in whole.get_outputs()]
        assert sorted(outputs) == sorted(names), name
        for output, expected in zip(names, whole.run(names, inputs)):
            expect_close(outputs[output], expected, f"{name}: {output}")
    assert max(counts) > 2, counts  # or nothing was cut


def annotated(folder, model, shapes, target):
    """The model as '--to onnxruntime' writes it for a plan that scatters the ops, and the session's settings."""
    cluster, plan = folder / "cluster.json", folder / "plan.json"
    devices = [{"name": "cuda:0", "kind": "T4"}, {"name": "cpu", "kind": "Xeon-Sapphire-Rapids-32"}]
    links = {"kind": "links", "all": "PCIe-4.0-x16"}
    cluster.write_text(json.dumps({"placewright": "cluster", "version": 1, "devices": devices, "interconnect": links}))
    flags = [word for shape in shapes for word in ("--shape", shape)]
    random = ["--planner", "random", "--option", "samples=1"]
    placewright("plan", model, *flags, "--cluster", cluster, *random, "-o", plan)
    placewright("export", plan, "--to", "onnxruntime", "-o", target)
    return onnx.load(target), json.loads(target.with_suffix(".session.json").read_text())


def test_annotated_models_in_onnxruntime(folder):
    """Both devices are named in the file, and it computes what it did. Only the CPU is here to run on."""
    for name, (model, shapes) in onnx_models.folder_of_models(folder).items():
        target = model.with_name(f"{model.stem}-annotated.onnx")
        written, settings = annotated(folder, model, shapes, target)
        labels = {entry.value for node in written.graph.node for entry in node.metadata_props if entry.key == "layer_ann"}
        rules = settings["session.layer_assignment_settings"].split("; ")
        assert labels <= {"cpu", "gpu:0"} and sorted(rules) == sorted(f"{label}(={label})" for label in labels), name
        for node in written.graph.node:
            del node.metadata_props[:]
        assert written.graph == onnx.load(model).graph, name  # nothing else has changed
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4  # it says that there is no GPU here
        for key, value in settings.items():
            options.add_session_config_entry(key, value)
        session = onnxruntime.InferenceSession(target, options, providers=["CPUExecutionProvider"])
        assert session.get_outputs(), name


def test_other_models_in_openvino(folder):
    placewright("zoo", "make", "tiny-branches", "-o", folder)
    for model in (folder / "tiny-branches.xml", FIXTURES / "classifier.tflite"):
        parts, manifest = exported(folder, model)
        assert all(part["file"].endswith(".xml") for part in manifest["parts"]), manifest
        inputs = model_inputs(manifest)
        outputs = run_parts(parts, manifest, inputs, in_openvino)
        whole = openvino.Core().compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
        expected = whole({port: inputs[port.any_name] for port in whole.inputs})
        assert len(outputs) == len(whole.outputs), outputs.keys()
        for name, value in outputs.items():
            expect_close(value, expected[whole.output(name)], f"{model.name}: {name}")


def test_several_models_have_folders(folder):
    models = [onnx_models.convolutional(folder / f"{name}.onnx", opset=13, seed=seed) for seed, name in enumerate("ab")]
    problems = []
    for model in models:
        problems.append(model.with_suffix(".json"))
        placewright("import", model, "-o", problems[-1])
    plan, parts = folder / "plan.json", folder / "parts"
    placewright("plan", *problems, "--objective", "total-completion", "--planner", "heft", "-o", plan)
    placewright("export", plan, "--to", "parts", "-o", parts)
    manifest = json.loads((parts / "manifest.json").read_text())
    assert {part["file"].split("/")[0] for part in manifest["parts"]} == {"a", "b"}
    for part in manifest["parts"]:
        assert (parts / part["file"]).is_file()


def test_a_folder_is_needed(folder):
    placewright("zoo", "make", "tiny-branches", "-o", folder)
    problem, plan = folder / "problem.json", folder / "plan.json"
    placewright("import", folder / "tiny-branches.xml", "-o", problem)
    placewright("plan", problem, "--planner", "heft", "-o", plan)
    assert "needs -o FOLDER" in placewright("export", plan, "--to", "parts", code=2)


def main():
    tests = {name: test for name, test in globals().items() if name.startswith("test_")}
    for name in sys.argv[1:] or tests:
        with tempfile.TemporaryDirectory() as folder:
            os.environ["XDG_CACHE_HOME"] = folder
            tests[name](pathlib.Path(folder))
        print(f"{name}: ok")


if __name__ == "__main__":
    main()
