"""torch.compile with our backend, where it has to fall back."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

import models
import placewright.torch as placed_torch


def warned(model, inputs, **keywords) -> str:
    torch._dynamo.reset()
    compiled = torch.compile(model, backend=placed_torch.dynamo_backend, **keywords)
    with pytest.warns(UserWarning, match="placewright runs this graph unsplit") as caught:
        torch.testing.assert_close(compiled(*inputs), model(*inputs))
    (one,) = [str(w.message) for w in caught if "placewright" in str(w.message)]
    return one


def test_on_the_cpu_the_model_runs_as_it_is() -> None:
    assert "not on a GPU" in warned(*models.branches())


@pytest.mark.gradients
def test_gradients_are_left_to_pytorch() -> None:
    model, inputs = models.branches()
    assert "need gradients" in warned(model, inputs)


def test_dynamic_shapes_are_left_to_pytorch() -> None:
    assert "shapes are dynamic" in warned(torch.nn.Linear(8, 8), (torch.randn(4, 8),), dynamic=True)
