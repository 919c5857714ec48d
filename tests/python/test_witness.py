"""Witnesses of processes that are not ranks of a job: who is blamed, once for each output, and that the others end."""

from __future__ import annotations

import dataclasses
import json
import signal
import subprocess
import sys

import pytest

pytest.importorskip("torch")

from placewright.torch import witness


@dataclasses.dataclass
class Rank:
    """A process that does nothing, and its witness."""

    process: subprocess.Popen[bytes]
    witness: subprocess.Popen[bytes]

    def say(self, word: bytes) -> None:
        assert self.witness.stdin is not None
        self.witness.stdin.write(word)

    def end(self, number: int) -> None:
        self.process.send_signal(number)
        self.process.wait(timeout=60)

    def outcome(self) -> str:
        """What the witness has said when it has ended."""
        _, said = self.witness.communicate(timeout=60)
        return said.decode()


def started() -> Rank:
    command = [sys.executable, "-I", "-S", witness.__file__]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return Rank(subprocess.Popen(["sleep", "600"]), subprocess.Popen(command, bufsize=0, **pipes))  # type: ignore[call-overload]


def ring(groups: list[str]) -> list[Rank]:
    """A ring of ranks, whose outputs are those of these groups."""
    ranks = [started() for _ in groups]
    ports = [int(rank.witness.stdout.readline()) for rank in ranks]  # type: ignore[union-attr]
    titles = [f"rank {number}" for number in range(len(groups))]
    for number, rank in enumerate(ranks):
        following = ("127.0.0.1", ports[(number + 1) % len(ranks)])
        place = witness.Place(number, rank.process.pid, following, titles, groups)
        rank.say(json.dumps(vars(place)).encode() + b"\n")
    for rank in ranks:
        assert rank.witness.stdout is not None and rank.witness.stdout.readline() == b"ready\n"
    return ranks


def ends(ranks: list[Rank]) -> list[int]:
    return [rank.process.wait(timeout=60) for rank in ranks]


def test_a_rank_that_dies_is_named_once_for_each_output_and_the_others_are_ended() -> None:
    ranks = ring(["a", "a", "b", "b"])
    ranks[2].end(signal.SIGKILL)
    assert [rank.outcome() for rank in ranks] == [
        "placewright: rank 2 has died\n", "", "placewright: rank 2 has died\n", ""
    ]  # fmt: skip
    assert ends(ranks) == [-signal.SIGTERM, -signal.SIGTERM, -signal.SIGKILL, -signal.SIGTERM]


def test_the_rank_that_was_killed_is_named_not_those_that_fail_because_of_it() -> None:
    ranks = ring(["a", "a", "a"])
    ranks[2].end(signal.SIGKILL)
    ranks[1].say(witness.FAILED)
    ranks[1].end(signal.SIGTERM)
    assert ranks[0].outcome() == "placewright: rank 2 has died\n"
    assert ends(ranks)[0] == -signal.SIGTERM


def test_who_died_without_a_word_comes_before_who_failed_and_then_the_earlier_one() -> None:
    failed_first, killed = witness.Death(True, 1.0, 0), witness.Death(False, 2.0, 1)
    killed_later = witness.Death(False, 3.0, 2)
    assert sorted([killed_later, failed_first, killed]) == [killed, killed_later, failed_first]


def test_a_rank_that_fails_by_itself_is_named() -> None:
    ranks = ring(["a", "a"])
    ranks[1].say(witness.FAILED)
    ranks[1].end(signal.SIGTERM)
    assert ranks[0].outcome() == "placewright: rank 1 has died\n"


def test_a_host_that_is_gone_is_noticed() -> None:
    ranks = ring(["a", "b"])
    ranks[1].witness.kill()
    ranks[1].end(signal.SIGKILL)
    assert ranks[0].outcome() == "placewright: rank 1 has died\n"


def test_ranks_that_have_done_their_work_are_left_alone() -> None:
    ranks = ring(["a", "a", "a"])
    for rank in ranks:
        rank.say(witness.DONE)
    assert [rank.outcome() for rank in ranks] == ["", "", ""]
    assert [rank.process.poll() for rank in ranks] == [None] * 3
    for rank in ranks:
        rank.end(signal.SIGKILL)


def test_a_rank_alone_is_its_own_neighbour() -> None:
    (rank,) = ring(["a"])
    rank.end(signal.SIGKILL)
    assert rank.outcome() == "placewright: rank 0 has died\n"


def test_a_rank_may_end_before_another_dies() -> None:
    ranks = ring(["a", "b", "c"])
    ranks[0].say(witness.DONE)
    ranks[1].end(signal.SIGKILL)
    assert [rank.outcome() for rank in ranks] == ["placewright: rank 1 has died\n"] * 3
    assert ranks[0].process.poll() is None  # it was done
    ranks[0].end(signal.SIGKILL)
    assert ends(ranks)[2] == -signal.SIGTERM
