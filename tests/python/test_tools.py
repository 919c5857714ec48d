"""What `placewright export` writes for tools of PyTorch, opened by those tools."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

import torch.distributed.pipelining as pipelining
from torch import nn

if "PLACEWRIGHT_PROGRAM" not in os.environ:
    pytest.skip("PLACEWRIGHT_PROGRAM does not say where the program is", allow_module_level=True)

PROBLEM = Path(__file__).resolve().parents[2] / "examples/tools/layers.json"


class Body(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(20, 8)
        self.layers = nn.ModuleList(nn.Linear(8, 8) for _ in range(8))
        self.norm = nn.LayerNorm(8)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.embed(tokens)
        for layer in self.layers:
            x = torch.tanh(layer(x))
        return self.norm(x)


class EightLayers(nn.Module):
    """The model whose modules examples/tools/layers.json has as ops."""

    def __init__(self) -> None:
        super().__init__()
        self.model = Body()
        self.lm_head = nn.Linear(8, 20)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.lm_head(self.model(tokens))


def program(*arguments: str | Path) -> str:
    command = [os.environ["PLACEWRIGHT_PROGRAM"], *map(str, arguments)]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=120).stdout


def exported(folder: Path, tool: str) -> tuple[dict, dict]:
    """The plan, by op and device, and what the tool is given."""
    plan = folder / "plan.json"
    program("plan", PROBLEM, "-o", plan, "--quiet")
    placement = json.loads(program("export", plan, "--to", "accelerate"))
    return placement, json.loads(program("export", plan, "--to", tool))


def test_torch_splits_the_model_where_the_plan_does(tmp_path: Path) -> None:
    placement, document = exported(tmp_path, "torch-pipelining")
    model, tokens = EightLayers().eval(), torch.randint(0, 20, (2, 5))
    split = {name: pipelining.SplitPoint.BEGINNING for name in document["split_spec"]}
    pipe = pipelining.pipeline(model, mb_args=(tokens,), split_spec=split)
    assert pipe.num_stages == len(document["stages"]) == 2
    for number, devices in enumerate(document["stages"]):
        wanted = {name for name, device in placement.items() if f"cuda:{device}" in devices}
        weights = dict(pipe.get_stage_module(number).named_parameters())
        assert {name.rpartition(".")[0] for name in weights} == wanted
    torch.testing.assert_close(pipe(tokens)[0], model(tokens))


def test_accelerate_takes_the_map(tmp_path: Path) -> None:
    accelerate = pytest.importorskip("accelerate")
    _, found = exported(tmp_path, "accelerate")
    accelerate.utils.check_device_map(EightLayers(), found)
    found.pop("model.norm")
    with pytest.raises(ValueError, match=r"norm"):  # it does look
        accelerate.utils.check_device_map(EightLayers(), found)
