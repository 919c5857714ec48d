#!/usr/bin/env python3
"""The zoo's model with trained weights: magika's classifier of files, from the package on PyPI (Apache-2.0).

    .deps/venv/bin/python zoo/trained.py path                   where its ONNX file is; read it with --shape 1x2048
    .deps/venv/bin/python zoo/trained.py input FILE -o IN.bin   what the model reads for FILE: 2048 values, i32
    .deps/venv/bin/python zoo/trained.py label FILE…            what OpenVINO says each file is

The package is installed without what it depends on (its own program wants onnxruntime), so the two steps around the model are
here: the first and the last 1024 bytes of the file's first and last 4096, less white space at the ends, are the input; the
label of the largest output is the answer.
"""

import argparse
import functools
import importlib.util
import json
import pathlib

import numpy
import openvino


def model_folder():
    package = importlib.util.find_spec("magika")  # found, not imported
    if package is None:
        raise SystemExit("the package magika is not installed")
    return next((pathlib.Path(package.submodule_search_locations[0]) / "models").iterdir())


def model_path():
    return model_folder() / "model.onnx"


@functools.cache
def settings():
    found = json.loads((model_folder() / "config.min.json").read_text())
    assert found["mid_size"] == 0
    return found


def model_input(content):
    """[1, 2048], i32: bytes, and the padding token where there are too few."""
    begin_size, end_size = settings()["beg_size"], settings()["end_size"]
    block, padding = settings()["block_size"], settings()["padding_token"]
    begin = content[:block].lstrip()[:begin_size]
    end = content[-block:].rstrip()[-end_size:]
    values = [*begin, *[padding] * (begin_size - len(begin)), *[padding] * (end_size - len(end)), *end]
    return numpy.array([values], dtype=numpy.int32)


def label_of(output):
    """The label, and how sure the model is of it."""
    best = int(output[0].argmax())
    return settings()["target_labels_space"][best], float(output[0][best])


def static_model():
    model = openvino.Core().read_model(model_path())
    model.reshape([1, settings()["beg_size"] + settings()["end_size"]])
    return model


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    tasks = parser.add_subparsers(dest="task", required=True)
    tasks.add_parser("path")
    task = tasks.add_parser("input")
    task.add_argument("file", type=pathlib.Path)
    task.add_argument("-o", "--output", type=pathlib.Path, required=True)
    tasks.add_parser("label").add_argument("files", type=pathlib.Path, nargs="+")
    asked = parser.parse_args()
    if asked.task == "path":
        print(model_path())
    elif asked.task == "input":
        asked.output.write_bytes(model_input(asked.file.read_bytes()).tobytes())
    else:
        compiled = openvino.compile_model(static_model(), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
        for path in asked.files:
            label, score = label_of(compiled([model_input(path.read_bytes())])[0])
            print(f"{path}: {label} ({score:.3f})")


if __name__ == "__main__":
    main()
