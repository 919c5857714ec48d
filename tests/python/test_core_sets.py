"""Plans on sets of CPU cores, run for real."""

from __future__ import annotations

import gc
import os
import threading

import pytest

torch = pytest.importorskip("torch")

import models
import needs
from placewright.torch.atoms import split_into_atoms
from placewright.torch.capture import capture
from placewright.torch.core_sets import CoreSetRun, cores_of
from placewright.torch.kernels import compile_atoms, eager
from placewright.torch.pipeline import CoreStage, StageThreads


@pytest.mark.parametrize("make", models.ALL)
def test_two_workers_compute_what_the_model_computes(make) -> None:
    model, inputs = make()
    program = compile_atoms(split_into_atoms(capture(model, inputs)), eager)
    steps = tuple((atom.index, atom.index % 2) for atom in program.atoms.atoms)
    run = CoreSetRun(program, steps, [needs.CORES[:1], needs.CORES[-1:]])
    for _ in range(5):
        fresh = tuple(torch.randn_like(value) for value in inputs)
        expected = model(*(value.clone() for value in fresh))
        expected = expected if isinstance(expected, tuple) else (expected,)
        for got, wanted in zip(run(*fresh), expected, strict=True):
            torch.testing.assert_close(got, wanted)


def test_workers_are_pinned_and_the_caller_is_not() -> None:
    model, inputs = models.branches()
    seen = []

    def watching(module, arguments):
        def call(*tensors):
            seen.append((os.sched_getaffinity(0), torch.get_num_threads()))
            return module(*tensors)

        return call

    program = compile_atoms(split_into_atoms(capture(model, inputs)), watching)
    seen.clear()
    CoreSetRun(program, tuple((a.index, 0) for a in program.atoms.atoms), [needs.CORES[:1]])(*inputs)
    assert seen and all(entry == ({needs.CORES[0]}, 1) for entry in seen)
    assert os.sched_getaffinity(0) == set(needs.CORES)


def test_workers_end_before_their_run_is_gone() -> None:
    """A thread that outlives the interpreter is killed inside torch, which aborts the process."""
    model, inputs = models.branches()
    program = compile_atoms(split_into_atoms(capture(model, inputs)), eager)
    others = set(threading.enumerate())
    run = CoreSetRun(
        program, tuple((a.index, a.index % 2) for a in program.atoms.atoms), [needs.CORES[:1], needs.CORES[-1:]]
    )
    stages = StageThreads([CoreStage(program, [0], needs.CORES[:1]), CoreStage(program, [1], needs.CORES[-1:])])
    run(*inputs)
    workers = set(threading.enumerate()) - others
    assert len(workers) == 4
    del run, stages
    gc.collect()
    assert not any(worker.is_alive() for worker in workers)


def test_a_failing_atom_reaches_the_caller_and_the_next_call_works() -> None:
    model, inputs = models.branches()
    program = compile_atoms(split_into_atoms(capture(model, inputs)), eager)
    failing = [True]

    def sometimes(*tensors):
        if failing[0]:
            raise RuntimeError("out of luck")
        return program.kernels[3](*tensors)

    kernels = list(program.kernels)
    kernels[3] = sometimes
    steps = tuple((atom.index, atom.index % 2) for atom in program.atoms.atoms)
    run = CoreSetRun(program.with_kernels(kernels), steps, [needs.CORES[:1], needs.CORES[-1:]])
    with pytest.raises(RuntimeError, match="out of luck"):
        run(*inputs)
    failing[0] = False
    torch.testing.assert_close(run(*inputs)[0], model(*inputs))


def test_names_of_core_sets() -> None:
    assert cores_of(f"cpu:{needs.CORES[0]}") == (needs.CORES[0],)
    for wrong in ("gpu:0", "cpu", "cpu:x", "cpu:99999", f"cpu:{needs.CORES[0]},{needs.CORES[0]}"):
        with pytest.raises(ValueError, match=r"names no cores|cannot use"):
            cores_of(wrong)
