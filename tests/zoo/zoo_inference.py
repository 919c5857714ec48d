"""Models of the zoo, as the program makes them, in the real OpenVINO: they load, are what the index says, and infer; outputs
are finite, neither zero nor constant, and depend on the input. Arguments: names, or "others NAME…" for all but those."""

import json
import os
import subprocess
import sys
import tempfile

import numpy
import openvino

PROGRAM = os.environ["PLACEWRIGHT_PROGRAM"]
NO_OPS = ("Constant", "Parameter", "Result")


def printed(*arguments):
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=300, check=True).stdout


def input_values(entry, seed):
    random = numpy.random.default_rng(seed)
    return [random.standard_normal(asked["shape"], dtype=numpy.float32) if asked["type"] == "f32"
            else random.integers(asked["least"], asked["most"] + 1, asked["shape"]) for asked in entry["inputs"]]


def check_graph(entry, model):
    ops = [node for node in model.get_ops() if node.get_type_name() not in NO_OPS]
    assert len(ops) == entry["ops"], len(ops)
    names = {node.get_friendly_name() for node in model.get_ops()}
    assert len(names) == len(model.get_ops()), "names are not unique"
    for ports, described in ((model.inputs, entry["inputs"]), (model.outputs, entry["outputs"])):
        found = [(port.any_name, port.element_type.to_string(), list(port.shape)) for port in ports]
        assert found == [(tensor["name"], tensor["type"], tensor["shape"]) for tensor in described], found


def check_outputs(entry, one, other):
    """`one` and `other`: the outputs for two inputs."""
    for described, values, changed in zip(entry["outputs"], one, other, strict=True):
        name = described["name"]
        assert numpy.isfinite(values).all(), f"{name} is not finite"
        largest = float(numpy.abs(values).max())
        assert 1e-3 < largest < 1e3, f"{name}: largest value {largest}"
        spread = float(values.std()) / largest
        assert spread > 0.02, f"{name} is nearly constant: {spread}"
        effect = float(numpy.abs(values - changed).max()) / largest
        assert effect > 1e-3, f"{name} hardly depends on the input: {effect}"
        print(f"  {name}: largest {largest:.3g}, spread {spread:.3g}, effect of the input {effect:.3g}", flush=True)


def check(entry, core, folder):
    printed("zoo", "make", entry["name"], "-o", folder)
    model = core.read_model(f"{folder}/{entry['name']}.xml")
    print(f"{entry['name']}: {entry['ops']} ops", flush=True)
    check_graph(entry, model)
    compiled = core.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    one, other = ([compiled(input_values(entry, seed))[port].copy() for port in compiled.outputs] for seed in (1, 2))
    check_outputs(entry, one, other)


def main():
    index = json.loads(printed("zoo", "list", "--json"))
    names = [entry["name"] for entry in index]
    asked = sys.argv[1:]
    if asked[:1] == ["others"]:
        asked = [name for name in names if name not in asked]
    assert asked and set(asked) <= set(names), asked
    core = openvino.Core()
    for entry in index:
        if entry["name"] in asked:
            with tempfile.TemporaryDirectory() as folder:
                check(entry, core, folder)


if __name__ == "__main__":
    main()
