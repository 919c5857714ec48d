"""What needs a GPU. On a machine with one: python -m pytest tests/python -m gpu"""

from __future__ import annotations

import json
import os
import warnings

import pytest

torch = pytest.importorskip("torch")

import models
import placewright.torch as placed_torch
from placewright.torch.cpu_and_gpu import CPU, GPU, CpuAndGpuRun
from placewright.torch.partitions import partition_gpu

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


WHERE = """extern "C" __global__ void where(int* out) {
  unsigned here;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(here));
  const long long until = clock64() + 200000;
  while (clock64() < until) {
  }
  if (threadIdx.x == 0) out[blockIdx.x] = here;
}"""


def partitions(*multiprocessors: int):
    try:
        return partition_gpu(multiprocessors)
    except placed_torch.NoPartitions as reason:
        pytest.skip(str(reason))


def test_partitions_are_disjoint_and_as_large_as_asked() -> None:
    where = torch.cuda._compile_kernel(WHERE, "where")
    seen = []
    for partition in partitions(64, 32, 16, 8):
        places = torch.full((512,), -1, dtype=torch.int32, device="cuda")
        torch.cuda.synchronize()
        with torch.cuda.stream(partition.stream):
            where(grid=(512, 1, 1), block=(1024, 1, 1), args=(places,))
        torch.cuda.synchronize()
        seen.append(set(places.tolist()))
    assert [len(places) for places in seen] == [64, 32, 16, 8]
    assert len(set().union(*seen)) == 120


def test_more_multiprocessors_than_there_are_is_told_in_a_sentence() -> None:
    partitions(8)
    with pytest.raises(placed_torch.NoPartitions):
        partition_gpu([1024, 1024])


def test_a_pipeline_over_partitions_computes_what_the_model_computes() -> None:
    partitions(8)
    model, inputs = on_gpu(models.transformer)
    pipeline = placed_torch.compile_pipeline(model, inputs, devices=["cuda:0/32", "cuda:0/16"])
    samples = [tuple(torch.randn_like(value) for value in inputs) for _ in range(9)]
    for name in pipeline.variants:
        pipeline.chosen = name
        for sample, got in zip(samples, pipeline.map(samples), strict=True):
            torch.testing.assert_close(got, model(*sample), rtol=2e-3, atol=2e-3)


def test_several_models_at_once() -> None:
    together = placed_torch.compile_together([on_gpu(make) for make in models.ALL], effort=QUICK)
    inputs = [tuple(torch.randn_like(value) for value in given) for _, given in together.models]
    for name in together.variants:
        together.chosen = name
        for (model, _), given, got in zip(together.models, inputs, together(*inputs), strict=True):
            torch.testing.assert_close(got, model(*(value.clone() for value in given)), rtol=2e-3, atol=2e-3)
    assert set(together.measure(rounds=2)) == {*together.variants, "predicted"}


@pytest.mark.parametrize("share", [0.4, 2.0])
def test_weights_that_do_not_fit_are_streamed_or_stay_on_the_cpu(share: float) -> None:
    torch.manual_seed(0)
    model = torch.nn.Sequential(*(torch.nn.Linear(64, 64) for _ in range(24))).eval().requires_grad_(False)
    inputs = (torch.randn(4, 64),)
    size = sum(value.numel() * value.element_size() for value in model.parameters())
    fast = placed_torch.compile_offloaded(model, inputs, memory=int(share * size))
    assert (fast.resident < len(fast.atoms.atoms)) == (share < 1)
    for name in fast.variants:
        fast.chosen = name
        for _ in range(3):
            fresh = torch.randn(4, 64)
            torch.testing.assert_close(fast(fresh).cpu(), model(fresh), rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("make", models.ALL)
def test_a_plan_over_the_gpu_and_the_cpu_computes_what_the_model_computes(make) -> None:
    model, inputs = on_gpu(make)
    cores = sorted(os.sched_getaffinity(0))[:2]
    fast = placed_torch.compile(model, inputs, devices=["cuda:0", f"cpu:{cores[0]},{cores[1]}"])
    assert fast.plan.check() == []
    by_plan = fast.variants["planned"]
    count = len(fast.atoms.atoms)
    for name, period in (("in turns", 1), ("in turns of three", 3)):
        steps = tuple((atom, CPU if atom // period % 2 else GPU) for atom in range(count))
        fast.variants[name] = CpuAndGpuRun(by_plan.on_gpu, by_plan.on_cpu, steps, cores)
    for name in fast.variants:
        fast.chosen = name
        for _ in range(5):  # buffers are used again
            fresh = tuple(torch.randn_like(value) for value in inputs)
            expected = model(*(value.clone() for value in fresh))
            torch.testing.assert_close(fast(*fresh), expected, rtol=2e-3, atol=2e-3)


def test_what_was_measured_before_is_not_measured_again() -> None:
    model, inputs = on_gpu(models.branches)
    first, second = (placed_torch.compile(model, inputs, effort=QUICK) for _ in range(2))
    assert second.costs == first.costs and second.steps == first.steps
    torch.testing.assert_close(second(*inputs), model(*inputs), rtol=2e-3, atol=2e-3)


def test_streams_share_the_gpu_in_the_plan(tmp_path) -> None:
    model, inputs = on_gpu(models.branches)
    fast = placed_torch.compile(model, inputs, effort=QUICK)
    assert fast.problem_document()["resources"] == [{"name": "multiprocessors", "capacity": 1}]
    assert fast.plan.check() == []
    fast.save(str(tmp_path))
    fast.report(str(tmp_path / "report.html"))
    assert (tmp_path / "report.html").stat().st_size > 10_000


def test_models_that_arrive_while_others_run() -> None:
    catalogue = [on_gpu(make) for make in models.ALL]
    with placed_torch.compile_online(catalogue) as online:
        numbers = [0, 1, 2, 1, 0, 2, 0, 0, 0]
        inputs = [tuple(torch.randn_like(value) for value in catalogue[number][1]) for number in numbers]
        arrivals = [
            online.submit(number, *(value.clone() for value in given))
            for number, given in zip(numbers, inputs, strict=True)
        ]
        arrivals[-1].cancel()
        for arrival, number, given in zip(arrivals[:-1], numbers, inputs, strict=False):
            wanted = catalogue[number][0](*(value.clone() for value in given))
            torch.testing.assert_close(arrival.result(600), wanted, rtol=2e-3, atol=2e-3)
    for decision in online.decisions:
        assert decision.plan.check() == []
