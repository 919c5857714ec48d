"""What needs a GPU. On a machine with one: python -m pytest tests/python -m gpu"""

from __future__ import annotations

import json
import warnings

import pytest

torch = pytest.importorskip("torch")

import models
import placewright.torch as placed_torch

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no NVIDIA GPU on this machine"),
]

QUICK = placed_torch.Effort(streams=3, candidates=3, moves=3)


def on_gpu(make):
    model, inputs = make()
    return model.cuda(), tuple(value.cuda() for value in inputs)


@pytest.mark.parametrize("make", models.ALL)
def test_every_variant_computes_what_the_model_computes(make) -> None:
    model, inputs = on_gpu(make)
    fast = placed_torch.compile(model, inputs, effort=QUICK)
    assert fast.chosen in fast.variants and fast.note
    for name in fast.variants:
        fast.chosen = name
        fresh = tuple(torch.randn_like(value) for value in inputs)
        expected = model(*(value.clone() for value in fresh))
        torch.testing.assert_close(fast(*fresh), expected, rtol=2e-3, atol=2e-3)


def test_other_shapes_are_refused_by_name() -> None:
    model, inputs = on_gpu(models.branches)
    fast = placed_torch.compile(model, inputs, effort=QUICK)
    with pytest.raises(placed_torch.NewShape, match="input 0 was 1x3x16x16 float32 on cuda:0"):
        fast(torch.randn(2, 3, 16, 16, device="cuda"))


def test_trace_shows_the_planned_and_the_measured(tmp_path) -> None:
    model, inputs = on_gpu(models.branches)
    fast = placed_torch.compile(model, inputs, effort=QUICK)
    fast.trace(str(tmp_path / "trace.json"))
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert sum(event["pid"] == "planned" for event in events) == len(fast.atoms.atoms)
    assert any(event["pid"] == "measured" for event in events)


def test_as_a_backend_of_torch_compile() -> None:
    model, inputs = on_gpu(models.branches)
    compiled = torch.compile(model, backend=placed_torch.dynamo_backend)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        torch.testing.assert_close(compiled(*inputs), model(*inputs), rtol=2e-3, atol=2e-3)
    assert not [warning for warning in caught if "placewright" in str(warning.message)]
