"""Models that arrive and are cancelled while others run, on core sets."""

from __future__ import annotations

import math
import threading

import pytest

torch = pytest.importorskip("torch")

import models
import needs
import placewright
import placewright.torch as placed_torch
from placewright.torch.kernels import eager
from placewright.torch.online import pieces_of

needs.extension()
DEVICES = needs.two_cores()


class Gate:
    """A compiler whose kernels wait while the gate is closed; `launched` counts them. As a context, a closed gate."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self.open.set()
        self.waiting = threading.Semaphore(0)
        self.launched = 0

    def __enter__(self) -> None:
        self.open.clear()

    def __exit__(self, *_: object) -> None:
        self.open.set()

    def __call__(self, module, arguments):
        def call(*tensors):
            self.launched += 1
            if not self.open.is_set():
                self.waiting.release()
                self.open.wait()
            return module(*tensors)

        return call


def layers(count: int, width: int, rows: int):
    model = torch.nn.Sequential(*(torch.nn.Linear(width, width) for _ in range(count))).eval()
    return model, (torch.randn(rows, width),)


def test_every_arrival_gets_what_its_model_computes() -> None:
    catalogue = [make() for make in models.ALL]
    with placed_torch.compile_online(catalogue, devices=DEVICES, time_limit=1e-6, compiler=eager) as online:
        numbers = [0, 1, 2, 1, 0, 2, 0]
        inputs = [tuple(torch.randn_like(value) for value in catalogue[number][1]) for number in numbers]
        arrivals = [
            online.submit(number, *(value.clone() for value in given))
            for number, given in zip(numbers, inputs, strict=True)
        ]
        for arrival, number, given in zip(arrivals, numbers, inputs, strict=True):
            torch.testing.assert_close(arrival.result(600), catalogue[number][0](*given))
            assert arrival.completion is not None and arrival.completion > 0
    assert online.decisions
    for decision in online.decisions:
        assert decision.plan.check() == [] and decision.plan.problem.objective == "total-completion"


def test_a_short_model_passes_a_long_one_that_came_before_it() -> None:
    gate = Gate()
    catalogue = [layers(6, 512, 512), layers(2, 8, 2)]
    with placed_torch.compile_online(catalogue, devices=DEVICES[:1], shortest_piece=0, compiler=gate) as online:
        with gate:
            first = online.submit(0, *catalogue[0][1])
            gate.waiting.acquire()  # its first piece has started
            second, short = online.submit(0, *catalogue[0][1]), online.submit(1, *catalogue[1][1])
        results = [arrival.result(600) for arrival in (first, second, short)]
        assert short.pieces[0].started < min(first.pieces[-1].started, second.pieces[-1].started)
    for (model, inputs), result in zip([catalogue[0], catalogue[0], catalogue[1]], results, strict=True):
        torch.testing.assert_close(result, model(*inputs))


def test_what_is_cancelled_stops_and_the_others_go_on() -> None:
    gate = Gate()
    catalogue = [layers(5, 8, 2)]
    with placed_torch.compile_online(catalogue, devices=DEVICES[:1], shortest_piece=0, compiler=gate) as online:
        gate.launched = 0
        with gate:
            running = online.submit(0, *catalogue[0][1])
            gate.waiting.acquire()
            waiting, other = (online.submit(0, *catalogue[0][1]) for _ in range(2))
            assert running.cancel() and waiting.cancel()
        torch.testing.assert_close(other.result(600), catalogue[0][0](*catalogue[0][1]))
        for arrival in (running, waiting):
            with pytest.raises(placed_torch.Cancelled, match="was cancelled"):
                arrival.result(600)
        assert not other.cancel()
    assert gate.launched == 1 + 5  # the piece that ran when its arrival was cancelled, and the other's


def test_a_plan_that_comes_too_late_is_not_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    gate = Gate()
    catalogue = [layers(4, 512, 512), layers(2, 8, 2)]
    late: list[placed_torch.Arrival] = []
    real = placewright.plan

    def slow(*args, **kwargs):
        if not late:
            online.decision_time = math.inf  # the arrival itself is not planned for
            late.append(online.submit(1, *catalogue[1][1]))
        return real(*args, **kwargs)

    online = placed_torch.compile_online(
        catalogue, devices=DEVICES[:1], shortest_piece=0, time_limit=1e-6, compiler=gate
    )
    with online, gate:
        online.submit(0, *catalogue[0][1])
        gate.waiting.acquire()
        monkeypatch.setattr(placewright, "plan", slow)
        online.submit(0, *catalogue[0][1])
        with online.changed:
            assert online.queues[0][:2] == late[0].pieces  # it has less to do than the others
            assert len(online.queues[0]) == 2 + 4 + 3  # one piece has started
    assert [decision.is_followed for decision in online.decisions] == [False]


def test_the_shortest_goes_first_on_devices_that_share_nothing() -> None:
    gate = Gate()
    catalogue = [layers(6, 512, 512), layers(2, 8, 2)]
    online = placed_torch.compile_online(catalogue, devices=DEVICES, shortest_piece=0, time_limit=60, compiler=gate)
    with online, gate:  # planning takes too long, so it is left to the queues
        first, second = (online.submit(0, *catalogue[0][1]) for _ in range(2))
        for _ in DEVICES:
            gate.waiting.acquire()
        third, short = online.submit(0, *catalogue[0][1]), online.submit(1, *catalogue[1][1])
        with online.changed:
            assert {first.pieces[0].device, second.pieces[0].device} == {0, 1}
            assert short.pieces[0] in [queued[0] for queued in online.queues if queued]
            assert len({piece.device for piece in third.pieces}) == 1
    assert online.decisions == []


def test_an_error_ends_its_arrival_alone() -> None:
    model, inputs = models.branches()
    with placed_torch.compile_online([(model, inputs)], devices=DEVICES, compiler=eager) as online:
        wrong = online.submit(0, torch.randn(1, 4, 16, 16))
        right = online.submit(0, *inputs)
        with pytest.raises(RuntimeError, match="channels"):
            wrong.result(600)
        torch.testing.assert_close(right.result(600), model(*inputs))


def test_wrong_requests_are_told_in_a_sentence() -> None:
    model, inputs = models.in_place_and_views()
    with pytest.raises(ValueError, match="there are no models"):
        placed_torch.compile_online([])
    with pytest.raises(ValueError, match="inputs on the CPU need devices"):
        placed_torch.compile_online([(model, inputs)])
    online = placed_torch.compile_online([(model, inputs)], devices=DEVICES, compiler=eager)
    online.close()
    with pytest.raises(ValueError, match="it was closed"):
        online.submit(0, *inputs)


def test_pieces_end_where_everything_waits() -> None:
    after = [(), (0,), (0,), (1, 2), (3,), (4,)]
    assert pieces_of([1.0] * 6, after, least=2.0) == [[0, 1, 2], [3, 4], [5]]
    assert pieces_of([1.0] * 6, after, least=9.0) == [[0, 1, 2, 3, 4, 5]]
    assert len(pieces_of([1.0] * 600, [(atom - 1,) if atom else () for atom in range(600)], least=0.0)) == 8
