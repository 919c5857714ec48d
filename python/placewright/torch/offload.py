"""Models larger than the memory of their GPU: `compile_offloaded`.

    fast = placewright.torch.compile_offloaded(model, (x,), memory=8 << 30)    # the model is on the CPU
    y = fast(x)                                                               # x and y too, or on the GPU

The first atoms keep their weights on the GPU. For the others there are two ways, and the faster one is used:

* `streamed`: their weights lie in pinned memory and are copied while the GPU works, through a few buffers. It is one
  CUDA graph of two streams: a copy waits until the atom that last used its buffer has ended, an atom for its copies.
* `tail on the CPU`: they run on the CPU, and what crosses is copied.

A mixture of both is no better than the better one: streaming ahead while the CPU computes takes buffers, for which as
many weights lose their place on the GPU.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch.fx import Node
from torch.utils import _pytree as pytree

from placewright.torch.atoms import Atoms, split_into_atoms
from placewright.torch.capture import capture
from placewright.torch.kernels import Compiler, Program, compile_atoms, eager, inductor
from placewright.torch.placed import WrongOutputs, outputs_equal
from placewright.torch.streams import capturing
from placewright.torch.timing import Spread, compare_calls

# Buffers through which weights are streamed, each as large as the largest atom needs.
BUFFERS = 4

_ALIGNMENT = 256


def weights_of(atoms: Atoms, index: int) -> list[Node]:
    """The parameters that an atom alone reads. What several atoms share, and buffers, stay where they are read."""
    atom, constants = atoms.atoms[index], atoms.captured.constants
    return [
        node
        for node in atom.reads
        if isinstance(constants.get(node), torch.nn.Parameter) and set(node.users) <= set(atom.nodes)
    ]


def bytes_of(atoms: Atoms, index: int) -> int:
    """The memory that an atom's weights take, each of them aligned."""
    return sum(_aligned(atoms.captured.constants[node]) for node in weights_of(atoms, index))


