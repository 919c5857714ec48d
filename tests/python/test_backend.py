"""torch.compile with our backend: by name, over graph breaks, and where it has to fall back."""

from __future__ import annotations

import tomllib
import warnings
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from torch._dynamo.backends import registry

import models
import needs
import placewright.torch as placed_torch
from placewright.torch import placed
from placewright.torch.kernels import eager

ROOT = Path(__file__).resolve().parents[2]


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


class Breaks(torch.nn.Module):
    """Two graphs for dynamo, with a break between them."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = torch.nn.Linear(8, 16), torch.nn.Linear(16, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = torch.relu(self.first(x))
        torch._dynamo.graph_break()
        return self.second(hidden)


@pytest.fixture
def installed(tmp_path, monkeypatch) -> None:
    """The entry points of the package, as its installation writes them."""
    group = "torch_dynamo_backends"
    ((name, target),) = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"][group].items()
    folder = tmp_path / "placewright-0.1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: placewright\nVersion: 0.1.0\n")
    (folder / "entry_points.txt").write_text(f"[{group}]\n{name} = {target}\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    for lookup in (registry._lazy_import, registry._discover_entrypoint_backends):
        lookup.cache_clear()  # an earlier test may have looked for backends
    torch._dynamo.reset()


def test_by_name_every_graph_gets_a_plan(installed, monkeypatch) -> None:
    needs.extension()
    devices = needs.two_cores()
    made = []
    original = placed.compile
    monkeypatch.setattr(placed, "compile", lambda *a, **k: made.append(original(*a, **k)) or made[-1])
    model, x = Breaks().eval().requires_grad_(False), torch.randn(4, 8)
    options = {"devices": devices, "compiler": eager}
    compiled = torch.compile(model, backend="placewright", options=options)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="placewright")
        torch.testing.assert_close(compiled(x), model(x))
        torch.testing.assert_close(compiled(2 * x), model(2 * x))
    assert len(made) == 2
    for fast in made:
        assert fast.plan.check() == []
