"""Pipelines on two core sets, with samples in flight."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

import models
import needs
import placewright.torch as placed_torch
from placewright.torch.kernels import eager
from placewright.torch.partitions import multiprocessors_of

needs.extension()
DEVICES = needs.two_cores()


@pytest.mark.parametrize("make", models.ALL)
def test_samples_come_out_in_order_and_right(make) -> None:
    model, inputs = make()
    pipeline = placed_torch.compile_pipeline(model, inputs, devices=DEVICES, compiler=eager)
    assert pipeline.plan.check() == [] and pipeline.plan.problem.objective == "throughput"
    samples = [tuple(torch.randn_like(value) for value in inputs) for _ in range(9)]
    for name in pipeline.variants:
        pipeline.chosen = name
        outputs = list(pipeline.map(samples))
        assert len(outputs) == len(samples)
        for sample, got in zip(samples, outputs, strict=True):
            torch.testing.assert_close(got, model(*(value.clone() for value in sample)))


def test_a_failing_stage_reaches_the_caller_and_the_next_samples_pass() -> None:
    model, inputs = models.branches()
    pipeline = placed_torch.compile_pipeline(model, inputs, devices=DEVICES, compiler=eager)
    with pytest.raises(RuntimeError, match="channels"):
        list(pipeline.variants["planned"].map([*[list(inputs)] * 3, [torch.randn(1, 4, 16, 16)]]))
    pipeline.chosen = "planned"
    (got,) = pipeline.map([inputs])
    torch.testing.assert_close(got, model(*inputs))


def test_a_caller_may_stop_early() -> None:
    model, inputs = models.branches()
    pipeline = placed_torch.compile_pipeline(model, inputs, devices=DEVICES, compiler=eager)
    for _ in pipeline.map([inputs] * 10):
        break
    assert len(list(pipeline.map([inputs] * 3))) == 3


def test_devices_that_wait_for_each_other_are_refused() -> None:
    model, inputs = models.branches()
    pipeline = placed_torch.compile_pipeline(model, inputs, devices=DEVICES, compiler=eager)
    count = len(pipeline.program.atoms.atoms)
    with pytest.raises(ValueError, match="wait for each other"):
        pipeline.add("zigzag", [DEVICES[atom % 2] for atom in range(count)])


def test_names_of_partitions() -> None:
    assert multiprocessors_of("cuda:0/64") == 64
    for wrong in ("cuda:0", "cuda:0/0", "cuda:0/12", "cuda:1/8", "cpu:0/8"):
        with pytest.raises(ValueError, match="names no partition"):
            multiprocessors_of(wrong)
