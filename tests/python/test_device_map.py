"""Maps for accelerate: loaded, dispatched and run by accelerate itself, on the CPU and the disk."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

import needs

needs.extension()

from torch import nn

from placewright.torch.device_map import device_map, document, units_of


class Layer(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = x + self.narrow(torch.relu(self.wide(self.norm(x))))
        return result


class Model(nn.Module):
    """Tied: the head's weights are those of the embedding. `scale` is a buffer."""

    def __init__(self, width: int = 32, layers: int = 4, vocabulary: int = 100) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.layers = nn.ModuleList(Layer(width) for _ in range(layers))
        self.norm = nn.BatchNorm1d(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x)
        result: torch.Tensor = self.head(self.norm(x.transpose(1, 2)).transpose(1, 2))
        return result


def layer_bytes() -> float:
    return next(unit.bytes for unit in units_of(Model(), ["Layer"]) if unit.path == "layers.0")


def test_modules_that_may_not_be_split_are_whole() -> None:
    whole = [unit.path for unit in units_of(Model(), ["Layer"])]
    assert whole == ["embedding", "layers.0", "layers.1", "layers.2", "layers.3", "norm", "head"]
    parts = [unit.path for unit in units_of(Model(), [])]
    assert "layers.0.wide" in parts and "layers.0" not in parts


def test_accelerate_runs_the_model_as_the_map_says(tmp_path: Path) -> None:
    accelerate = pytest.importorskip("accelerate")
    torch.manual_seed(0)
    model = Model().eval()
    tokens = torch.randint(0, 100, (2, 7))
    wanted = model(tokens)
    total = sum(unit.bytes for unit in units_of(model, ["Layer"]))
    found = device_map(model, {"cpu": {"memory": total - layer_bytes()}, "disk": {}}, no_split=["Layer"])
    assert found.plan.check() == []
    assert set(found.values()) == {"cpu", "disk"}
    assert found["embedding"] == found["head"]
    accelerate.utils.check_device_map(model, found)
    placed = accelerate.dispatch_model(model, dict(found), main_device="cpu", offload_dir=tmp_path)
    torch.testing.assert_close(placed(tokens), wanted)


def test_fast_devices_are_filled_first_and_the_rest_is_fetched() -> None:
    with torch.device("meta"):
        model = Model(width=1024, layers=8)
    one = next(unit.bytes for unit in units_of(model, ["Layer"]) if unit.path == "layers.0")
    devices = {
        "cuda:0": {"kind": "T4", "memory": 3.5 * one},
        "cuda:1": {"kind": "A100-80GB", "memory": 4.5 * one},
        "cpu": {"memory": 64e9},
    }
    found = device_map(model, devices, no_split=["Layer"])
    layers = [found[f"layers.{number}"] for number in range(8)]
    assert layers.count("cuda:1") == 4  # the faster one is full
    assert layers.count("cuda:0") == 2  # and the one that fetches the others has room for one of them
    roomy = device_map(model, {**devices, "cuda:1": {"kind": "A100-80GB"}}, no_split=["Layer"])
    assert set(roomy.values()) == {"cuda:1"}


def test_quantised_weights_caches_and_activations_count() -> None:
    model = Model()

    def memory(**more: float) -> float:
        ops = document(model, {"cpu": {}}, ["Layer"], **more)["ops"]  # type: ignore[arg-type]
        return float(next(op["memory"] for op in ops if op["name"] == "layers.0"))

    matrices = 2 * 4 * 32 * 32
    assert memory() - memory(bits=4) == matrices * (4 - 0.5)
    assert memory(kv_cache=1000.0) - memory() == 1000
    (device,) = document(model, {"cpu": {"memory": 1e6}}, ["Layer"], activations=1e5)["devices"]
    assert device["memory"] == 9e5


def test_what_does_not_fit_is_said() -> None:
    with pytest.raises(ValueError, match="does not fit"):
        device_map(Model(), {"cpu": {"memory": 1000.0}}, no_split=["Layer"])
    with pytest.raises(ValueError, match="no kind of the catalogue"):
        device_map(Model(), {"cuda:0": {"kind": "abacus"}})


def test_the_blocks_of_the_page_run() -> None:
    pytest.importorskip("accelerate")
    page = Path(__file__).resolve().parents[2] / "docs" / "large-models.md"
    names: dict[str, object] = {}
    for block in re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.S):
        exec(compile(block, str(page), "exec"), names)
    assert set(names["found"].values()) == {"cuda:0", "cuda:1", "cpu"}  # type: ignore[attr-defined]
