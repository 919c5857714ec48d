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

from placewright.fleets import Fleet, deploy
from placewright.libraries import program_path

__all__ = ["Fleet", "Server", "deploy"]

Value = str | int | float


class Server:
    """Served models. `http` and `grpc` are the addresses, "HOST:PORT"; port 0, the default, is a free one.

    Every other option of `placewright serve` is a keyword: `late="serve"`, `queue=100`, or with a value for each
    model `objective={"squeezenet": "10ms"}`. A RuntimeError says why a server did not start.
    """

    def __init__(
        self,
        models: Sequence[str | os.PathLike[str]] = (),
        *,
        http: str = "127.0.0.1:0",
        grpc: str = "127.0.0.1:0",
        program: str | os.PathLike[str] | None = None,
        start_timeout: float = 300,
        **options: Value | bool | Sequence[str] | Mapping[str, Value],
    ) -> None:
        self._command = [program_path(program), "serve", *(os.fspath(model) for model in models)]
        self._command += ["--http", http, "--grpc", grpc, *_flags(options)]
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
        last = self._log[-1] if self._log else f"it ended with {code}"
        raise RuntimeError(f"the server did not start: {last}")

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


def _flags(options: Mapping[str, Value | bool | Sequence[str] | Mapping[str, Value]]) -> list[str]:
    flags: list[str] = []
    for name, value in options.items():
        flag = "--" + name.replace("_", "-")
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
