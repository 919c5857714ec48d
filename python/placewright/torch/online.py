"""Models that arrive, and may be cancelled, while others run: `compile_online`.

    online = placewright.torch.compile_online([(first, (x,)), (second, (y,))], devices=["cpu:0", "cpu:1"])
    arrival = online.submit(0, x)      # the first model of the catalogue
    other = online.submit(1, y)
    other.cancel()                     # what has not started never starts
    result = arrival.result()

The models of the catalogue are captured, compiled and measured beforehand. A model runs in a few pieces, cut where
everything before must end before anything after starts: runs of atoms, which on a GPU are CUDA graphs. At every
arrival and every cancellation the models are queued with the shortest first, each where it would end soonest. Then all
pieces that have not started are planned for the least sum of completion times, while the devices go on. The plan is
followed if it promises a tenth less than the queues and nothing has changed meanwhile; what has started stays where it
is.

A piece starts when its device has done what the plan has before it, when the pieces whose values it reads have ended
and, where devices share something, those too that the plan has ended by then: orders are kept, times are not.
"""

from __future__ import annotations

import bisect
import collections
import concurrent.futures
import dataclasses
import functools
import itertools
import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol

import torch
from torch.utils import _pytree as pytree

import placewright
from placewright.torch.atoms import split_into_atoms
from placewright.torch.capture import capture
from placewright.torch.core_sets import cores_of, measure_core_sets, pin_this_thread
from placewright.torch.documents import Site
from placewright.torch.kernels import Compiler, Program, compile_atoms, inductor
from placewright.torch.schedules import Costs, blocks, fit_shares
from placewright.torch.stream_search import stream_site
from placewright.torch.streams import StreamGraph, capturing
from placewright.torch.timing import AtomClock, compare_calls, slowdown_of_graphs

Models = Sequence[tuple[torch.nn.Module, Sequence[Any]]]

Cancelled = concurrent.futures.CancelledError


class Model(Protocol):
    """A model of the catalogue, cut into pieces. A state belongs to one arrival."""

    @property
    def after(self) -> Sequence[Sequence[int]]:
        """For each piece those that it reads from."""

    @property
    def out_spec(self) -> Any:
        """How the outputs are nested."""

    def begin(self, inputs: Sequence[torch.Tensor]) -> Any:
        """The state of a new arrival. Waits where there is room for no more at once."""

    def run(self, state: Any, piece: int) -> None:
        """Runs a piece to its end, in the thread of a device."""

    def outputs(self, state: Any) -> list[torch.Tensor]:
        """The outputs, after the last piece."""

    def release(self, state: Any) -> None:
        """Nothing of the arrival runs any more; it may have been cancelled."""


def _chain(pieces: int) -> list[tuple[int, ...]]:
    return [(piece - 1,) if piece else () for piece in range(pieces)]


class CoreModel:
    """A model whose pieces run on core sets."""

    def __init__(self, program: Program, pieces: Sequence[Sequence[int]]) -> None:
        self.program = program
        self.pieces = pieces
        self.after = _chain(len(pieces))
        self.out_spec = program.atoms.captured.out_spec

    def begin(self, inputs: Sequence[torch.Tensor]) -> dict[Any, torch.Tensor]:
        """The values so far."""
        return dict(zip(self.program.atoms.captured.inputs, inputs, strict=True))

    def run(self, state: dict[Any, torch.Tensor], piece: int) -> None:
        """Launches its atoms."""
        for atom in self.pieces[piece]:
            self.program.launch(atom, state)

    def outputs(self, state: dict[Any, torch.Tensor]) -> list[torch.Tensor]:
        """The outputs among the values."""
        return self.program.outputs(state)

    def release(self, state: dict[Any, torch.Tensor]) -> None:
        """Nothing: the values go with the arrival."""


@dataclasses.dataclass
class _Copy:
    """The memory and the graphs of one arrival on a GPU."""

    inputs: list[torch.Tensor]
    graphs: list[torch.cuda.CUDAGraph]
    outputs: list[torch.Tensor]


