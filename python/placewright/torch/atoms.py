"""Atoms: the pieces of a model that are compiled and placed as one.

An atom is one costly operator (a convolution, a matrix product, a pooling, a concatenation, ...) with the pointwise
operators and views that a compiler fuses to it. So cutting a model into atoms loses no fusion along a chain, and an
atom is the smallest piece worth a decision. Where branches meet in a pointwise operator and none of them waits for
another, the meeting is an atom of its own: fused to one branch it would make that branch wait for the others.

Invariant: the graph of atoms is acyclic. A node joins an atom only if every other atom that it reads comes before that
atom, so no path leaves the atom and comes back.

Concatenations could be written in place, each branch filling its slice. On an H200 that was slower: the atom at the end
of a branch then takes two kernels (the convolution, and the copy into the slice) where cuDNN's fused one suffices.
"""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Callable
from typing import cast

import torch
from torch.fx import Node
from torch.utils.flop_counter import FlopCounterMode, sdpa_flop_count

from placewright.torch.capture import Captured

_aten = torch.ops.aten

_VIEWS = {
    _aten.view.default, _aten.reshape.default, _aten._unsafe_view.default, _aten.permute.default,
    _aten.transpose.int, _aten.t.default, _aten.expand.default, _aten.unsqueeze.default, _aten.squeeze.dim,
    _aten.squeeze.dims, _aten.squeeze.default, _aten.slice.Tensor, _aten.select.int, _aten.split.Tensor,
    _aten.split_with_sizes.default, _aten.chunk.default, _aten.unbind.int, _aten.flatten.using_ints,
    _aten.alias.default, _aten.detach.default, _aten.contiguous.default, _aten.clone.default,
    _aten.dropout.default, _aten.to.dtype, _aten._to_copy.default, _aten.type_as.default,
}  # fmt: skip

# The counter of flops knows the fused attention of GPUs alone.
_FUSED_ATTENTION = {
    _aten._scaled_dot_product_flash_attention_for_cpu: lambda query, key, value, *_, **__: sdpa_flop_count(
        query, key, value
    )
}


@dataclasses.dataclass(frozen=True)
class Atom:
    """Nodes that run as one. `reads` are the values and constants that it takes, in the order of its arguments;
    `writes` the values that it returns; `after` the indices of the atoms whose values it reads."""

    index: int
    name: str
    nodes: tuple[Node, ...]
    reads: tuple[Node, ...]
    writes: tuple[Node, ...]
    after: tuple[int, ...]

    @property
    def flops(self) -> int:
        """Floating-point operations of its matrix products and convolutions, from shapes alone."""
        with FlopCounterMode(display=False, custom_mapping=_FUSED_ATTENTION) as counter:
            for node in self.nodes:
                arguments, keywords = torch.fx.map_arg((node.args, node.kwargs), lambda source: source.meta["val"])
                cast(Callable[..., object], node.target)(*arguments, **keywords)  # fake tensors: nothing is computed
        return int(counter.get_total_flops())

    def graph_module(self) -> torch.fx.GraphModule:
        """The atom as a graph of its own, with the arguments `reads` and the results `writes`."""
        graph = torch.fx.Graph()
        copies: dict[Node, Node] = {}
        for position, node in enumerate(self.reads):
            copies[node] = graph.placeholder(f"read_{position}")
        for node in self.nodes:
            copies[node] = graph.node_copy(node, lambda argument: copies[argument])
        graph.output(tuple(copies[node] for node in self.writes))
        return torch.fx.GraphModule({}, graph)


@dataclasses.dataclass(frozen=True)
class Atoms:
    """A captured model as atoms, in an order in which every atom comes after those that it reads."""

    captured: Captured
    atoms: tuple[Atom, ...]

    @property
    def after(self) -> list[tuple[int, ...]]:
        """For each atom those whose values it reads."""
        return [atom.after for atom in self.atoms]


def split_into_atoms(captured: Captured) -> Atoms:
    """Groups the operators of a model into atoms."""
    grouping = _Grouping(captured)
    for node in captured.nodes:
        grouping.add(node)
    return grouping.finish()


def as_one_atom(captured: Captured) -> Atoms:
    """The model unsplit."""
    nodes = captured.nodes
    inside = set(nodes)
    reads = dict.fromkeys(source for node in nodes for source in node.all_input_nodes if source not in inside)
    writes = tuple(node for node in dict.fromkeys(captured.outputs) if node in inside)
    return Atoms(captured, (Atom(0, "model", tuple(nodes), tuple(reads), writes, ()),))


def _is_light(node: Node) -> bool:
    """True for what a compiler fuses to its producer: pointwise operators, views, parts of a tuple."""
    if node.target is operator.getitem or node.target in _VIEWS:
        return True
    return isinstance(node.target, torch._ops.OpOverload) and torch.Tag.pointwise in node.target.tags


class _Grouping:
    """Atoms as they grow, node by node in topological order."""

    def __init__(self, captured: Captured) -> None:
        self.captured = captured
        self.members: list[list[Node]] = []
        self.has_heavy: list[bool] = []
        self.ancestors: list[set[int]] = []
        self.atom_of: dict[Node, int] = {}

    def add(self, node: Node) -> None:
        producers = self._producers(node)
        home = self._home(node, producers)
        if home is None:
            home = len(self.members)
            self.members.append([])
            self.has_heavy.append(False)
            self.ancestors.append(set())
        self.members[home].append(node)
        self.atom_of[node] = home
        self.has_heavy[home] |= not _is_light(node)
        for producer in producers - {home}:
            self.ancestors[home] |= self.ancestors[producer] | {producer}

    def _producers(self, node: Node) -> set[int]:
        return {self.atom_of[source] for source in node.all_input_nodes if source in self.atom_of}

    def _home(self, node: Node, producers: set[int]) -> int | None:
        """The atom that the node joins; None: a new one."""
        if node.target is operator.getitem:
            (only,) = producers
            return only  # a tuple does not leave its atom
        if _is_light(node):
            return next((atom for atom in producers if producers - {atom} <= self.ancestors[atom]), None)
        if len(producers) == 1:
            (only,) = producers
            read_here_alone = all(len(source.users) == 1 for source in node.all_input_nodes if source in self.atom_of)
            if not self.has_heavy[only] and read_here_alone:
                return only
        return None

    def finish(self) -> Atoms:
        # A node that joined an atom late reads only atoms that already came before it, so sets of
        # ancestors are whole. An ancestor of an atom has fewer ancestors than the atom itself.
        order = sorted(range(len(self.members)), key=lambda atom: (len(self.ancestors[atom]), atom))
        new_index = {old: new for new, old in enumerate(order)}
        atoms = []
        for new, old in enumerate(order):
            nodes = self.members[old]
            inside = set(nodes)
            reads = dict.fromkeys(source for node in nodes for source in node.all_input_nodes if source not in inside)
            writes = tuple(node for node in nodes if any(user not in inside for user in node.users))
            after = {new_index[producer] for node in nodes for producer in self._producers(node)} - {new}
            atoms.append(Atom(new, _name(nodes), tuple(nodes), tuple(reads), writes, tuple(sorted(after))))
        return Atoms(self.captured, tuple(atoms))


def _name(nodes: list[Node]) -> str:
    heavy = [node for node in nodes if not _is_light(node)]
    return (heavy or nodes)[0].name
