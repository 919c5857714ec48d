"""Several models at once on two core sets."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

import models
import needs
import placewright.torch as placed_torch
from placewright.torch.kernels import eager

needs.extension()
DEVICES = needs.two_cores()


def test_every_variant_computes_what_the_models_compute() -> None:
    together = placed_torch.compile_together([make() for make in models.ALL], devices=DEVICES, compiler=eager)
    assert set(together.variants) == {"planned", "all at once", "one after the other, shortest first"}
    assert together.note and together.chosen in together.variants
    inputs = [tuple(torch.randn_like(value) for value in make()[1]) for make in models.ALL]
    for name in together.variants:
        together.chosen = name
        for (model, _), given, got in zip(together.models, inputs, together(*inputs), strict=True):
            torch.testing.assert_close(got, model(*(value.clone() for value in given)))


def test_totals_are_sums_of_completions() -> None:
    together = placed_torch.compile_together(
        [models.branches(), models.in_place_and_views()], devices=DEVICES, compiler=eager
    )
    in_turn = together.variants["one after the other, shortest first"]
    longer, shorter = in_turn.completions(together.examples)
    assert 0 < shorter < longer  # the second model is the shorter one, so it ends first
    totals = together.measure(rounds=2)
    assert set(totals) == {*together.variants, "predicted"}
    assert totals["predicted"].median == pytest.approx(together.predicted)


def test_wrong_requests_are_told_in_a_sentence() -> None:
    with pytest.raises(ValueError, match="there are no models"):
        placed_torch.compile_together([])
    with pytest.raises(ValueError, match="inputs on the CPU need devices"):
        placed_torch.compile_together([models.branches()])
    together = placed_torch.compile_together([models.in_place_and_views()], devices=DEVICES, compiler=eager)
    with pytest.raises(ValueError, match="1 models need as many tuples of arguments, not 2"):
        together((torch.randn(4, 8),), (torch.randn(4, 8),))