@dataclasses.dataclass
class _OnGpu:
    copy: _Copy
    given: Sequence[torch.Tensor]
    ready: torch.cuda.Event
    results: list[torch.Tensor]


class GraphModel:
    """A model as a chain of CUDA graphs, with as many copies of them as arrivals of it may run at once."""

    def __init__(self, program: Program, pieces: Sequence[Sequence[int]], copies: int) -> None:
        self.program = program
        self.after = _chain(len(pieces))
        self.out_spec = program.atoms.captured.out_spec
        self.free: queue.SimpleQueue[_Copy] = queue.SimpleQueue()
        for _ in range(copies):
            self.free.put(self._copy(pieces))

    def _copy(self, pieces: Sequence[Sequence[int]]) -> _Copy:
        captured = self.program.atoms.captured
        inputs = [value.clone() for value in captured.example_inputs]
        values = dict(zip(captured.inputs, inputs, strict=True))
        graphs = []
        for piece in pieces:
            graphs.append(torch.cuda.CUDAGraph())
            with capturing(graphs[-1], torch.cuda.Stream()):
                for atom in piece:
                    self.program.launch(atom, values)
        return _Copy(inputs, graphs, self.program.outputs(values))

    def begin(self, inputs: Sequence[torch.Tensor]) -> _OnGpu:
        """A copy, once one is free. The results are the caller's memory, on its stream."""
        copy = self.free.get()
        results = [torch.empty_like(value) for value in copy.outputs]
        ready = torch.cuda.Event()
        ready.record()
        return _OnGpu(copy, inputs, ready, results)

    def run(self, state: _OnGpu, piece: int) -> None:
        """Replays a graph on the device's stream, and waits for its end."""
        stream = torch.cuda.current_stream()
        if piece == 0:
            stream.wait_event(state.ready)
            for place, value in zip(state.copy.inputs, state.given, strict=True):
                place.copy_(value)
        state.copy.graphs[piece].replay()
        if piece == len(self.after) - 1:
            for place, value in zip(state.results, state.copy.outputs, strict=True):
                place.copy_(value)
        stream.synchronize()

    def outputs(self, state: _OnGpu) -> list[torch.Tensor]:
        """The caller's memory, filled."""
        return state.results

    def release(self, state: _OnGpu) -> None:
        """The copy is free again."""
        self.free.put(state.copy)


@dataclasses.dataclass(eq=False)
class _Piece:
    arrival: Arrival
    index: int
    device: int = 0
    started: float | None = None
    ended: bool = False
    waits: Sequence[_Piece] = ()

    @property
    def name(self) -> str:
        return f"{self.arrival.number}.{self.index}"

    def may_start(self) -> bool:
        before = (self.arrival.pieces[index] for index in self.arrival.after[self.index])
        return all(piece.ended for piece in itertools.chain(before, self.waits))


class Arrival:
    """A model on its way. `completion` is the time from its arrival to its end in milliseconds, once it has ended."""

    def __init__(self, online: Online, number: int, model: int, state: Any) -> None:
        self.online = online
        self.number = number
        self.model = model
        self.after = online.models[model].after
        self.pieces = [_Piece(self, index) for index in range(len(self.after))]
        self.state = state
        self.arrived = time.perf_counter()
        self.completion: float | None = None
        self.is_cancelled = False
        self.outputs: concurrent.futures.Future[Any] = concurrent.futures.Future()

    @property
    def is_running(self) -> bool:
        """Whether a piece has started and not ended."""
        return any(piece.started is not None and not piece.ended for piece in self.pieces)

    def result(self, timeout: float | None = None) -> Any:
        """What the model returns, once it has ended. Raises Cancelled, or what a piece raised."""
        return self.outputs.result(timeout)

    def cancel(self) -> bool:
        """Stops the model: pieces that have not started never start. False where it had ended before."""
        return self.online.cancel(self)


