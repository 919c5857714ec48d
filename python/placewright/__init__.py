"""Which operator of a model runs on which device, and when.

    import placewright

    problem = placewright.Problem.read("examples/moirai/GoogLeNet.json")
    plan = placewright.plan(problem, time_limit=5)
    plan.value, plan.lower_bound, plan.placement["conv1"]
    plan.report("report.html")

Times are in the unit that the problem states, sizes in bytes. What is wrong with a file, or with a request, is a
RuntimeError or ValueError whose message is one sentence; "nothing fits" and "time is up" are plans with a status.
`measure` and `Session` take a model's file to results on NumPy arrays. `placewright.torch` captures, places and runs
PyTorch models; it is imported on its own.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from placewright.comparison import Bench, Comparison, bench, compare, published
    from placewright.planning import (
        Cluster,
        Plan,
        Planner,
        Problem,
        check,
        explain,
        plan,
        planners,
        report,
        simulate,
        version,
    )
    from placewright.serving import Server
    from placewright.sessions import Session, measure
    from placewright.torch.device_map import device_map

__all__ = [
    "Bench",
    "Cluster",
    "Comparison",
    "Plan",
    "Planner",
    "Problem",
    "Server",
    "Session",
    "bench",
    "check",
    "compare",
    "device_map",
    "explain",
    "measure",
    "plan",
    "planners",
    "published",
    "report",
    "simulate",
    "version",
]


# Loaded when first asked for: measuring a PyTorch model needs no planner, and so no extension
# module.
_ELSEWHERE = {
    "Server": "serving",
    "Session": "sessions",
    "measure": "sessions",
    "device_map": "torch.device_map",
    **dict.fromkeys(("Bench", "Comparison", "bench", "compare", "published"), "comparison"),
}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'placewright' has no attribute '{name}'")
    module = importlib.import_module(f"placewright.{_ELSEWHERE.get(name, 'planning')}")
    return getattr(module, name)
