"""Models served over the Open Inference Protocol while a block of code runs.

    with placewright.Server(["squeezenet.xml"], objective="50ms") as server:
        client = tritonclient.grpc.InferenceServerClient(server.grpc)

It is the program `placewright serve` in a process of its own: the argument `program`, the environment variable
PLACEWRIGHT_PROGRAM or the PATH says where it is.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Literal

from placewright.fleets import Fleet, deploy
from placewright.libraries import program_path

__all__ = ["Fleet", "Server", "deploy"]

Value = str | int | float
Options = Mapping[str, Value | bool | Sequence[str] | Mapping[str, Value] | None]


class Server:
    """Served models. `http` and `grpc` are the addresses, "HOST:PORT"; port 0, the default, is a free one.

    The other keywords are the options of `placewright serve`; None leaves the program's default. Objectives,
    priorities, weights and queues are one value for all models, or a value for each:
    `objective={"squeezenet": "10ms"}`. Options that are not listed here are given to the program as they are.
    A RuntimeError says why a server did not start.
    """

    def __init__(
        self,
        models: Sequence[str | os.PathLike[str]] = (),
        *,
        http: str = "127.0.0.1:0",
        grpc: str = "127.0.0.1:0",
        program: str | os.PathLike[str] | None = None,
        start_timeout: float = 300,
        config: str | None = None,
        folder: str | None = None,
        shape: str | Sequence[str] | None = None,
        precision: Literal["default", "f32", "bf16", "f16"] | None = None,
        policy: Literal["normalised", "srpt", "arrival", "together"] | None = None,
        late: Literal["refuse", "serve"] | None = None,
        ageing: float | None = None,
        share: float | None = None,
        objective: str | Mapping[str, str] | None = None,
        priority: int | Mapping[str, int] | None = None,
        weight: float | Mapping[str, float] | None = None,
        queue: int | Mapping[str, int] | None = None,
        token: str | None = None,
        tls_certificate: str | None = None,
        tls_key: str | None = None,
        tls_clients: str | None = None,
        insecure: bool = False,
        largest_body: float | None = None,
        connections: int | None = None,
        memory: float | None = None,
        log: Literal["text", "json"] | None = None,
        **options: Value | bool | Sequence[str] | Mapping[str, Value] | None,
    ) -> None:
        given: Options = {
            "config": config,
            "folder": folder,
            "shape": shape,
            "precision": precision,
            "policy": policy,
            "late": late,
            "ageing": ageing,
            "share": share,
            "objective": objective,
            "priority": priority,
            "weight": weight,
            "queue": queue,
            "token": token,
            "tls_certificate": tls_certificate,
            "tls_key": tls_key,
            "tls_clients": tls_clients,
            "insecure": insecure,
            "largest_body": largest_body,
            "connections": connections,
            "memory": memory,
            "log": log,
            **options,
        }
        self._command = [program_path(program), "serve", *(os.fspath(model) for model in models)]
        self._command += ["--http", http, "--grpc", grpc, *_flags(given)]
        self._start_timeout = start_timeout
        self._process: subprocess.Popen[str] | None = None
        self._addresses: dict[str, str] = {}
        self._log: list[str] = []

    @property
    def http(self) -> str:
        """The address at which HTTP listens."""
        return self._addresses["http"]

    @property
    def grpc(self) -> str:
        """The address at which gRPC listens."""
        return self._addresses["grpc"]

    @property
    def pid(self) -> int:
        """The number of the server's process."""
        if self._process is None:
            raise RuntimeError("the server does not run")
        return self._process.pid

    @property
    def log(self) -> list[str]:
        """The lines that the server has printed so far."""
        return list(self._log)

    def start(self) -> Server:
        """Starts the server and returns when its models are ready."""
        if self._process is not None:
            raise RuntimeError("the server runs already")
        pipe = subprocess.PIPE
        self._process = process = subprocess.Popen(self._command, stdout=pipe, stderr=pipe, text=True)
        self._reader = threading.Thread(target=self._read_log, args=(process,), daemon=True)
        self._reader.start()
        timer = threading.Timer(self._start_timeout, process.kill)
        timer.start()
        try:
            assert process.stdout is not None
            for line in process.stdout:
                words = line.split()
                if words == ["ready"]:
                    return self
                if len(words) == 2:
                    self._addresses[words[0]] = words[1]
        except BaseException:
            process.kill()
            process.wait()
            self._process = None
            raise
        finally:
            timer.cancel()
        code = process.wait()
        self._reader.join(timeout=5)
        self._process = None
        told = [line for line in self._log if "error:" in line] or self._log or [f"it ended with {code}"]
        raise RuntimeError(f"the server did not start: {told[-1]}")

    def stop(self) -> None:
        """Refuses new requests, and returns when the accepted ones have been answered."""
        if self._process is None:
            return
        self._process.send_signal(signal.SIGTERM)
        self._process.wait()
        self._reader.join(timeout=5)
        self._process = None

    def __enter__(self) -> Server:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _read_log(self, process: subprocess.Popen[str]) -> None:
        assert process.stderr is not None
        self._log.extend(line.rstrip("\n") for line in process.stderr)


def _flags(options: Options) -> list[str]:
    flags: list[str] = []
    for name, value in options.items():
        flag = "--" + name.replace("_", "-")
        if value is None:
            continue
        if isinstance(value, bool):
            flags += [flag] if value else []
        elif isinstance(value, str | int | float):
            flags += [flag, str(value)]
        elif isinstance(value, Mapping):
            for model, each in value.items():
                flags += [flag, f"{model}={each}"]
        else:
            for each in value:
                flags += [flag, each]
    return flags