@dataclasses.dataclass(frozen=True)
class Decision:
    """A plan made while models ran: how long that took, in milliseconds, the plan of all pieces that had not ended
    when it was begun, and whether it was followed."""

    milliseconds: float
    plan: placewright.Plan
    is_followed: bool


# A plan is followed where it promises less than this part of what the shortest first would take.
# Its times are those of pieces alone, so a smaller gain than that may be none.
_WORTHWHILE = 0.9


class Online:
    """Devices at work on models that arrive; close it, or use it as a context, to end their threads. `site` has the
    pieces' times: those of all models of the catalogue, one after the other. `contexts` makes for each device what
    its thread works in. `decisions` are the plans that were made."""

    def __init__(
        self,
        models: Sequence[Model],
        site: Site,
        contexts: Sequence[Callable[[], AbstractContextManager[object]]],
        planner: str,
        time_limit: float,
    ) -> None:
        self.models = models
        self.site = site
        self.planner = planner
        self.time_limit = time_limit
        self.decisions: list[Decision] = []
        self.decision_time = 1e6 * time_limit  # of the last one, in microseconds
        self.cluster = site.cluster()
        self.first = [0, *itertools.accumulate(len(model.after) for model in models)]
        self.active: list[Arrival] = []
        self.queues: list[list[_Piece]] = [[] for _ in site.devices]
        uses = [set(used) for used in site.uses] or [set() for _ in site.devices]
        # For each device itself and those that share something with it.
        self.rivals = [
            [other for other, theirs in enumerate(uses) if other == device or theirs & mine]
            for device, mine in enumerate(uses)
        ]
        self.numbers = itertools.count()
        self.changed = threading.Condition()
        self.planning = threading.Lock()
        self.changes = 0  # arrivals and cancellations so far, and how many of them the last plan knew of
        self.planned = 0
        self.is_closed = False
        self.threads = [
            threading.Thread(target=self._work, args=(device, context), daemon=True)
            for device, context in enumerate(contexts)
        ]
        for thread in self.threads:
            thread.start()

    def submit(self, model: int, *args: Any) -> Arrival:
        """A model of the catalogue arrives with its arguments; returns once it is planned, not when it has ended."""
        if self.is_closed:
            raise ValueError("nothing can arrive any more: it was closed")
        arrival = Arrival(self, next(self.numbers), model, self.models[model].begin(pytree.tree_leaves((args, {}))))
        with self.changed:
            self.active.append(arrival)
            self.changes += 1
            self._queue_shortest_first(time.perf_counter())
            left = sum(self._time(piece) for other in self.active for piece in other.pieces if piece.started is None)
            is_alone = len(self.active) == 1
            self.changed.notify_all()
        if not is_alone and left > self.decision_time:  # else all is over before a plan is there
            self._plan()
        return arrival

    def _time(self, piece: _Piece, device: int | None = None) -> float:
        """Microseconds that a piece takes alone, on a device or on its fastest."""
        position = self.first[piece.arrival.model] + piece.index
        if device is not None:
            return self.site.times[self.site.kind_of[device]][position]
        return min(times[position] for times in self.site.times.values())

    def _rest(self, piece: _Piece, now: float) -> float:
        """Microseconds that a running piece has left."""
        return max(self._time(piece, piece.device) - 1e6 * (now - (piece.started or now)), 1.0)

    def _queue_shortest_first(self, now: float) -> float:
        """Queues what has not started: the arrival with the least left first, each on the device where it would end
        soonest if devices that share something take turns. Returns the sum of the expected ends in microseconds. The
        lock is held."""
        free = [0.0] * len(self.queues)
        since = dict.fromkeys(self.active, 0.0)
        for arrival in self.active:
            for piece in arrival.pieces:
                if piece.started is not None and not piece.ended:
                    since[arrival] = free[piece.device] = self._rest(piece, now)
        waiting = {
            arrival: [piece for piece in arrival.pieces if piece.started is None]
            for arrival in self.active
            if not arrival.is_cancelled
        }
        for queued in self.queues:
            queued.clear()
        total = 0.0
        for arrival, pieces in sorted(waiting.items(), key=lambda entry: sum(map(self._time, entry[1]))):
            if not pieces:
                total += since[arrival]
                continue
            ends = [
                max(since[arrival], *(free[rival] for rival in rivals))
                + sum(self._time(piece, device) for piece in pieces)
                for device, rivals in enumerate(self.rivals)
            ]
            device = ends.index(min(ends))
            free[device] = ends[device]
            total += ends[device]
            for piece in pieces:
                piece.device, piece.waits = device, ()
            self.queues[device] += pieces
        return total

    def cancel(self, arrival: Arrival) -> bool:
        """Stops an arrival; see Arrival.cancel."""
        with self.changed:
            if arrival not in self.active:
                return False
            self._give_up(arrival)
            self.changes += 1
            self._queue_shortest_first(time.perf_counter())
            if not arrival.is_running:
                self._leave(arrival)
        self._plan()
        return True

    def close(self) -> None:
        """Waits for all that has arrived, then ends the threads."""
        with self.changed:
            self.is_closed = True
            while self.active:
                self.changed.wait()
            self.changed.notify_all()
        for thread in self.threads:
            thread.join()

    def __enter__(self) -> Online:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _plan(self) -> None:
        """Plans all that has not started; devices go on meanwhile. Those who waited while another planned are served
        by the next plan together."""
        with self.changed:
            mine = self.changes
        with self.planning:
            if self.planned >= mine:
                return
            begin = time.perf_counter()
            with self.changed:
                self.planned = self.changes
                arrivals = [arrival for arrival in self.active if not arrival.is_cancelled]
                pieces = [piece for arrival in arrivals for piece in arrival.pieces if not piece.ended]
                if not pieces:
                    return
                expected = self._queue_shortest_first(begin)
                document = self._document(arrivals, pieces, begin)
            problem = placewright.Problem.from_document(document)
            plan = placewright.plan(problem, self.planner, time_limit=self.time_limit)
            with self.changed:
                is_followed = self.changes == self.planned and plan.value < _WORTHWHILE * expected
                if is_followed:
                    self._install(pieces, plan)
                    self.changed.notify_all()
            self.decision_time = 1e6 * (time.perf_counter() - begin)
            self.decisions.append(Decision(self.decision_time / 1e3, plan, is_followed))

    def _document(self, arrivals: Sequence[Arrival], pieces: Sequence[_Piece], now: float) -> dict[str, Any]:
        """What a problem file holds about pieces that have not ended; running ones stay on their devices for the rest
        of their times."""
        left = set(pieces)
        ops, tensors = [], []
        for piece in pieces:
            position = self.first[piece.arrival.model] + piece.index
            op: dict[str, Any] = {"name": piece.name, "model": str(piece.arrival.number)}
            op["time"] = [times[position] for times in self.site.times.values()]
            if self.site.shares:
                op["share"] = {kind: shares[position] for kind, shares in self.site.shares.items()}
            if piece.started is not None:
                op["time"] = [self._rest(piece, now)] * len(op["time"])
                op["pin"] = self.site.devices[piece.device]
            ops.append(op)
            mine = piece.arrival
            users = [other.name for other in mine.pieces if other in left and piece.index in mine.after[other.index]]
            if users:
                tensors.append({"from": piece.name, "to": users, "bytes": 0})
        return {
            "placewright": "problem",
            "version": 2,
            "name": "online",
            "unit": "us",
            "objective": "total-completion",
            **self.cluster,
            "rules": {"congestion": False},
            "models": [{"name": str(arrival.number)} for arrival in arrivals],
            "ops": ops,
            "tensors": tensors,
        }

    def _install(self, pieces: Sequence[_Piece], plan: placewright.Plan) -> None:
        """Queues what has not started as the plan orders it."""
        assert plan.start is not None and plan.end is not None  # it has a value
        starts, ends, devices = plan.start.tolist(), plan.end.tolist(), plan.devices.tolist()
        for queued in self.queues:
            queued.clear()
        done: list[tuple[list[float], list[_Piece]]] = [([], []) for _ in self.queues]
        for op in sorted(range(len(pieces)), key=lambda op: (starts[op], op)):
            piece, device = pieces[op], devices[op]
            if piece.started is None and not piece.arrival.is_cancelled:
                piece.device = device
                piece.waits = self._ended_by(done, starts[op]) if self.cluster["resources"] else ()
                self.queues[device].append(piece)
            done[device][0].append(ends[op])
            done[device][1].append(piece)

    @staticmethod
    def _ended_by(done: Sequence[tuple[list[float], list[_Piece]]], start: float) -> list[_Piece]:
        """On each device the last piece that the plan has ended by then."""
        found = []
        for ends, pieces in done:
            position = bisect.bisect_right(ends, start * (1 + 1e-9))
            if position:
                found.append(pieces[position - 1])
        return found

    def _work(self, device: int, context: Callable[[], AbstractContextManager[object]]) -> None:
        """What the thread of a device does."""
        with torch.no_grad(), context():
            while (piece := self._take(device)) is not None:
                error = None
                try:
                    self.models[piece.arrival.model].run(piece.arrival.state, piece.index)
                except BaseException as raised:  # the arrival's result raises it
                    error = raised
                self._finish(piece, error)

    def _take(self, device: int) -> _Piece | None:
        """The next piece of a device, marked as started, once it may start; None: there will be no more."""
        mine = self.queues[device]
        with self.changed:
            while not (mine and mine[0].may_start()):
                if self.is_closed and not self.active:
                    return None
                self.changed.wait()
            piece = mine.pop(0)
            piece.started = time.perf_counter()
            return piece

    def _finish(self, piece: _Piece, error: BaseException | None) -> None:
        """A piece has ended, perhaps by an error, which ends its arrival."""
        arrival = piece.arrival
        with self.changed:
            piece.ended = True
            if error is not None and not arrival.outputs.done():
                arrival.outputs.set_exception(error)
                self._give_up(arrival)
            if arrival.is_cancelled and not arrival.is_running:
                self._leave(arrival)
            elif all(other.ended for other in arrival.pieces):
                arrival.completion = 1e3 * (time.perf_counter() - arrival.arrived)
                self._leave(arrival)
            self.changed.notify_all()

    def _give_up(self, arrival: Arrival) -> None:
        """Nothing more of an arrival starts; the lock is held."""
        arrival.is_cancelled = True
        for mine in self.queues:
            mine[:] = [piece for piece in mine if piece.arrival is not arrival]

    def _leave(self, arrival: Arrival) -> None:
        """The arrival has ended, or nothing of it runs any more; the lock is held."""
        self.active.remove(arrival)
        for piece in arrival.pieces:
            piece.ended = True  # nothing waits for what never starts
        model = self.models[arrival.model]
        if not arrival.is_cancelled:
            arrival.outputs.set_result(pytree.tree_unflatten(model.outputs(arrival.state), model.out_spec))
        elif not arrival.outputs.done():
            arrival.outputs.set_exception(Cancelled(f"arrival {arrival.number} was cancelled"))
        model.release(arrival.state)
        arrival.state = None
        self.changed.notify_all()


