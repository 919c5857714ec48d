"""Measurements are kept by a digest of graph, device and versions."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

import models
import needs
import placewright.torch as placed_torch
from placewright.torch import profiles
from placewright.torch.atoms import split_into_atoms
from placewright.torch.capture import capture
from placewright.torch.kernels import compile_atoms, eager

needs.extension()


def program_of(width: int = 16, compiler=eager):
    model = torch.nn.Sequential(torch.nn.Linear(8, width), torch.nn.ReLU(), torch.nn.Linear(width, 4)).eval()
    return compile_atoms(split_into_atoms(capture(model, (torch.randn(2, 8),))), compiler)


class Counting:
    """Measures, and counts how often."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self):
        self.count += 1
        return {"times": [self.count]}


def test_what_is_known_is_not_measured_again() -> None:
    measure = Counting()
    for _ in range(2):  # other weights of the same shapes, as in another process
        assert profiles.cached(program_of(), "a", {}, measure, fresh=False) == {"times": [1]}
    assert profiles.cached(program_of(), "a", {}, measure, fresh=True) == {"times": [2]}
    assert profiles.cached(program_of(), "a", {}, measure, fresh=False) == {"times": [2]}


def test_graph_device_settings_compiler_and_versions_are_told_apart(monkeypatch) -> None:
    def other(module, arguments):
        return module

    digests = [
        profiles.digest(program_of(), "a", {}),
        profiles.digest(program_of(width=32), "a", {}),
        profiles.digest(program_of(compiler=other), "a", {}),
        profiles.digest(program_of(), "b", {}),
        profiles.digest(program_of(), "a", {"streams": 2}),
    ]
    monkeypatch.setattr(torch, "__version__", "2.0.0")
    digests.append(profiles.digest(program_of(), "a", {}))
    assert len(set(digests)) == len(digests)
    assert profiles.digest(program_of(), "a", {}) == digests[-1]


def test_edges_are_part_of_the_graph() -> None:
    """Equal atoms, one after the other and side by side."""

    class InTurn(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = torch.nn.Linear(8, 8), torch.nn.Linear(8, 8)

        def forward(self, x):
            once = self.first(x)
            return once, self.second(once)

    class SideBySide(InTurn):
        def forward(self, x):
            return self.first(x), self.second(x)

    programs = [
        compile_atoms(split_into_atoms(capture(kind().eval(), (torch.randn(2, 8),))), eager)
        for kind in (InTurn, SideBySide)
    ]
    assert programs[0].signatures == programs[1].signatures
    assert profiles.digest(programs[0], "a", {}) != profiles.digest(programs[1], "a", {})


def test_a_broken_file_counts_as_none(monkeypatch, tmp_path) -> None:
    measure = Counting()
    profiles.cached(program_of(), "a", {}, measure, fresh=False)
    (path,) = Path(os.environ["PLACEWRIGHT_CACHE"]).glob("*.json")
    path.write_text("{")
    assert profiles.cached(program_of(), "a", {}, measure, fresh=False) == {"times": [2]}
    assert profiles.cached(program_of(), "a", {}, measure, fresh=False) == {"times": [2]}


def test_no_cache_where_it_is_off_or_cannot_be_written(monkeypatch, tmp_path) -> None:
    measure = Counting()
    (tmp_path / "file").write_text("")
    for count, named in enumerate(["off", "off", str(tmp_path / "file" / "folder")], start=1):
        monkeypatch.setenv("PLACEWRIGHT_CACHE", named)
        assert profiles.cached(program_of(), "a", {}, measure, fresh=False) == {"times": [count]}


@pytest.mark.skipif(len(needs.CORES) < 2, reason="two cores are needed")
def test_compile_measures_a_model_once() -> None:
    model, inputs = models.branches()
    devices = [f"cpu:{needs.CORES[0]}", f"cpu:{needs.CORES[1]}"]
    first, second = (placed_torch.compile(model, inputs, devices=devices, compiler=eager) for _ in range(2))
    assert second.site.times == first.site.times
    again = placed_torch.compile(model, inputs, devices=devices, compiler=eager, fresh=True)
    assert again.site.times != first.site.times  # medians of clocks that count nanoseconds
