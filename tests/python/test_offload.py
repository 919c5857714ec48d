"""What stays on the GPU when not all weights fit; the runs themselves are in test_gpu.py."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

import models
from placewright.torch.atoms import split_into_atoms
from placewright.torch.capture import capture
from placewright.torch.offload import BUFFERS, bytes_of, resident_atoms, streamed_time, weights_of


def test_weights_belong_to_the_atom_that_reads_them() -> None:
    model, inputs = models.branches()
    atoms = split_into_atoms(capture(model, inputs))
    counted = [node for atom in atoms.atoms for node in weights_of(atoms, atom.index)]
    assert len(counted) == len(set(counted)) == len(list(model.parameters()))
    assert sum(bytes_of(atoms, atom.index) for atom in atoms.atoms) >= sum(
        value.numel() * value.element_size() for value in model.parameters()
    )


def test_shared_weights_are_not_streamed() -> None:
    class Twice(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(8, 8)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.layer(self.layer(x))

    atoms = split_into_atoms(capture(Twice().eval(), (torch.randn(2, 8),)))
    assert len(atoms.atoms) == 2
    assert [weights_of(atoms, 0), weights_of(atoms, 1)] == [[], []]


def test_as_many_as_fit_beside_the_buffers() -> None:
    assert resident_atoms([10] * 20, 200) == 20
    assert resident_atoms([10] * 20, 100) == 10 - BUFFERS
    assert resident_atoms([30, 1, 1, 1, 1, 1], 30 + BUFFERS) == 1
    with pytest.raises(ValueError, match="100 bytes are too few: the buffers for streaming take 120"):
        resident_atoms([30] * 10, 100)


def test_streaming_takes_as_long_as_the_copies_or_as_the_work() -> None:
    sizes, count = [10] * 20, 20
    assert streamed_time(sizes, [1.0] * count, count, bandwidth=1.0) == pytest.approx(20)  # nothing is streamed
    assert streamed_time(sizes, [1.0] * count, 0, bandwidth=1.0) == pytest.approx(20 * 10 + 1)
    assert streamed_time(sizes, [1.0] * count, 0, bandwidth=1e9) == pytest.approx(20)
    # While the first ten work, the first copies go on, but no more than there are buffers.
    assert streamed_time(sizes, [10.0] * 10 + [0.0] * 10, 10, 1.0, buffers=4) == pytest.approx(100 + 60)
    assert streamed_time(sizes, [10.0] * 10 + [0.0] * 10, 10, 1.0, buffers=10) == pytest.approx(100)