def compile_online(
    models: Models,
    *,
    devices: Sequence[str] | None = None,
    planner: str = "search",
    time_limit: float = 0.005,
    copies: int = 2,
    shortest_piece: float | None = None,
    compiler: Compiler | None = None,
) -> Online:
    """Starts devices that wait for arrivals of these models, each given with example inputs.

    `devices` are core sets, for inputs on the CPU. Without it they are streams of the GPU that the inputs are on;
    there at most `copies` arrivals of a model run at once, and one more waits in `submit`. A decision takes at most
    `time_limit` seconds of the planner. A piece takes at least `shortest_piece` microseconds if its model is long
    enough; the default is 300 on a GPU and 500 on cores, which is more than handing a piece over costs.
    """
    if not models:
        raise ValueError("there are no models")
    on_gpu = {value.is_cuda for _, inputs in models for value in pytree.tree_leaves((tuple(inputs), {}))}
    if len(on_gpu) != 1:
        raise ValueError("the inputs of all models must be on one GPU, or all on the CPU")
    if on_gpu == {True} and devices is not None:
        raise ValueError("devices are core sets; inputs on a GPU run on its streams")
    if on_gpu == {False} and devices is None:
        raise ValueError("inputs on the CPU need devices, such as ['cpu:0', 'cpu:1']")
    programs = [
        compile_atoms(split_into_atoms(capture(model, inputs)), compiler or inductor) for model, inputs in models
    ]
    if devices is None:
        return _on_streams(programs, planner, time_limit, copies, 300.0 if shortest_piece is None else shortest_piece)
    models_on_cores: list[Model] = []
    times: dict[str, list[float]] = collections.defaultdict(list)
    for program in programs:
        site = measure_core_sets(program, devices)
        alone = next(iter(site.times.values()))
        pieces = pieces_of(alone, program.atoms.after, 500.0 if shortest_piece is None else shortest_piece)
        models_on_cores.append(CoreModel(program, pieces))
        for kind, found in site.times.items():
            times[kind] += [sum(found[atom] for atom in piece) for piece in pieces]
    contexts = [functools.partial(_pinned, cores_of(device)) for device in devices]
    return Online(models_on_cores, dataclasses.replace(site, times=times), contexts, planner, time_limit)


