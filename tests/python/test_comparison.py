"""Methods beside each other: names, functions, plans and placements, on one problem and on several."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

import needs
import placewright

needs.extension()


def diamond(name: str = "diamond") -> placewright.Problem:
    """Four ops on two devices; the fast one cannot run the last."""
    return placewright.Problem.from_arrays(
        times=[[1, 2], [3, 3], [3, 3], [math.inf, 1]],
        edges=[(0, 1), (0, 2), (1, 3), (2, 3)],
        cluster=placewright.Cluster.of(["fast", "slow"], latency=0.5),
        names=["a", "b", "c", "d"],
        name=name,
    )


def fastest(problem: placewright.Problem) -> NDArray[np.intp]:
    """Every op on the device that runs it fastest."""
    return problem.times.argmin(axis=1)


def test_functions_plans_and_placements_stand_beside_planners() -> None:
    problem = diamond()
    exact = placewright.plan(problem, "decompose")
    found = placewright.compare(problem, ["heft", fastest, exact, [1, 1, 1, 1], {"a": "slow"}], time_limit=2)
    by_name = {plan.planner: plan for plan in found.plans}
    assert set(by_name) == {"heft", "fastest", "decompose", "placement", "placement 2"}
    assert found.plans[0].value == exact.value == found.lower_bound
    assert by_name["placement"].value == 9.0
    assert by_name["fastest"].lower_bound == found.lower_bound and by_name["fastest"].check() == []
    assert by_name["fastest"].gap == pytest.approx(1 - exact.value / by_name["fastest"].value)
    # A placement that leaves ops out has no plan, and says why.
    assert by_name["placement 2"].status == "unknown" and by_name["placement 2"].reason
    assert found.plans[-1].planner == "placement 2"
    assert "placement 2: " in str(found) and "decompose" in str(found)


def test_without_planners_only_the_own_methods_run() -> None:
    found = placewright.compare(diamond(), {"mine": fastest}, time_limit=2)
    assert [plan.planner for plan in found.plans] == ["mine"]
    assert 0 < found.lower_bound <= found.plans[0].value


def test_the_number_of_a_device_that_is_not_there_is_no_plan() -> None:
    (plan,) = placewright.compare(diamond(), [np.array([0, 0, 0, 7])]).plans
    assert plan.status == "unknown" and math.isinf(plan.value)


def test_what_is_no_list_of_methods_is_refused() -> None:
    for wrong in ("heft", 5, [0, 1, 0, 1], np.zeros(4, int)):
        with pytest.raises(ValueError, match="a list or a mapping"):
            placewright.compare(diamond(), wrong)
    with pytest.raises(ValueError, match="is a function"):
        placewright.bench("heft")  # type: ignore[arg-type]


def test_a_function_without_an_answer_has_no_plan() -> None:
    (plan,) = placewright.compare(diamond(), [lambda problem: None]).plans
    assert plan.planner == "function" and plan.reason == "the function returned nothing"


def test_bench_keeps_a_method_apart_from_a_planner_of_its_name() -> None:
    found = placewright.bench(fastest, [diamond()], name="heft", planners=["heft"], time_limit=1)
    assert {"heft", "heft (own)"} == set(found.ratios())


def test_bench_shows_a_method_beside_planners(tmp_path) -> None:
    told: list[str] = []
    inputs = ["moirai/example-1", "talos/six_ops", diamond("own")]
    found = placewright.bench(fastest, inputs, time_limit=2, planners=None, progress=told.append)
    assert told == list(found.comparisons) == ["moirai/example-1", "talos/six_ops", "own"]
    text = str(found)
    assert "fastest" in text and "heft" in text and "moirai/example-1" in text
    ratios = found.ratios()
    assert min(ratios[method]["own"] for method in ratios if "own" in ratios[method]) == 1.0
    assert ratios["fastest"]["own"] > 1
    found.plot(tmp_path / "bench.svg")
    drawing = (tmp_path / "bench.svg").read_text(encoding="utf-8")
    assert drawing.startswith("<svg") and drawing.count("<circle") == sum(map(len, ratios.values()))


def test_published_inputs_are_all_there() -> None:
    names = placewright.published()
    assert {"moirai/GoogLeNet", "msr/throughput/LayerGraphs/bert24_training", "talos/two_chains"} <= set(names)
    assert not any("expert" in name for name in names)
