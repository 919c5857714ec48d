"""The process beside a rank that says which rank has died, and ends the job.

watch.py starts one for each rank, by path, so that it needs the standard library alone. It is in a session of its own:
what ends the rank, be it a signal, an abort in a library's thread or torchrun, does not end it.

    standard input    from the rank: a line of JSON (Place), then `.` when the work is done, or `x` before it ends with
                      an exception
    standard output   to the rank: a line with the port at which the witness of the rank before it is to connect, then
                      one when the ring is closed
    standard error    that of the rank

Witnesses form a ring over the ranks, and hand on what they learn: a rank has ended, or died. A witness that is gone
without a word has died with its host. Ranks that lose a neighbour fail soon after it; so witnesses wait a moment for
news of others and then all come to the same result: who died without a word comes before who ended with an exception,
and then the earlier one. One witness of each group (the ranks that write to one output) says it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import select
import signal
import socket
import sys
import time

DONE = b"."
FAILED = b"x"
# Seconds from the first news of a death until it is said, and from then until a rank that does not
# end is killed.
_NEWS = 0.5
_PATIENCE = 2.0


@dataclasses.dataclass(frozen=True)
class Place:
    """A rank's place in the ring: its process, where the next witness listens, and of each rank what the sentence calls
    it and the group whose output it writes to."""

    rank: int
    process: int
    next: tuple[str, int]
    titles: list[str]
    groups: list[str]


@dataclasses.dataclass(frozen=True, order=True)
class Death:
    """The one that comes first is the cause."""

    after_failure: bool
    time: float
    rank: int


class Witness:
    """Follows one rank until all have ended or one has died."""

    def __init__(self) -> None:
        listener = socket.create_server(("", 0), backlog=2)
        print(listener.getsockname()[1], flush=True)
        self.place = Place(**json.loads(_line(sys.stdin.fileno())))
        self.process = os.pidfd_open(self.place.process)
        count = len(self.place.titles)
        address, port = self.place.next
        following = socket.create_connection((address, port))
        previous, _ = listener.accept()
        listener.close()
        print("ready", flush=True)
        self.neighbours = {following: (self.place.rank + 1) % count, previous: (self.place.rank - 1) % count}
        self.unread = {connection: b"" for connection in self.neighbours}
        self.words: int | None = sys.stdin.fileno()
        self.failed = False
        self.ended: set[int] = set()
        self.deaths: dict[int, Death] = {}

    def run(self) -> None:
        """Returns when there is nothing more to witness."""
        until: float | None = None
        while len(self.ended) < len(self.place.titles) and (until is None or time.monotonic() < until):
            wait = None if until is None else max(0.0, until - time.monotonic())
            for source in select.select(self._sources(), [], [], wait)[0]:
                self._hear(source)
            if self.deaths and until is None:
                until = time.monotonic() + _NEWS
        if self.deaths:
            self._say(min(self.deaths.values()))
            self._end_rank()
        self._leave()

    def _sources(self) -> list[int | socket.socket]:
        own = [] if self._is_known(self.place.rank) else [self.process, self.words]
        return [*(source for source in own if source is not None), *self.neighbours]

    def _is_known(self, rank: int) -> bool:
        return rank in self.ended or rank in self.deaths

    def _hear(self, source: int | socket.socket) -> None:
        if isinstance(source, socket.socket):
            self._hear_neighbour(source)
            return
        word = self._next_word()
        self.failed |= word == FAILED
        if word == DONE:
            self._learn({"ended": self.place.rank})
        elif source == self.process:
            self._learn({"died": self.place.rank, "after_failure": self.failed, "time": time.time()})

    def _next_word(self) -> bytes:
        """What the rank has said, if anything."""
        if self.words is None or not select.select([self.words], [], [], 0)[0]:
            return b""
        word = os.read(self.words, 1)
        if not word:
            self.words = None
        return word

    def _hear_neighbour(self, connection: socket.socket) -> None:
        received = _receive(connection)
        *lines, self.unread[connection] = (self.unread[connection] + received).split(b"\n")
        for line in lines:
            self._learn(json.loads(line))
        if not received:
            rank = self.neighbours.pop(connection)
            self._learn({"died": rank, "after_failure": False, "time": time.time()})

    def _learn(self, news: dict[str, float]) -> None:
        """Takes in what is new and hands it on."""
        rank = int(news["ended"] if "ended" in news else news["died"])
        if self._is_known(rank):
            return
        if "ended" in news:
            self.ended.add(rank)
        else:
            self.deaths[rank] = Death(bool(news["after_failure"]), news["time"], rank)
        for connection in self.neighbours:
            with contextlib.suppress(OSError):  # it is noticed when it is read
                connection.sendall(json.dumps(news).encode() + b"\n")

    def _say(self, cause: Death) -> None:
        own = self.place.groups[self.place.rank]
        if self.place.groups.index(own) == self.place.rank:
            print(f"placewright: {self.place.titles[cause.rank]} has died", file=sys.stderr, flush=True)

    def _end_rank(self) -> None:
        """The rank would wait for the dead one for minutes."""
        if self.place.rank in self.ended:
            return
        for number in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self.process, number)
            if select.select([self.process], [], [], _PATIENCE)[0]:
                return

    def _leave(self) -> None:
        """Closes the connections when the neighbours have done so too: what they have not read yet would be lost."""
        for connection in self.neighbours:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_WR)
        until = time.monotonic() + _PATIENCE
        for connection in self.neighbours:
            while time.monotonic() < until and select.select([connection], [], [], until - time.monotonic())[0]:
                if not _receive(connection):
                    break


def _line(file: int) -> bytes:
    """A line, and not a byte more, since what follows is waited for with select."""
    found = b""
    while not found.endswith(b"\n"):
        byte = os.read(file, 1)
        if not byte:
            sys.exit(1)  # the rank died before the ring was made, and torchrun says so
        found += byte
    return found


def _receive(connection: socket.socket) -> bytes:
    try:
        return connection.recv(4096)
    except OSError:
        return b""


if __name__ == "__main__":
    Witness().run()
