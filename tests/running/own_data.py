"""A model run on data of the user: what `run --outputs` writes is what OpenVINO computes from the same arrays.

The files are NumPy's own and a PNG; the plan spreads the ops over the cores at random.
"""

import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import zlib

import numpy as np
import openvino

PROGRAM = os.environ["PLACEWRIGHT_PROGRAM"]


def placewright(*arguments, codes=(0,)):
    done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, timeout=100)
    assert done.returncode in codes, f"{arguments}: exit code {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout + done.stderr


def png(pixels):
    """An array of bytes, height x width x 3, as a PNG file."""

    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    height, width, _ = pixels.shape
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def run_on(plan, folder, *inputs):
    """The only output. A busy machine (exit code 1) is no failure here."""
    flags = [word for given in inputs for word in ("--input", given)]
    arguments = ["run", plan, *flags, "--outputs", folder, "--repeat", 1, "--warm-up", 0, "--no-baselines"]
    placewright(*arguments, codes=(0, 1))
    (file,) = folder.glob("*.npy")
    return np.load(file)


def plan_that_converts(folder, element, shape):
    """A plan for a model that gives its input as numbers of another type."""
    given = openvino.opset8.parameter(shape, np.float32, name="given")
    doubled = openvino.opset8.add(given, given)
    result = openvino.opset8.convert(doubled, element)
    path, problem, plan = (folder / f"{element}{end}" for end in (".xml", ".json", "-plan.json"))
    openvino.save_model(openvino.Model([result], [given], element), path, compress_to_fp16=False)
    placewright("import", path, "-o", problem)
    placewright("plan", problem, "--planner", "single", "-o", plan)
    return plan


def check_types_that_numpy_lacks(folder, numbers):
    plan = plan_that_converts(folder, "bf16", numbers.shape)
    found = run_on(plan, folder / "bf16", folder / "one.npy")
    assert found.dtype == np.float32, found.dtype
    np.testing.assert_allclose(found, 2 * numbers, rtol=2**-8)
    plan = plan_that_converts(folder, "i4", numbers.shape)
    message = placewright("run", plan, "--outputs", folder / "i4", codes=(3,))
    assert "--outputs: cannot write the output" in message and "NumPy has no elements of the type i4" in message, message


def main(folder):
    placewright("zoo", "make", "tiny-branches", "-o", folder)
    model = folder / "tiny-branches.xml"
    problem, plan = folder / "problem.json", folder / "plan.json"
    placewright("import", model, "--precision", "f32", "-o", problem)
    placewright("plan", problem, "--planner", "random", "--option", "samples=5", "-o", plan)

    compiled = openvino.Core().compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    port = compiled.inputs[0]
    name, shape = port.any_name, list(port.shape)
    numbers = np.random.default_rng(1).standard_normal(shape).astype(np.float32)

    def expect(found, values):
        expected = compiled([values])[0]
        assert found.shape == expected.shape and found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5 * np.abs(expected).max())

    np.save(folder / "one.npy", numbers)
    expect(run_on(plan, folder / "out1", f"{name}={folder / 'one.npy'}"), numbers)
    np.save(folder / "double.npy", numbers[0].astype(np.float64))  # another type, and no batch
    expect(run_on(plan, folder / "out2", folder / "double.npy"), numbers)
    np.savez(folder / "stored.npz", **{name: numbers})
    expect(run_on(plan, folder / "out3", folder / "stored.npz"), numbers)
    np.savez_compressed(folder / "packed.npz", **{name: numbers})
    expect(run_on(plan, folder / "out4", f"{name}={folder / 'packed.npz'}"), numbers)

    assert shape[1] == 3, shape
    pixels = np.random.default_rng(2).integers(0, 256, (shape[2], shape[3], 3), dtype=np.uint8)
    (folder / "image.png").write_bytes(png(pixels))
    scaled = np.moveaxis(pixels, 2, 0)[None].astype(np.float32) / 255
    expect(run_on(plan, folder / "out5", f"tiny-branches:{name}={folder / 'image.png'}"), scaled)

    message = placewright("run", plan, "--input", f"other={folder / 'one.npy'}", codes=(2,))
    assert f"has no input 'other'; its inputs are: {name}" in message, message
    message = placewright("run", plan, "--input", f"{name}={folder / 'none.npy'}", codes=(3,))
    assert "none.npy" in message, message
    check_types_that_numpy_lacks(folder, numbers)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        main(pathlib.Path(made))
    sys.exit(0)
