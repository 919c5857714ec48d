"""Maps for accelerate: loaded, dispatched and run by accelerate itself, on the CPU and the disk."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

import needs

needs.extension()

from torch import nn

from placewright.torch.device_map import device_map, units_of


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
    total = sum(parameter.numel() * 4 for parameter in model.parameters())  # tied ones once
    found = device_map(model, {"cpu": {"memory": total - layer_bytes() / 2}, "disk": {}}, no_split=["Layer"])
    assert found.plan.check() == []
    assert set(found.values()) == {"cpu", "disk"}
    assert found["embedding"] == found["head"]
    accelerate.utils.check_device_map(model, found)
    placed = accelerate.dispatch_model(model, dict(found), main_device="cpu", offload_dir=tmp_path)
    torch.testing.assert_close(placed(tokens), wanted)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no NVIDIA GPU on this machine")
def test_accelerate_runs_a_model_on_a_gpu_and_fetches_the_rest(tmp_path: Path) -> None:
    accelerate = pytest.importorskip("accelerate")
    torch.manual_seed(0)
    model = Model(width=256, layers=8).eval()
    tokens = torch.randint(0, 100, (2, 7))
    wanted = model(tokens)
    one = next(unit.bytes for unit in units_of(model, ["Layer"]) if unit.path == "layers.0")
    devices = {"cuda:0": {"kind": "H200", "memory": 5.5 * one}, "cpu": {"memory": 2.5 * one}, "disk": {}}
    found = device_map(model, devices, no_split=["Layer"])
    assert set(found.values()) == {"cuda:0", "cpu", "disk"}
    assert found["embedding"] == found["head"]
    accelerate.utils.check_device_map(model, found)
    placed = accelerate.dispatch_model(model, dict(found), offload_dir=tmp_path)
    torch.testing.assert_close(placed(tokens.cuda()).cpu(), wanted, rtol=1e-4, atol=1e-4)  # other kernels
    assert {parameter.device.type for parameter in placed.parameters()} == {"cuda", "meta"}  # fetched when needed


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no NVIDIA GPU on this machine")
def test_transformers_loads_a_model_of_its_own_as_the_map_says(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    made = transformers.GPT2LMHeadModel(
        transformers.GPT2Config(vocab_size=1000, n_layer=6, n_embd=256, n_head=4)
    ).eval()
    tokens = torch.randint(0, 1000, (2, 7))
    wanted = made(tokens).logits
    made.save_pretrained(tmp_path / "model")
    units = {unit.path: unit.bytes for unit in units_of(made, ["GPT2Block"])}
    block = units["transformer.h.0"]
    rest = sum(units.values()) - 6 * block - units["transformer.wte"]  # which is also the head
    devices = {"cuda:0": {"kind": "H200", "memory": rest + 3.5 * block}, "cpu": {}}
    found = device_map(made, devices, no_split=["GPT2Block"])
    assert set(found.values()) == {"cuda:0", "cpu"}
    assert found["transformer.wte"] == found["lm_head"]  # one weight
    loaded = type(made).from_pretrained(tmp_path / "model", device_map=dict(found))
    torch.testing.assert_close(loaded(tokens.cuda()).logits.cpu(), wanted, rtol=1e-4, atol=1e-4)


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
        found = device_map(model, {"cpu": {}}, no_split=["Layer"], **more)  # type: ignore[arg-type]
        ops = found.plan.problem.to_document()["ops"]
        return float(next(op["memory"] for op in ops if op["name"] == "layers.0"))

    matrices = 2 * 4 * 32 * 32
    assert memory() - memory(bits=4) == matrices * (4 - 0.5)
    assert memory(kv_cache=1000.0) - memory() == 1000
    found = device_map(model, {"cpu": {"memory": 1e6}}, no_split=["Layer"], activations=1e5)
    (device,) = found.plan.problem.to_document()["devices"]
    assert device["memory"] == 9e5


def test_tied_weights_count_once() -> None:
    model = Model()
    total = sum(unit.bytes for unit in units_of(model, ["Layer"])) - model.embedding.weight.numel() * 4
    assert set(device_map(model, {"cpu": {"memory": total}}, no_split=["Layer"]).values()) == {"cpu"}
    with pytest.raises(ValueError, match="does not fit"):
        device_map(model, {"cpu": {"memory": total - 1}}, no_split=["Layer"])


def test_what_does_not_fit_is_said() -> None:
    with pytest.raises(ValueError, match="does not fit"):
        device_map(Model(), {"cpu": {"memory": 1000.0}}, no_split=["Layer"])
    with pytest.raises(ValueError, match="no kind of the catalogue"):
        device_map(Model(), {"cuda:0": {"kind": "abacus"}})


def test_the_blocks_of_the_page_run() -> None:
    pytest.importorskip("accelerate")
    page = Path(__file__).resolve().parents[2] / "docs" / "guides" / "large-models.md"
    names: dict[str, object] = {}
    for block in re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.S):
        exec(compile(block, str(page), "exec"), names)
    assert set(names["found"].values()) == {"cuda:0", "cuda:1", "cpu"}  # type: ignore[attr-defined]
