"""Capture and atoms: the pieces compute what the model computes, and what cannot be split is refused."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

import models
from placewright.torch.atoms import split_into_atoms
from placewright.torch.capture import CannotCapture, capture
from placewright.torch.kernels import compile_atoms, eager, inductor


@pytest.mark.parametrize("make", models.ALL)
def test_atoms_compute_what_the_model_computes(make) -> None:
    model, inputs = make()
    program = compile_atoms(split_into_atoms(capture(model, inputs)), eager)
    for _ in range(2):
        fresh = tuple(torch.randn_like(value) for value in inputs)
        expected = model(*(value.clone() for value in fresh))
        expected = expected if isinstance(expected, tuple) else (expected,)
        for got, wanted in zip(program.outputs(program.run(fresh)), expected, strict=True):
            torch.testing.assert_close(got, wanted)


@pytest.mark.parametrize("make", models.ALL)
def test_every_operator_is_in_one_atom_and_no_atom_reads_a_later_one(make) -> None:
    model, inputs = make()
    captured = capture(model, inputs)
    atoms = split_into_atoms(captured).atoms
    assert sorted(node.name for atom in atoms for node in atom.nodes) == sorted(node.name for node in captured.nodes)
    for position, atom in enumerate(atoms):
        assert atom.index == position
        assert all(producer < position for producer in atom.after)
        written = {node for producer in atom.after for node in atoms[producer].writes}
        assert set(atom.reads) <= written | set(captured.inputs) | set(captured.constants)


def test_a_branch_of_a_block_is_a_chain_of_atoms_with_their_epilogues() -> None:
    model, inputs = models.branches()
    atoms = split_into_atoms(capture(model, inputs)).atoms
    convolutions = [atom for atom in atoms if atom.name.startswith("conv")]
    assert len(convolutions) == 15
    assert all([node.name.split("_")[0] for node in atom.nodes] == ["conv2d", "relu"] for atom in convolutions)
    forks = [atom for atom in atoms if sum(atom.index in other.after for other in atoms) == 4]
    assert len(forks) == 2  # the stem, and the first concatenation


def test_equal_atoms_are_compiled_once() -> None:
    compiled = []

    def counting(module, arguments):
        compiled.append(module)
        return module

    model, inputs = models.branches()
    program = compile_atoms(split_into_atoms(capture(model, inputs)), counting)
    assert len(compiled) == len(set(program.signatures)) < len(program.signatures)


def test_weights_are_the_models_own() -> None:
    model, inputs = models.branches()
    program = compile_atoms(split_into_atoms(capture(model, inputs)), eager)
    with torch.no_grad():
        model.head.bias.add_(1)
    torch.testing.assert_close(program.outputs(program.run(inputs))[0], model(*inputs))


def test_inductor_compiles_an_atom() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU())
    inputs = (torch.randn(2, 8),)
    program = compile_atoms(split_into_atoms(capture(model, inputs)), inductor)
    torch.testing.assert_close(program.outputs(program.run(inputs))[0], model(*inputs))


class Counter(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x):
        self.calls.add_(1)
        return x * self.calls


class Overwrites(torch.nn.Module):
    def forward(self, x):
        return x.mul_(2) + 1


class Draws(torch.nn.Module):
    def forward(self, x):
        return x + torch.rand_like(x)


class Decides(torch.nn.Module):
    def forward(self, x):
        return x + 1 if x.sum() > 0 else x - 1


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (Counter(), "writes its buffer 'calls'"),
        (Overwrites(), "overwrites its input 'x'"),
        (Draws(), "draws random numbers"),
        (Decides(), "torch.export refuses the model"),
        (torch.nn.Dropout(0.5).train(), "is the model in eval mode"),
    ],
)
def test_what_cannot_be_split_is_refused_with_a_reason(model, reason) -> None:
    with pytest.raises(CannotCapture, match=reason):
        capture(model, (torch.randn(4),))
