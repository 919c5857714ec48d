"""A model from its file to results: measured on this machine's devices, planned, and run on NumPy arrays.

    problem = placewright.measure("model.onnx", devices=["cpu:0", "cpu:1"])
    session = placewright.Session(placewright.plan(problem))
    outputs = session.run({"image": pixels})

Models are executed by OpenVINO.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from placewright import _native
from placewright.planning import Plan, Problem

Precision = Literal["default", "f32", "bf16", "f16"]

_ELEMENTS: dict[str, DTypeLike] = {
    "f16": np.float16,
    "f32": np.float32,
    "f64": np.float64,
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
    "u8": np.uint8,
    "u16": np.uint16,
    "u32": np.uint32,
    "u64": np.uint64,
    "boolean": np.bool_,
}
_NAMES = {np.dtype(dtype): element for element, dtype in _ELEMENTS.items()}


def measure(
    models: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    devices: Sequence[str] = (),
    shapes: Sequence[str] = (),
    precision: Precision = "default",
    objective: str = "",
    repeat: int = 20,
    progress: Callable[[str], object] | None = None,
) -> Problem:
    """Models (ONNX, OpenVINO IR, ...) as a problem with costs measured on devices of this machine: `cpu:0`, `cpu:1-3`;
    none: nested sets of its cores. `shapes` are those of open inputs, such as `image=1x3x224x224`. The models compute
    in the precision: by default what OpenVINO chooses, bf16 or f16 where the device is fast in it. The objective is
    `latency`, or `total-completion` of several models, where none is given. It takes seconds to minutes;
    `progress(what)` is called from another thread, and Ctrl-C ends it."""
    given = [models] if isinstance(models, str | os.PathLike) else models
    paths = [os.fspath(model) for model in given]
    problem = Problem(_native.measure(paths, list(devices), list(shapes), precision, repeat, progress))
    return Problem.from_document(problem.to_document() | {"objective": objective}) if objective else problem


@dataclasses.dataclass(frozen=True)
class ArrayType:
    """An input or output. `element` is `f32`, `i64`, ... as `placewright info MODEL` prints it."""

    element: str
    shape: tuple[int, ...]


class Session:
    """A plan, compiled for its devices, that runs when it is given inputs. Its problem names the files of the models,
    as those of `measure` do. The models compute in what they were measured in, or in `precision`. One call at a time.

    `variants` are plans of the same models for other shapes of their inputs. A sample runs in the first one whose
    inputs have the shapes of its arrays. `inputs` and `outputs` are those of the first plan."""

    def __init__(self, plan: Plan, *variants: Plan, precision: Precision | None = None) -> None:
        self.plan = plan
        self._native = _native.Session(plan.problem._native, plan._found(), precision or "")
        for variant in variants:
            self._native.add_variant(variant.problem._native, variant._found())
        self.inputs = {name: ArrayType(element, tuple(shape)) for name, element, shape in self._native.inputs}
        self.outputs = {name: ArrayType(element, tuple(shape)) for name, element, shape in self._native.outputs}

    @staticmethod
    def open(path: str | os.PathLike[str], *, precision: Precision | None = None) -> Session:
        """A session for a plan file."""
        return Session(Plan.read(path), precision=precision)

    def run(self, inputs: Mapping[str, ArrayLike]) -> dict[str, NDArray[np.generic]]:
        """One inference of every model. Of several models, names are `MODEL:NAME`. Numbers are converted to the input's
        type if none is out of range; an input that is not given keeps its last value, at first a random one."""
        return self.run_all([inputs])[0]

    def run_all(self, samples: Sequence[Mapping[str, ArrayLike]]) -> list[dict[str, NDArray[np.generic]]]:
        """Several samples, in order. Under a plan for throughput they overlap, as in a pipeline."""
        given = [{name: _given(name, value) for name, value in sample.items()} for sample in samples]
        return [
            {name: _taken(element, values).reshape(shape) for name, element, shape, values in sample}
            for sample in self._native.run_all(given)
        ]


def _given(name: str, value: ArrayLike) -> tuple[str, NDArray[np.generic]]:
    array = np.ascontiguousarray(value)
    if array.dtype not in _NAMES:
        raise ValueError(f"input '{name}' has elements of type {array.dtype}, which no model takes")
    return _NAMES[array.dtype], array.reshape(np.shape(value))


def _taken(element: str, values: NDArray[np.uint8]) -> NDArray[np.generic]:
    if element == "bf16":  # NumPy has no such type: the upper half of an f32
        return (values.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    return values.view(_ELEMENTS[element])