def _aligned(value: torch.Tensor) -> int:
    size = value.numel() * value.element_size()
    return -(-size // _ALIGNMENT) * _ALIGNMENT


def resident_atoms(sizes: Sequence[int], memory: int) -> int:
    """How many atoms, from the first on, keep their weights on the GPU, so that these and the buffers for the others
    fit. Raises ValueError where not even the buffers do."""
    if sum(sizes) <= memory:
        return len(sizes)
    kept = total = 0
    while total + sizes[kept] + BUFFERS * max(sizes[kept + 1 :], default=0) <= memory:
        total += sizes[kept]
        kept += 1
    if kept == 0 and BUFFERS * max(sizes) > memory:
        raise ValueError(f"{memory} bytes are too few: the buffers for streaming take {BUFFERS * max(sizes)}")
    return kept


def streamed_time(
    sizes: Sequence[int], times: Sequence[float], kept: int, bandwidth: float, buffers: int = BUFFERS
) -> float:
    """What a call takes whose weights are streamed from the atom `kept` on, in the unit of `times`: a copy waits for
    the one before it and until the atom that last used its buffer has ended, an atom for its copy. `bandwidth` is bytes
    for each unit of time."""
    ends = [0.0] * len(sizes)
    copied = now = 0.0
    for atom, time in enumerate(times):
        if atom >= kept:
            free = ends[atom - buffers] if atom - buffers >= kept else 0.0
            copied = max(copied, free) + sizes[atom] / bandwidth
            now = max(now, copied)
        now += time
        ends[atom] = now
    return now


class _Moved(Mapping[Node, torch.Tensor]):
    """Constants that are copied to the GPU whenever they are asked for, and not kept there."""

    def __init__(self, constants: Mapping[Node, torch.Tensor]) -> None:
        self.constants = constants

    def __getitem__(self, node: Node) -> torch.Tensor:
        return self.constants[node].detach().contiguous().cuda()

    def __contains__(self, node: object) -> bool:
        return node in self.constants

    def __iter__(self) -> Iterator[Node]:
        return iter(self.constants)

    def __len__(self) -> int:
        return len(self.constants)


def _with_constants(program: Program, constants: Mapping[Node, torch.Tensor]) -> Program:
    captured = dataclasses.replace(program.atoms.captured, constants=constants)
    return dataclasses.replace(program, atoms=Atoms(captured, program.atoms.atoms))


class StreamedRun:
    """The whole model on the GPU; weights of the atoms from `kept` on are streamed."""

    def __init__(self, program: Program, source: Atoms, kept: int) -> None:
        count = len(source.atoms)
        self.pinned: dict[Node, torch.Tensor] = {}
        self.buffers: list[torch.Tensor] = []
        weights = {node: program.atoms.captured.constants[node] for node in _on_gpu(source, kept)}
        if kept < count:
            largest = max(bytes_of(source, atom) for atom in range(kept, count))
            self.buffers = [torch.empty(largest, dtype=torch.uint8, device="cuda") for _ in range(BUFFERS)]
        self.buffer_of = {atom: position % BUFFERS for position, atom in enumerate(range(kept, count))}
        for atom, buffer in self.buffer_of.items():
            offset = 0
            for node in weights_of(source, atom):
                value = source.captured.constants[node].detach().contiguous()
                self.pinned[node] = value.pin_memory()
                place = self.buffers[buffer][offset : offset + value.numel() * value.element_size()]
                weights[node] = place.view(value.dtype).view(value.shape)
                offset += _aligned(value)
        self.program = _with_constants(program, weights)
        captured = self.program.atoms.captured
        self.inputs = [value.cuda() for value in captured.example_inputs]
        self.values = dict(zip(captured.inputs, self.inputs, strict=True))
        self.graph = torch.cuda.CUDAGraph()
        with capturing(self.graph, torch.cuda.Stream()):
            self._launch(torch.cuda.current_stream(), torch.cuda.Stream(), weights)
        self.outputs = self.program.outputs(self.values)

    def _launch(
        self, compute: torch.cuda.Stream, copies: torch.cuda.Stream, weights: Mapping[Node, torch.Tensor]
    ) -> None:
        copies.wait_stream(compute)
        free: dict[int, torch.cuda.Event] = {}
        for atom in self.program.atoms.atoms:
            buffer = self.buffer_of.get(atom.index)
            if buffer is not None:
                if buffer in free:
                    copies.wait_event(free[buffer])
                with torch.cuda.stream(copies):
                    for node in atom.reads:
                        if node in self.pinned:
                            weights[node].copy_(self.pinned[node], non_blocking=True)
                compute.wait_stream(copies)
            self.program.launch(atom.index, self.values)
            if buffer is not None:
                free[buffer] = torch.cuda.Event()
                free[buffer].record(compute)

    def __call__(self, *inputs: torch.Tensor) -> list[torch.Tensor]:
        """The outputs, on the GPU, once the current stream has reached them; the next call overwrites them."""
        for place, value in zip(self.inputs, inputs, strict=True):
            place.copy_(value, non_blocking=True)
        self.graph.replay()
        return self.outputs


def _on_gpu(atoms: Atoms, kept: int) -> list[Node]:
    """The constants that stay on the GPU: all but the weights of the atoms from `kept` on."""
    streamed = {node for atom in range(kept, len(atoms.atoms)) for node in weights_of(atoms, atom)}
    read = dict.fromkeys(node for atom in atoms.atoms for node in atom.reads if node in atoms.captured.constants)
    return [node for node in read if node not in streamed]


class TailOnCpu:
    """The first `kept` atoms as a CUDA graph, the others on the CPU with the weights that are there already."""

    def __init__(self, program: Program, source: Atoms, kept: int) -> None:
        self.tail = range(kept, len(source.atoms))
        constants = {
            node: program.atoms.captured.constants[node]
            for atom in source.atoms[:kept]
            for node in atom.reads
            if node in source.captured.constants
        }
        self.program = _with_constants(program, constants)
        self.on_cpu = compile_atoms(source, eager)
        captured = source.captured
        self.inputs = [value.cuda() for value in program.atoms.captured.example_inputs]
        self.values = dict(zip(captured.inputs, self.inputs, strict=True))
        self.graph = torch.cuda.CUDAGraph()
        with capturing(self.graph, torch.cuda.Stream()):
            for atom in range(kept):
                self.program.launch(atom, self.values)
        needed = {node for atom in source.atoms[kept:] for node in atom.reads} | set(captured.outputs)
        self.crossing = {
            node: torch.empty(value.shape, dtype=value.dtype, pin_memory=True)
            for node, value in self.values.items()
            if node in needed
        }

    def __call__(self, *inputs: torch.Tensor) -> list[torch.Tensor]:
        """The outputs, on the GPU."""
        for place, value in zip(self.inputs, inputs, strict=True):
            place.copy_(value, non_blocking=True)
        self.graph.replay()
        for node, place in self.crossing.items():
            place.copy_(self.values[node], non_blocking=True)
        torch.cuda.current_stream().synchronize()
        values = dict(self.crossing)
        with torch.no_grad():
            for atom in self.tail:
                self.on_cpu.launch(atom, values)
        return [value.cuda() for value in self.on_cpu.outputs(values)]


class Offloaded:
    """A model whose weights do not all fit on the GPU. `variants` are the two ways to run it. `times` are the
    milliseconds of a call of each, and `chosen` is the faster one. `resident` atoms have their weights on the GPU.
    `predicted` is the expected time of streaming, in milliseconds."""

    def __init__(self, model: torch.nn.Module, atoms: Atoms, resident: int) -> None:
        self.model = model
        self.atoms = atoms
        self.resident = resident
        self.variants: dict[str, Callable[..., list[torch.Tensor]]] = {}
        self.times: dict[str, Spread] = {}
        self.chosen = ""
        self.predicted = 0.0

    def __call__(self, *args: Any) -> Any:
        """What the model returns, on the GPU; the next call overwrites it."""
        outputs = self.variants[self.chosen](*pytree.tree_leaves((args, {})))
        return pytree.tree_unflatten(outputs, self.atoms.captured.out_spec)

    def measure(self) -> dict[str, Spread]:
        """Milliseconds for a call of each way, waiting for its end."""
        examples = self.atoms.captured.example_inputs
        calls = {name: functools.partial(_finish, run, examples) for name, run in self.variants.items()}
        self.times = compare_calls(calls, on_gpu=False, rounds=5, repeats=3)
        return self.times


def _finish(run: Callable[..., object], inputs: Sequence[torch.Tensor]) -> None:
    run(*inputs)
    torch.cuda.synchronize()


def compile_offloaded(
    model: torch.nn.Module, example_inputs: Sequence[Any], *, memory: int, compiler: Compiler | None = None
) -> Offloaded:
    """A model on the CPU that runs with at most `memory` bytes of its weights, and buffers for them, on the GPU."""
    atoms = split_into_atoms(capture(model, example_inputs))
    sizes = [bytes_of(atoms, atom.index) for atom in atoms.atoms]
    kept = resident_atoms(sizes, memory)
    on_gpu = dataclasses.replace(
        atoms.captured,
        constants=_Moved(atoms.captured.constants),
        example_inputs=tuple(value.cuda() for value in atoms.captured.example_inputs),
    )
    program = compile_atoms(Atoms(on_gpu, atoms.atoms), compiler or inductor)
    offloaded = Offloaded(model, atoms, kept)
    offloaded.predicted = streamed_time(sizes, _times_on_gpu(program), kept, _bandwidth())
    offloaded.variants["streamed"] = StreamedRun(program, atoms, kept)
    if kept < len(atoms.atoms):
        offloaded.variants["tail on the CPU"] = TailOnCpu(program, atoms, kept)
    _check_outputs(offloaded)
    times = offloaded.measure()
    offloaded.chosen = min(times, key=lambda name: times[name].median)
    return offloaded


def _times_on_gpu(program: Program) -> list[float]:
    """Milliseconds for each atom in a CUDA graph, its weights being there; equal atoms are measured once."""
    captured = program.atoms.captured
    values = dict(zip(captured.inputs, captured.example_inputs, strict=True))
    known: dict[str, float] = {}
    with torch.no_grad():
        for atom, signature in zip(program.atoms.atoms, program.signatures, strict=True):
            arguments = [captured.constants[n] if n in captured.constants else values[n] for n in atom.reads]
            call = functools.partial(program.kernels[atom.index], *arguments)
            values.update(zip(atom.writes, call(), strict=True))
            if signature not in known:
                known[signature] = _time_in_graph(call)
    return [known[signature] for signature in program.signatures]


def _time_in_graph(call: Callable[[], object], launches: int = 20) -> float:
    """Milliseconds for one of several launches in a row, without what it takes Python to launch them."""
    graph = torch.cuda.CUDAGraph()
    with capturing(graph, torch.cuda.Stream()):
        for _ in range(launches):
            call()
    return compare_calls({"atom": graph.replay}, on_gpu=True, rounds=3, repeats=3)["atom"].median / launches


def _bandwidth(size: int = 1 << 26) -> float:
    """Bytes per millisecond from pinned memory to the GPU."""
    source = torch.empty(size, dtype=torch.uint8).pin_memory()
    target = torch.empty(size, dtype=torch.uint8, device="cuda")
    copy = functools.partial(target.copy_, source, non_blocking=True)
    return size / compare_calls({"copy": copy}, on_gpu=True, rounds=3, repeats=5)["copy"].median


def _check_outputs(offloaded: Offloaded) -> None:
    captured = offloaded.atoms.captured
    args, kwargs = pytree.tree_unflatten(list(captured.example_inputs), captured.in_spec)
    with torch.no_grad():
        wanted = pytree.tree_leaves(offloaded.model(*args, **kwargs))
    for name, run in offloaded.variants.items():
        for position, (got, expected) in enumerate(zip(run(*captured.example_inputs), wanted, strict=True)):
            if not outputs_equal(got.cpu(), expected):
                raise WrongOutputs(f"output {position} of '{name}' differs from the model's")
