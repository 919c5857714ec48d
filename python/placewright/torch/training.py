"""From the problem of running a model as a pipeline to that of training it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

# What a backward op is called, after the op whose gradients it computes.
BACKWARD = ".backward"


def with_training(
    document: Mapping[str, Any],
    *,
    times: Sequence[Sequence[float]],
    kept: Sequence[float],
    gradients: Sequence[float],
    optimizer_states: int,
) -> dict[str, Any]:
    """What the file of a problem about inference holds when it is about training. Every op gets a backward op on the
    same device, with these `times`. Of every op `kept` bytes lie between the two: a tensor, so that the rules `memory`,
    `schedule` and `micro_batches` count it for as many samples as are under way. Of every tensor `gradients` bytes go
    back to whoever made it. A weight counts for itself, its gradient and `optimizer_states` more (Adam: 2)."""
    copies = 2 + optimizer_states
    ops = [{**op, "memory": copies * op.get("memory", 0)} for op in document["ops"]]
    tensors = [dict(tensor) for tensor in document["tensors"]]
    for op, row, size in zip(document["ops"], times, kept, strict=True):
        back = {"name": op["name"] + BACKWARD, "type": "backward", "backward": True, "flops": 2 * op["flops"]}
        ops.append({**back, "time": list(row)})
        tensors.append({"from": op["name"], "to": [op["name"] + BACKWARD], "bytes": size})
    for tensor, size in zip(document["tensors"], gradients, strict=True):
        edge = {"to": [tensor["from"] + BACKWARD], "bytes": size}
        tensors += [{**edge, "from": reader + BACKWARD} for reader in tensor["to"]]
    return {
        **document,
        "objective": "throughput",
        "ops": ops,
        "tensors": tensors,
        "weights": [{**weight, "bytes": copies * weight["bytes"]} for weight in document["weights"]],
        "colocate": [[op["name"], op["name"] + BACKWARD] for op in document["ops"]],
    }
