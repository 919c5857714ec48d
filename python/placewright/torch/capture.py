"""From a PyTorch model to a graph that can be split.

`capture` exports the model for the given example inputs and returns a functional ATen graph: in-place operators have
become pure ones, views are ordinary operators whose result nobody overwrites, and every weight is an input of the
graph. So the nodes may run in any order that respects the edges, on any stream or thread, with the same result.

What cannot be split that way is refused with a sentence that names the operator: models that keep state between calls
(buffers that are written), that overwrite their inputs, or that draw random numbers (two schedules would draw them in
different orders).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.export.graph_signature import InputKind, OutputKind


class CannotCapture(Exception):
    """The model cannot be split; the message is one sentence that says why."""


@dataclasses.dataclass(frozen=True)
class Captured:
    """A model as a functional graph.

    `graph_module` holds the graph; `inputs` are the placeholders that the caller fills, in the order of the flattened
    example inputs; `constants` maps every other placeholder to the tensor that it stands for (the model's own
    parameters and buffers, not copies of them) and every operator that depends on neither inputs nor weights to its
    value, computed once; `outputs` are the nodes whose values the model returns, in order.
    """

    graph_module: torch.fx.GraphModule
    inputs: tuple[torch.fx.Node, ...]
    constants: Mapping[torch.fx.Node, torch.Tensor]
    outputs: tuple[torch.fx.Node, ...]
    example_inputs: tuple[torch.Tensor, ...]
    in_spec: Any
    out_spec: Any

    @property
    def nodes(self) -> list[torch.fx.Node]:
        """The operators in topological order, without those that are constants or only assert what export knows."""
        return [
            node
            for node in self.graph_module.graph.nodes
            if node.op == "call_function" and node not in self.constants and "val" in node.meta
        ]


def capture(
    model: torch.nn.Module, example_inputs: Sequence[Any], example_kwargs: Mapping[str, Any] | None = None
) -> Captured:
    """Exports `model` for inputs shaped like `example_inputs`.

    Raises CannotCapture for models that torch.export refuses or whose operators cannot be reordered.
    """
    try:
        with torch.no_grad():
            exported = torch.export.export(model, tuple(example_inputs), dict(example_kwargs or {}), strict=False)
            exported = exported.run_decompositions({})
    except Exception as error:  # torch.export raises many types; the sentence is what the user needs
        first_line = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise CannotCapture(f"torch.export refuses the model: {first_line}") from error
    _refuse_effects(exported)
    return _as_captured(exported, example_inputs, example_kwargs or {})


def _refuse_effects(exported: torch.export.ExportedProgram) -> None:
    for output in exported.graph_signature.output_specs:
        if output.kind == OutputKind.BUFFER_MUTATION:
            raise CannotCapture(f"the model writes its buffer '{output.target}', so calls depend on each other")
        if output.kind == OutputKind.USER_INPUT_MUTATION:
            raise CannotCapture(f"the model overwrites its input '{output.target}'")
    for node in exported.graph.nodes:
        if node.op == "call_function" and isinstance(node.target, torch._ops.OpOverload):
            if torch.Tag.nondeterministic_seeded in node.target.tags and not _is_inert(node):
                raise CannotCapture(f"'{node.target}' draws random numbers ({node.name}); is the model in eval mode?")
        elif node.op == "call_function" and isinstance(node.target, torch._ops.HigherOrderOperator):
            raise CannotCapture(f"'{node.target.name()}' is control flow that cannot be split ({node.name})")


def _is_inert(node: torch.fx.Node) -> bool:
    """True for operators that can be random and are not here: attention and dropout outside training."""
    name = str(node.target)
    if "dropout" in name and "attention" not in name:
        return len(node.args) > 2 and node.args[2] is False
    if "scaled_dot_product" in name:
        probability = node.args[4] if len(node.args) > 4 else node.kwargs.get("dropout_p", 0.0)
        return isinstance(probability, float) and probability == 0.0
    return False


def _as_captured(
    exported: torch.export.ExportedProgram, example_inputs: Sequence[Any], example_kwargs: Mapping[str, Any]
) -> Captured:
    placeholders = [node for node in exported.graph.nodes if node.op == "placeholder"]
    inputs: list[torch.fx.Node] = []
    constants: dict[torch.fx.Node, torch.Tensor] = {}
    for node, spec in zip(placeholders, exported.graph_signature.input_specs, strict=True):
        if spec.kind == InputKind.USER_INPUT:
            inputs.append(node)
        elif spec.target in exported.state_dict:
            constants[node] = exported.state_dict[spec.target]
        else:
            value = exported.constants[str(spec.target)]
            if not isinstance(value, torch.Tensor):
                raise CannotCapture(f"the constant '{spec.target}' is no tensor")
            constants[node] = value
    constants.update(_fold(exported))
    flat_inputs, in_spec = torch.utils._pytree.tree_flatten((tuple(example_inputs), dict(example_kwargs)))
    tensors = [value for value in flat_inputs if isinstance(value, torch.Tensor)]
    if len(tensors) != len(flat_inputs):
        raise CannotCapture("every input must be a tensor; bind other arguments before capture")
    output_node = next(node for node in exported.graph.nodes if node.op == "output")
    outputs = []
    for value, spec in zip(output_node.args[0], exported.graph_signature.output_specs, strict=True):
        if spec.kind != OutputKind.USER_OUTPUT or not isinstance(value, torch.fx.Node):
            raise CannotCapture("every output must be a tensor")
        outputs.append(value)
    return Captured(
        graph_module=exported.graph_module,
        inputs=tuple(inputs),
        constants=constants,
        outputs=tuple(outputs),
        example_inputs=tuple(tensors),
        in_spec=in_spec,
        out_spec=exported.call_spec.out_spec,
    )


def _fold(exported: torch.export.ExportedProgram) -> dict[torch.fx.Node, torch.Tensor]:
    """The values of the operators that depend on neither inputs nor weights: ranges, masks and the like."""
    known: dict[torch.fx.Node, Any] = {}
    for node in exported.graph.nodes:
        if node.op != "call_function" or "val" not in node.meta:
            continue
        if all(source in known for source in node.all_input_nodes):
            arguments, keywords = torch.fx.map_arg((node.args, node.kwargs), lambda source: known[source])
            with torch.no_grad():
                known[node] = node.target(*arguments, **keywords)
    return {node: value for node, value in known.items() if isinstance(value, torch.Tensor)}
