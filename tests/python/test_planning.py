"""The planner from Python, on published problems and on arrays."""

from __future__ import annotations

import json
import math
import os
import signal
import threading
from pathlib import Path

import numpy as np
import pytest

import needs
import placewright

needs.extension()

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
GOOGLENET = EXAMPLES / "moirai" / "GoogLeNet.json"


def diamond() -> placewright.Problem:
    """Four ops on two devices; the fast one cannot run the last."""
    return placewright.Problem.from_arrays(
        times=[[1, 2], [3, 3], [3, 3], [math.inf, 1]],
        edges=[(0, 1), (0, 2), (1, 3), (2, 3)],
        cluster=placewright.Cluster.of(["fast", "slow"], latency=0.5),
        names=["a", "b", "c", "d"],
        unit="ms",
    )


def test_a_published_problem_to_its_proven_optimum() -> None:
    plan = placewright.plan(placewright.Problem.read(GOOGLENET), "decompose", time_limit=60)
    assert plan.status == "optimal"
    assert plan.value == pytest.approx(1.27811, abs=1e-5)
    assert plan.lower_bound == pytest.approx(plan.value)
    assert plan.check() == []


def test_arrays_in_and_arrays_out() -> None:
    problem = diamond()
    assert problem.device_names == ["fast", "slow"]
    assert problem.times.shape == (4, 2) and math.isinf(problem.times[3, 0])
    plan = placewright.plan(problem)
    assert plan.status == "optimal"
    assert plan.placement["d"] == "slow"
    assert plan.devices.dtype == np.int64 and plan.devices.shape == (4,)
    assert plan.start is not None and plan.end is not None
    assert np.all(plan.end - plan.start == problem.times[np.arange(4), plan.devices])
    assert plan.end.max() == pytest.approx(plan.value)


def test_arrays_outlive_their_plan() -> None:
    devices = placewright.plan(diamond()).devices
    assert set(devices.tolist()) <= {0, 1}


def test_a_placement_of_ones_own() -> None:
    problem = diamond()
    by_name = problem.plan_for(dict.fromkeys("abcd", "slow"))
    assert by_name.value == pytest.approx(2 + 3 + 3 + 1)
    assert problem.plan_for([1, 1, 1, 1]).value == by_name.value
    with pytest.raises(ValueError, match="no device is called 'none'"):
        problem.plan_for(dict.fromkeys("abcd", "none"))
    with pytest.raises(ValueError, match="op 'd' has no device that may run it"):
        problem.plan_for([0, 0, 0, 0])
    better = placewright.plan(problem, "search", start=by_name, steps=100)
    assert better.value <= by_name.value


def test_what_is_wrong_is_told_in_a_sentence() -> None:
    with pytest.raises(ValueError, match="times must have a row for each op and 2 columns"):
        placewright.Problem.from_arrays([[1.0]], [], placewright.Cluster.of(["a", "b"]))
    with pytest.raises(ValueError, match="edges must name ops from 0 to 0"):
        placewright.Problem.from_arrays([[1.0]], [(0, 1)], placewright.Cluster.of(["a"]))
    with pytest.raises(RuntimeError, match=r"document: /ops/0/time"):
        placewright.Problem.from_arrays([[-1.0]], [], placewright.Cluster.of(["a"]))
    with pytest.raises(ValueError, match="nonesuch"):
        placewright.plan(diamond(), "nonesuch")
    with pytest.raises(RuntimeError, match=r"missing\.json"):
        placewright.Problem.read("missing.json")


def test_nothing_fits_is_an_answer() -> None:
    document = diamond().to_document()
    document["devices"][1]["memory"] = 0
    document["ops"][3]["memory"] = 1
    plan = placewright.plan(placewright.Problem.from_document(document))
    assert plan.status == "infeasible" and plan.reason
    assert math.isinf(plan.value)
    assert plan.reason in plan._repr_html_() or plan.status in plan._repr_html_()
    with pytest.raises(ValueError, match="there is no plan"):
        plan.devices  # noqa: B018


def test_options_are_keywords_and_progress_is_told() -> None:
    seen = []
    plan = placewright.plan(
        placewright.Problem.read(GOOGLENET), "search", steps=2000, seed=3, progress=lambda *news: seen.append(news)
    )
    again = placewright.plan(placewright.Problem.read(GOOGLENET), "search", steps=2000, seed=3)
    assert plan.value == again.value
    assert seen and all(len(news) == 4 for news in seen)
    with pytest.raises(ValueError, match="no-such-option"):
        placewright.plan(diamond(), "heft", no_such_option=1)


def test_an_error_in_the_progress_callback_reaches_the_caller() -> None:
    def refuse(*news: object) -> None:
        raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"):
        placewright.plan(placewright.Problem.read(GOOGLENET), "search", time_limit=20, progress=refuse)


def test_the_interpreter_goes_on_while_planning_and_control_c_gives_the_best_so_far() -> None:
    ticks = []
    stopped = threading.Event()

    def tick() -> None:
        while not stopped.wait(0.05):
            ticks.append(1)
            if len(ticks) == 10:
                os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=tick)
    thread.start()
    try:
        plan = placewright.plan(placewright.Problem.read(GOOGLENET), "search", time_limit=300)
    finally:
        stopped.set()
        thread.join()
    assert len(ticks) >= 10
    assert plan.status == "feasible" and plan.check() == []  # ctest ends what goes on for all 300 seconds


def test_files_of_the_program(tmp_path: Path) -> None:
    plan = placewright.plan(diamond())
    plan.save(tmp_path / "plan.json")
    plan.problem.save(tmp_path / "problem.json")
    assert json.loads((tmp_path / "plan.json").read_text())["placement"] == plan.placement
    again = placewright.Plan.read(tmp_path / "plan.json")
    assert again.value == plan.value and again.placement == plan.placement
    assert placewright.Problem.read(tmp_path / "problem.json").to_document() == plan.problem.to_document()


def test_simulate_explain_and_report(tmp_path: Path) -> None:
    plan = placewright.plan(diamond())
    rows = placewright.simulate(plan)
    assert [row["device"] for row in rows] == ["fast", "slow"] and sum(row["ops"] for row in rows) == 4
    path = placewright.explain(plan)
    assert path[-1]["end"] == pytest.approx(plan.value)
    moves = placewright.explain(plan, "d")
    assert [move["device"] for move in moves] == ["fast"] and moves[0]["obstacle"] == "support"
    plan.report(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert page.lower().startswith("<!doctype html") and "problem" in page
    assert "<table>" in plan._repr_html_()


def test_compare_puts_the_best_first() -> None:
    comparison = placewright.compare(diamond(), ["heft", "single", "etf"], time_limit=5)
    values = [plan.value for plan in comparison.plans]
    assert len(values) == 3 and values == sorted(values)
    assert comparison.lower_bound <= values[0]


def test_planners_are_those_of_the_program() -> None:
    names = {planner.name for planner in placewright.planners()}
    assert {"auto", "heft", "search", "decompose"} <= names