@contextmanager
def _pinned(cores: Sequence[int]) -> Iterator[None]:
    pin_this_thread(cores)
    yield


# Pieces of a model at most: each costs a hand-over, and time of the planner.
_PIECES = 8

# Streams of a GPU that work side by side.
_STREAMS = 4


def _on_streams(
    programs: Sequence[Program], planner: str, time_limit: float, copies: int, shortest_piece: float
) -> Online:
    models, times, owners, graphs, alone = [], [], [], [], []
    for number, program in enumerate(programs):
        clock = AtomClock(program)
        atom_times = clock.times_alone()
        pieces = pieces_of(atom_times, program.atoms.after, shortest_piece)
        models.append(GraphModel(program, pieces, copies))
        graphs.append(StreamGraph(program, tuple((atom.index, 0) for atom in program.atoms.atoms)))
        whole = compare_calls({"whole": graphs[-1].graph.replay}, on_gpu=True, rounds=5)["whole"].median
        alone.append(whole)
        scale = 1e3 * whole / sum(atom_times)
        times += [scale * sum(atom_times[atom] for atom in piece) for piece in pieces]
        owners += [number] * len(pieces)
    pairs = itertools.combinations_with_replacement(range(len(programs)), 2)
    slowdowns = {
        pair: slowdown_of_graphs([graphs[model].graph for model in pair], [alone[model] for model in pair])
        for pair in pairs
        if pair[0] != pair[1] or len(programs) == 1
    }
    shares, _ = fit_shares(slowdowns, len(programs))
    site = stream_site(_STREAMS, Costs(times, [shares[owner] for owner in owners], []))
    contexts = [functools.partial(torch.cuda.stream, torch.cuda.Stream()) for _ in site.devices]
    return Online(models, site, contexts, planner, time_limit)


def pieces_of(times: Sequence[float], after: Sequence[Sequence[int]], least: float) -> list[list[int]]:
    """Atoms cut into pieces where everything before must end before anything after starts, each at least so long, but
    for the last, and few of them."""
    least = max(least, sum(times) / _PIECES)
    pieces: list[list[int]] = [[]]
    for block in blocks(after):
        if sum(times[atom] for atom in pieces[-1]) >= least:
            pieces.append([])
        pieces[-1] += block
    return pieces
