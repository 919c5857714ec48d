"""Large models from their configuration: what is traced once and repeated is what the whole model would be."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

import needs
import placewright

needs.extension()

from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from placewright import catalogue
from placewright.torch.chain import chain_of
from placewright.torch.large_models import (
    MODELS,
    LargeModel,
    Layers,
    alphafold,
    gpt,
    llama,
    parameters,
    swin,
    trained,
    work_of,
)

SMALL = [
    gpt("gpt", 3, 32, 2, length=8, vocabulary=50),
    llama("llama", 2, 32, 16, 48, length=8, vocabulary=50),
    llama("experts", 2, 32, 16, 48, experts=4, length=8, vocabulary=50),
    swin("swin", 32, 2, image=256),
    alphafold("alphafold", 2, 64, 32, rows=4, length=6),
]


def whole(model: LargeModel) -> list[nn.Module]:
    return [layers.build().to(model.dtype) for layers in model.layers for _ in range(layers.count)]


@pytest.mark.parametrize("model", SMALL, ids=lambda model: model.name)
def test_weights_and_flops_are_those_of_the_model_itself(model: LargeModel) -> None:
    document = model.document({"a": "T4", "b": "A100-40GB"}, "PCIe-4.0-x16")
    modules = whole(model)
    assert parameters(document, model.dtype.itemsize) == sum(p.numel() for m in modules for p in m.parameters())
    values = [v.to(model.dtype) if v.is_floating_point() else v for v in model.inputs()]
    with FlopCounterMode(display=False) as counter:
        for module in modules:
            result = module(*values)
            values = list(result) if isinstance(result, tuple) else [result]
    assert sum(op["flops"] for op in document["ops"]) == counter.get_total_flops()


def test_layers_are_joined() -> None:
    problem = SMALL[0].problem({"a": "T4", "b": "A100-40GB"}, "PCIe-4.0-x16")
    plan = placewright.plan(problem, "single")
    assert plan.check() == []
    document = problem.to_document()
    first, last = document["ops"][0]["name"], document["ops"][-1]["name"]
    after: dict[str, set[str]] = {}
    for tensor in document["tensors"]:
        after.setdefault(tensor["from"], set()).update(tensor["to"])
    reached, waiting = set(), [first]
    while waiting:
        op = waiting.pop()
        reached.add(op)
        waiting.extend(after.get(op, set()) - reached)
    assert last in reached


@pytest.mark.parametrize("model", SMALL[:2], ids=lambda model: model.name)
def test_training_has_the_flops_and_the_memory_of_a_step(model: LargeModel) -> None:
    inference = model.document({"a": "T4", "b": "A100-40GB"}, "PCIe-4.0-x16")
    document = trained(inference, optimizer_states=2)
    with torch.enable_grad(), FlopCounterMode(display=False) as counter:
        values = list(model.inputs())
        for module in whole(model):
            values = [module(*values)]
        values[0].float().sum().backward()
    assert sum(op["flops"] for op in document["ops"]) == counter.get_total_flops()
    size = model.dtype.itemsize
    assert parameters(document, size) == 4 * parameters(inference, size)  # weights, gradients, two states of Adam
    readers = {tensor["from"]: tensor["to"] for tensor in document["tensors"] if tensor["from"].endswith("backward")}
    assert len(readers) == len(inference["ops"]) - 1  # all but the first hand a gradient back


def test_a_pipeline_in_training_is_planned_within_what_its_schedule_holds() -> None:
    model = gpt("gpt", 6, 32, 2, length=8, vocabulary=50)
    rules = {"memory": "peak", "schedule": "gpipe", "micro_batches": 4}
    problem = model.problem({"a": "T4", "b": "T4"}, "PCIe-4.0-x16", training=True, **rules)
    plan = placewright.plan(problem, time_limit=1)
    assert plan.check() == []
    assert len(plan.stages) == 2
    less = problem.to_document()
    less["rules"] = {**less["rules"], "schedule": "1f1b"}
    places = [problem.device_names.index(plan.placement[name]) for name in problem.op_names]
    same = placewright.Problem.from_document(less).plan_for(places)
    gpipe, one = ([row["peak"] - row["resident"] for row in p.simulate()] for p in (plan, same))
    first, last = (devices[0] for devices, _, _ in plan.stages)
    # Four micro-batches of each; 1F1B: two on the first stage, one on the last.
    assert (gpipe[first], gpipe[last]) == (2 * one[first], 4 * one[last])


def test_generation_reads_the_cache() -> None:
    without = llama("a", 2, 32, 16, 48, length=1, vocabulary=50)
    with_cache = llama("b", 2, 32, 16, 48, context=1000, vocabulary=50)
    sizes = [parameters(m.document({"a": "T4"}, "PCIe-4.0-x16"), 1) for m in (without, with_cache)]
    cache = 2 * 2 * 8 * 1000 * 2 * 2  # layers, keys and values, heads, tokens, size of a head, bytes
    assert sizes[1] - sizes[0] == cache


class Attending(nn.Module):
    """Fused attention, and a view of a buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("cache", torch.zeros(2, 1, 4, 8, 16))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.scaled_dot_product_attention(x, self.cache[0], self.cache[1])


def test_fused_attention_has_flops_and_views_move_nothing() -> None:
    chain = chain_of(Attending(), (torch.zeros(1, 4, 8, 16),))
    work = [work_of(atom, chain) for atom in chain.atoms.atoms]
    views = [entry for entry in work if not entry.of_matrices]
    (attention,) = [entry for entry in work if entry.of_matrices]
    assert attention.flops == 2 * 2 * 4 * 8 * 8 * 16  # products and sums; scores, then values; heads, lengths, size
    assert len(views) == 2
    assert all((view.flops, view.bytes) == (0, 0) for view in views)


def test_products_in_16_bits_have_the_units_for_them() -> None:
    def time(dtype: torch.dtype) -> float:
        model = LargeModel("one", [Layers("layer", 1, lambda: nn.Linear(4096, 4096, bias=False))], inputs, dtype)
        (op,) = model.document({"a": "H200"}, "PCIe-4.0-x16")["ops"]
        return float(op["time"][0]) - 1e3 * catalogue.kinds()["H200"].launch

    def inputs() -> list[torch.Tensor]:
        return [torch.zeros(4096, 4096)]

    assert time(torch.float32) / time(torch.bfloat16) == pytest.approx(989 / 67)


def test_the_published_sizes_are_met() -> None:
    """Within a tenth of what the names say; traced, not built."""
    wanted = {"gpt3-13b": 13e9, "swin-13b": 13e9, "alphafold2-3.2b": 3.2e9, "llama-70b": 70e9, "mixtral-8x7b": 46.7e9}
    for name, count in wanted.items():
        model = MODELS[name]
        found = parameters(model.document({"a": "T4"}, "PCIe-4.0-x16"), model.dtype.itemsize)
        assert found == pytest.approx(count, rel=0.1), name
