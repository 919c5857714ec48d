"""Ranks that watch each other: a rank that dies ends the job within seconds, with a sentence that names it.

Without this the others wait for tensors that never come until a time-out of minutes, and what they then print names a
socket. Every rank holds a connection to the next one and a thread that waits for it to close, which the kernel does at
once when the process dies. The watcher says which stage, device and host has died, tells the rank that watches itself
that this has been said, and ends its process; so the sentence is printed once and the whole ring ends.

torchrun ends the other ranks as soon as it sees one die. A watcher that is being ended first looks whether the rank
that it watches is gone, and says so.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import select
import signal
import socket
import sys
import threading
from typing import Any

import torch.distributed as dist

_ENDED = b"."  # the rank has done its work
_TOLD = b"!"  # another rank has died, and that has been said
# How long a rank that is being ended waits for news of the one that it watches, in seconds.
_LAST_LOOK = 1.0
_EXIT_CODE = 70


class Watch:
    """This rank's place in the ring. `title` is what the sentence calls the rank."""

    def __init__(self, title: str) -> None:
        rank, world = dist.get_rank(), dist.get_world_size()
        listener = socket.create_server(("", 0), backlog=2)
        everyone: list[Any] = [None] * world
        dist.all_gather_object(everyone, (_address(), listener.getsockname()[1], title))
        address, port, self._watched = everyone[(rank + 1) % world]
        self._next = socket.create_connection((address, port))
        self._previous, _ = listener.accept()
        listener.close()
        self._closed = False
        self._close_end, self._close_told = socket.socketpair()
        self._signal_end, self._signal_told = socket.socketpair()
        self._signal_end.setblocking(False)
        if threading.current_thread() is threading.main_thread():  # elsewhere Python allows no handlers
            signal.set_wakeup_fd(self._signal_end.fileno(), warn_on_full_buffer=False)
            signal.signal(signal.SIGTERM, lambda number, frame: None)  # the thread ends the process
        self._thread = threading.Thread(target=self._wait, daemon=True)
        self._thread.start()
        atexit.register(self._at_exit)

    def close(self) -> None:
        """Tells the ring that this rank has done its work."""
        if not self._closed:
            self._closed = True
            _send(self._previous, _ENDED)
            self._close_end.send(_ENDED)
            self._thread.join()
            if threading.current_thread() is threading.main_thread():
                signal.signal(signal.SIGTERM, signal.SIG_DFL)
                signal.set_wakeup_fd(-1)

    def _at_exit(self) -> None:
        if not hasattr(sys, "last_value"):
            self.close()
            return
        # The process ends with an exception, which the ring is to notice. Perhaps a tensor of the next rank did not
        # come because that has died: then the thread, which dies with this process, has that to say first.
        self._thread.join(_LAST_LOOK)

    def _wait(self) -> None:
        """Waits for the next rank to end, for this one to be closed, or for the signal that ends this process."""
        patience: float | None = None
        sources = [self._next, self._close_told, self._signal_told]
        while True:
            ready, _, _ = select.select(sources, [], [], patience)
            if self._close_told in ready:
                return
            if self._next in ready:
                self._hear(_receive(self._next))
                sources.remove(self._next)
            if self._signal_told in ready and signal.SIGTERM in self._signal_told.recv(64):
                patience = _LAST_LOOK
            if not ready or (patience is not None and self._next not in sources):
                os._exit(128 + signal.SIGTERM)

    def _hear(self, news: bytes) -> None:
        if news == _ENDED:
            return
        if news != _TOLD:
            print(f"placewright: {self._watched} has died", file=sys.stderr, flush=True)
        _send(self._previous, _TOLD)
        os._exit(_EXIT_CODE)


def _address() -> str:
    """The address by which this rank reaches the one that all ranks meet at."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((os.environ.get("MASTER_ADDR", "127.0.0.1"), 1))
        address: str = probe.getsockname()[0]
    return address


def _send(connection: socket.socket, news: bytes) -> None:
    with contextlib.suppress(OSError):  # the rank that would have read it may be gone
        connection.send(news)


def _receive(connection: socket.socket) -> bytes:
    try:
        return connection.recv(1)
    except OSError:
        return b""
