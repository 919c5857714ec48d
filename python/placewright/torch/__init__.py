"""PyTorch models, placed: capture, measure, plan and run.

import placewright.torch

fast = placewright.torch.compile(model, (x,))
y = fast(x)
"""

from placewright.torch.capture import CannotCapture, Captured, capture
from placewright.torch.distributed import CannotPipeline, RankPipeline, plan_together
from placewright.torch.distributed import pipeline as _pipeline
from placewright.torch.offload import Offloaded, compile_offloaded
from placewright.torch.online import Arrival, Cancelled, Online, compile_online
from placewright.torch.partitions import NoPartitions
from placewright.torch.pipeline import Pipeline, compile_pipeline
from placewright.torch.placed import NewShape, OutOfMemory, Placed, WrongOutputs, compile, dynamo_backend
from placewright.torch.rank_costs import measure_ranks
from placewright.torch.stream_search import Effort
from placewright.torch.together import Together, compile_together

__all__ = [
    "Arrival",
    "Cancelled",
    "CannotCapture",
    "CannotPipeline",
    "Captured",
    "Effort",
    "NewShape",
    "NoPartitions",
    "Offloaded",
    "Online",
    "OutOfMemory",
    "Pipeline",
    "Placed",
    "RankPipeline",
    "Together",
    "WrongOutputs",
    "capture",
    "compile",
    "compile_offloaded",
    "compile_online",
    "compile_pipeline",
    "compile_together",
    "dynamo_backend",
    "measure_ranks",
    "pipeline",
    "plan_together",
]

# Importing the module pipeline.py has bound this name to it.
pipeline = _pipeline
