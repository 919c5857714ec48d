"""Atoms as functions that launch kernels.

Each atom is compiled on its own and for the exact shapes and strides that it meets; equal atoms (the same operators on
equally shaped arguments) are compiled once, because weights are arguments. An atom has one kernel from Inductor and,
for a convolution with bias and relu on a GPU, one more from cuDNN, which does the three at once; who measures chooses.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import cast

import torch
from torch.fx import Node

from placewright.torch.atoms import Atom, Atoms

Kernel = Callable[..., Sequence[torch.Tensor]]
Compiler = Callable[[torch.fx.GraphModule, Sequence[torch.Tensor]], Kernel]

_aten = torch.ops.aten


def inductor(module: torch.fx.GraphModule, arguments: Sequence[torch.Tensor]) -> Kernel:
    """`module` compiled by Inductor for these arguments."""
    from torch._inductor.compile_fx import compile_fx

    with torch.no_grad():
        compiled = compile_fx(module, list(arguments), config_patches={"triton.cudagraphs": False})
    return cast(Kernel, compiled)


def eager(module: torch.fx.GraphModule, arguments: Sequence[torch.Tensor]) -> Kernel:
    """`module` operator by operator, without a compiler."""
    return module


def fused_convolution(atom: Atom) -> Kernel | None:
    """cuDNN's convolution, bias and relu in one kernel; None where the atom is anything else."""
    if [node.target for node in atom.nodes] != [_aten.conv2d.default, _aten.relu.default]:
        return None
    convolution = atom.nodes[0]
    given = list(convolution.args)
    if len(given) < 3 or atom.reads != tuple(given[:3]) or len(atom.writes) != 1 or convolution.kwargs:
        return None
    defaults = [[1, 1], [0, 0], [1, 1], 1]
    stride, padding, dilation, groups = given[3:] + defaults[len(given) - 3 :]

    def call(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> Sequence[torch.Tensor]:
        return (torch.cudnn_convolution_relu(x, weight, bias, stride, padding, dilation, groups),)  # type: ignore[arg-type]

    return call


def _signature(module: torch.fx.GraphModule, arguments: Sequence[torch.Tensor]) -> str:
    """Equal for atoms that one compiled function can serve."""
    numbers: dict[Node, int] = {}
    lines = []
    for node in module.graph.nodes:
        numbers[node] = len(numbers)
        renamed = torch.fx.map_arg((node.args, node.kwargs), lambda argument: f"%{numbers[argument]}")
        lines.append(f"{node.op} {node.target if node.op == 'call_function' else ''} {renamed}")
    # Inductor compiles for the alignment that it sees.
    shapes = [(tuple(a.shape), a.stride(), a.dtype, a.device, a.data_ptr() % 16) for a in arguments]
    return "\n".join([*lines, str(shapes)])


@dataclasses.dataclass(frozen=True)
class Program:
    """A model as compiled atoms. `kernels` and `signatures` have one entry for each atom; atoms of equal signatures do
    equal work. `compiler` is the name of what made the kernels."""

    atoms: Atoms
    kernels: tuple[Kernel, ...]
    signatures: tuple[str, ...]
    compiler: str

    def with_kernels(self, kernels: Sequence[Kernel]) -> Program:
        """The same atoms with other kernels."""
        return dataclasses.replace(self, kernels=tuple(kernels))

    def launch(self, index: int, values: dict[Node, torch.Tensor]) -> None:
        """Runs an atom; `values` holds what it reads and receives what it writes."""
        atom = self.atoms.atoms[index]
        constants = self.atoms.captured.constants
        arguments = [constants[node] if node in constants else values[node] for node in atom.reads]
        values.update(zip(atom.writes, self.kernels[index](*arguments), strict=True))

    def run(self, inputs: Sequence[torch.Tensor]) -> dict[Node, torch.Tensor]:
        """All values, computed by one atom after the other."""
        values = dict(zip(self.atoms.captured.inputs, inputs, strict=True))
        with torch.no_grad():
            for atom in self.atoms.atoms:
                self.launch(atom.index, values)
        return values

    def outputs(self, values: dict[Node, torch.Tensor]) -> list[torch.Tensor]:
        """What the model returns, picked from all values."""
        constants = self.atoms.captured.constants
        return [constants[node] if node in constants else values[node] for node in self.atoms.captured.outputs]


def compile_atoms(atoms: Atoms, compiler: Compiler = inductor) -> Program:
    """Compiles every atom for the example inputs, running the model once on the way, so that every argument has the
    strides that it will have."""
    captured = atoms.captured
    compiled: dict[str, Kernel] = {}
    signatures: list[str] = []
    values = dict(zip(captured.inputs, captured.example_inputs, strict=True))
    with torch.no_grad():
        for atom in atoms.atoms:
            module = atom.graph_module()
            arguments = [captured.constants[n] if n in captured.constants else values[n] for n in atom.reads]
            signature = _signature(module, arguments)
            if signature not in compiled:
                compiled[signature] = compiler(module, arguments)
            signatures.append(signature)
            values.update(zip(atom.writes, compiled[signature](*arguments), strict=True))
    kernels = tuple(compiled[signature] for signature in signatures)
    return Program(atoms, kernels, tuple(signatures), getattr(compiler, "__qualname__", type(compiler).__qualname__))
