"""Ranks that are watched: a rank that dies ends the job within seconds, with a sentence that names it.

Without this the others wait for tensors that never come until a time-out of minutes, and what they then print names a
socket. Every rank has a process beside it, its witness (witness.py), which outlives the rank and so can speak for it.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import torch.distributed as dist

from placewright.torch import witness


class Watch:
    """This rank's witness. `title` is what the sentence calls the rank. Made by all ranks together."""

    def __init__(self, title: str) -> None:
        rank, world = dist.get_rank(), dist.get_world_size()
        command = [sys.executable, "-I", "-S", str(Path(witness.__file__))]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True, bufsize=0
        )
        assert self._process.stdin is not None and self._process.stdout is not None
        self._words = self._process.stdin
        said = self._process.stdout
        port = int(said.readline())
        group = f"{socket.gethostname()}/{os.getppid()}"  # torchrun, whose output is that of all its ranks
        everyone: list[Any] = [None] * world
        dist.all_gather_object(everyone, ((_address(), port), title, group))
        addresses, titles, groups = (list(column) for column in zip(*everyone, strict=True))
        place = witness.Place(rank, os.getpid(), addresses[(rank + 1) % world], titles, groups)
        self._words.write(json.dumps(vars(place)).encode() + b"\n")
        if not said.readline():
            raise ConnectionError("the ranks cannot watch each other: the witness of this rank has ended")
        said.close()
        self._closed = False
        atexit.register(self._at_exit)

    def close(self) -> None:
        """Says that this rank has done its work. Its witness stays until all ranks have."""
        self._close(witness.DONE)

    def _at_exit(self) -> None:
        self._close(witness.FAILED if hasattr(sys, "last_value") else witness.DONE)

    def _close(self, word: bytes) -> None:
        if not self._closed:
            self._closed = True
            atexit.unregister(self._at_exit)
            with contextlib.suppress(OSError), self._words:  # the witness may have ended first
                self._words.write(word)


def _address() -> str:
    """The address by which this rank reaches the one that all ranks meet at."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((os.environ.get("MASTER_ADDR", "127.0.0.1"), 1))
        address: str = probe.getsockname()[0]
    return address
