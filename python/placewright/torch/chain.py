"""A model as a chain of atoms: what stage-by-stage engines can run.

Engines such as `torch.distributed.pipelining` hand tensors from a stage to the next one only. So a value that is read
two stages on is relayed by the stage between, and what crosses a cut is everything that is alive there. In the chain
this is what a problem says: the tensor behind the k-th atom holds all values that later atoms or the caller need. A cut
of the chain is priced with its relays, and the planner needs no rule for them.

What is lost: the atoms stand in one order, so branches of a model do not go to stages of their own.

Weights are read where they lie and never cross a cut.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from torch.fx import Node
from torch.fx.node import Argument

from placewright.torch.atoms import Atom, Atoms, split_into_atoms
from placewright.torch.capture import Captured, capture
from placewright.torch.training import with_training


@dataclasses.dataclass(frozen=True)
class Crossing:
    """The values at a cut, in the order in which they are handed over."""

    values: tuple[Node, ...]

    @property
    def bytes(self) -> int:
        """What they hold together."""
        return sum(size_of(node) for node in self.values)


@dataclasses.dataclass(frozen=True)
class Chain:
    """The atoms of a model in order, and the names of its weights: `weight_names` maps a constant of the graph to how
    the model calls it; constants without a name are no weights and belong to every stage that reads them."""

    atoms: Atoms
    weight_names: Mapping[Node, str]

    @property
    def captured(self) -> Captured:
        """The graph."""
        return self.atoms.captured

    def crossing(self, before: Iterable[int]) -> Crossing:
        """What the atoms `before` a cut (and the caller's inputs) hand to those behind it, and to the caller."""
        done = set(before)
        inside = {node for index in done for node in self.atoms.atoms[index].nodes}
        made = [*self.captured.inputs, *(n for index in sorted(done) for n in self.atoms.atoms[index].nodes)]
        wanted = {
            source
            for atom in self.atoms.atoms
            if atom.index not in done
            for source in atom.reads
            if source in inside or source in self.captured.inputs
        }
        if done:  # at the very beginning everything comes from the caller
            wanted |= {node for node in self.captured.outputs if node in inside or node in self.captured.inputs}
        return Crossing(tuple(node for node in made if node in wanted))

    def shared_weights(self) -> dict[str, list[int]]:
        """Weights that several atoms read, by name."""
        readers: dict[str, list[int]] = {}
        for atom in self.atoms.atoms:
            for name in dict.fromkeys(self.weight_names[node] for node in atom.reads if node in self.weight_names):
                readers.setdefault(name, []).append(atom.index)
        return {name: atoms for name, atoms in readers.items() if len(atoms) > 1}

    def weight_bytes(self, name: str) -> int:
        """The size of a weight."""
        return next(size_of(node) for node, called in self.weight_names.items() if called == name)


def chain_of(model: torch.nn.Module, example_inputs: Sequence[Any]) -> Chain:
    """Captures a model for inputs shaped like the example; raises CannotCapture where it cannot be split."""
    captured = capture(model, example_inputs)
    named = {_place(value): name for name, value in reversed(model.state_dict(keep_vars=True).items())}
    names = {
        node: named[_place(value)]
        for node, value in captured.constants.items()
        if node.op == "placeholder" and _place(value) in named
    }
    return Chain(_in_chain_order(split_into_atoms(captured)), names)


def _in_chain_order(atoms: Atoms) -> Atoms:
    """The atoms in an order with narrow cuts: each time the one that adds least to what is alive. What depends on
    weights alone is computed just before it is first read; at an earlier cut it would travel with every sample."""
    by_index = atoms.atoms
    inputs = set(atoms.captured.inputs)
    from_inputs: set[int] = set()
    for atom in by_index:
        if inputs & set(atom.reads) or from_inputs & set(atom.after):
            from_inputs.add(atom.index)
    readers = Counter(node for atom in by_index for node in atom.reads)
    readers.update(atoms.captured.outputs)
    order: list[int] = []
    waiting = [index for index in range(len(by_index)) if index in from_inputs]

    def place(index: int) -> None:
        for before in by_index[index].after:
            if before not in from_inputs and before not in order:
                place(before)
        order.append(index)
        readers.subtract(by_index[index].reads)

    def growth(index: int) -> int:
        atom = by_index[index]
        return sum(map(size_of, atom.writes)) - sum(size_of(n) for n in atom.reads if readers[n] == 1)

    while waiting:
        placed = set(order)
        ready = [index for index in waiting if placed >= from_inputs & set(by_index[index].after)]
        chosen = min(ready, key=growth)
        waiting.remove(chosen)
        place(chosen)
    order.extend(index for index in range(len(by_index)) if index not in set(order))
    position = {index: number for number, index in enumerate(order)}
    moved = [
        dataclasses.replace(atom, index=number, after=tuple(sorted(position[before] for before in atom.after)))
        for number, atom in enumerate(by_index[index] for index in order)
    ]
    return Atoms(atoms.captured, tuple(moved))


def _place(value: torch.Tensor) -> tuple[Any, ...]:
    """Where a tensor lies: capture hands out the same memory under another object, and tied weights share it."""
    storage = value.untyped_storage()._cdata  # fake tensors have one too, and no address
    return (storage, value.storage_offset(), value.shape, value.stride(), value.dtype)


def size_of(node: Node) -> int:
    """Bytes of what a node computes."""
    value = node.meta["val"]
    parts = value if isinstance(value, list | tuple) else [value]
    return sum(part.numel() * part.element_size() for part in parts if isinstance(part, torch.Tensor))


class StageModule(torch.nn.Module):
    """Atoms of a chain as a module: takes the values of a crossing in order, returns those of the next. Its parameters
    are the model's own, under the names that they have there, so that checkpoints of any split can be read by any."""

    def __init__(self, chain: Chain, model: torch.nn.Module, before: Sequence[int], members: Sequence[int]) -> None:
        super().__init__()
        self.takes = chain.crossing(before).values if before else chain.captured.inputs
        last = len(before) + len(members) == len(chain.atoms.atoms)
        self.gives = chain.captured.outputs if last else chain.crossing([*before, *members]).values
        self.steps = _without_weights(chain, [chain.atoms.atoms[index] for index in sorted(members)], self, last)
        weights = model.state_dict(keep_vars=True)
        for node in self.steps.weights:
            attach(self, chain.weight_names[node], weights[chain.weight_names[node]])

    def forward(self, *values: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """The values of the crossing behind the stage."""
        weights = [_find(self, name) for name in self.steps.weight_names]
        taken = [_with_contiguous_gradient(value) if value.requires_grad else value for value in values]
        results: tuple[torch.Tensor, ...] = self.steps.graph_module(*taken, *weights, *self.steps.constants)
        return results


def _with_contiguous_gradient(value: torch.Tensor) -> torch.Tensor:
    """The value, with its gradient laid out as engines send it: that of a transposed tensor is transposed."""
    passed = value.view_as(value)
    passed.register_hook(torch.Tensor.contiguous)
    return passed


@dataclasses.dataclass(frozen=True)
class _Steps:
    """A stage's graph, whose arguments are the values taken, then `weights`, then `constants`."""

    graph_module: torch.fx.GraphModule
    weights: tuple[Node, ...]
    weight_names: tuple[str, ...]
    constants: tuple[torch.Tensor, ...]


def _without_weights(chain: Chain, atoms: Sequence[Atom], stage: StageModule, last: bool) -> _Steps:
    inside = {node for atom in atoms for node in atom.nodes}
    reads = dict.fromkeys(source for atom in atoms for source in atom.reads if source not in inside)
    fixed = chain.captured.constants
    weights = tuple(node for node in reads if node in chain.weight_names)
    kept = (node for node in (*reads, *stage.gives) if node in fixed and node not in chain.weight_names)
    others = tuple(dict.fromkeys(kept))
    graph = torch.fx.Graph()
    copies: dict[Node, Node] = {}
    for number, node in enumerate((*stage.takes, *weights, *others)):
        copies[node] = graph.placeholder(f"read_{number}")
    for atom in atoms:
        for node in atom.nodes:
            copies[node] = graph.node_copy(node, lambda argument: copies[argument])
            if node.target is torch.ops.aten.view.default:  # what a stage receives may have other strides
                copies[node].target = torch.ops.aten.reshape.default
    results = [copies[node] for node in stage.gives]
    if not last:
        # Engines send contiguous tensors and detach them in place, which neither views nor relayed
        # inputs allow.
        layout: dict[str, Argument] = {"memory_format": torch.contiguous_format}
        results = [graph.call_function(torch.ops.aten.clone.default, (result,), layout) for result in results]
    graph.output(tuple(results))
    graph.eliminate_dead_code()
    names = tuple(chain.weight_names[node] for node in weights)
    return _Steps(torch.fx.GraphModule({}, graph), weights, names, tuple(fixed[node] for node in others))


def attach(root: torch.nn.Module, name: str, value: torch.Tensor) -> None:
    """Registers a weight under its dotted name, with modules that hold nothing else on the way."""
    *path, last = name.split(".")
    for part in path:
        if part not in root._modules:
            root.add_module(part, torch.nn.Module())
        root = root.get_submodule(part)
    if isinstance(value, torch.nn.Parameter):
        root.register_parameter(last, value)
    else:
        root.register_buffer(last, value)


def _find(root: torch.nn.Module, name: str) -> torch.Tensor:
    path, _, last = name.rpartition(".")
    found: torch.Tensor = getattr(root.get_submodule(path), last)
    return found


def chain_document(
    name: str,
    chain: Chain,
    devices: Sequence[Mapping[str, Any]],
    interconnect: Mapping[str, Any],
    times: Sequence[Sequence[float]],
    *,
    rules: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """What a problem file about the chain holds, for the throughput of a pipeline. `devices` are those of a cluster
    file, each a kind of its own; `times` are microseconds by device and atom."""
    atoms = chain.atoms.atoms
    shared = chain.shared_weights()
    own = [
        sum(size_of(n) for n in a.reads if n in chain.weight_names and chain.weight_names[n] not in shared)
        for a in atoms
    ]
    return {
        "placewright": "problem",
        "version": 3,
        "name": name,
        "unit": "us",
        "objective": "throughput",
        "rules": dict(rules or {}),
        "kinds": [{"name": device["kind"]} for device in devices],
        "devices": [dict(device) for device in devices],
        "interconnect": dict(interconnect),
        "ops": [
            {
                "name": atom.name,
                "type": "+".join(str(getattr(node.target, "__name__", node.target)) for node in atom.nodes),
                "memory": own[atom.index],
                "flops": atom.flops,
                "time": [row[atom.index] for row in times],
            }
            for atom in atoms
        ],
        "tensors": [
            {"from": before.name, "to": [after.name], "bytes": chain.crossing(range(after.index)).bytes}
            for before, after in itertools.pairwise(atoms)
        ],
        "weights": [
            {"name": weight, "bytes": chain.weight_bytes(weight), "ops": [atoms[i].name for i in users]}
            for weight, users in shared.items()
        ],
        "origin": ["a chain: the tensor behind an op holds everything that is alive there"],
    }


def chain_in_training(
    document: Mapping[str, Any], chain: Chain, backward_times: Sequence[Sequence[float]], optimizer_states: int
) -> dict[str, Any]:
    """The same for training, with the times of the backward passes by device and atom. What an atom computes is kept
    for its backward pass, and gradients are those of floating-point values."""
    atoms = chain.atoms.atoms
    crossings = [chain.crossing(range(after.index)).values for after in atoms[1:]]
    return with_training(
        document,
        times=[[row[atom.index] for row in backward_times] for atom in atoms],
        kept=[sum(size_of(node) for node in atom.nodes) for atom in atoms],
        gradients=[sum(size_of(n) for n in values if n.meta["val"].is_floating_point()) for values in crossings],
        optimizer_states=optimizer_states,
    )
