"""The servers of serving.py: each starts with some models, and answers an order of requests (serving_client.cpp)."""

import contextlib
import json
import os
import pathlib
import re
import select
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path[:0] = [str(ROOT / "python"), str(HERE / "peers")]

import numpy

OPENVINO = re.search(r"^openvino==(.*)$", (ROOT / "scripts/constraints.txt").read_text(), re.MULTILINE)[1]
START = 240  # seconds that a server may take to start, measurements included


class Failure(RuntimeError):
    """Why a server has no figure."""


class Peer:
    """A server from PyPI: what is installed into an environment of its own, and the script that starts it."""

    def __init__(self, title, script, packages):
        self.title, self.script, self.packages = title, script, packages

    def python(self, options):
        return options.environments / self.script / "bin/python"

    def install(self, options):
        """Once. Raises Failure with the reason."""
        place = options.environments / self.script
        stamp, wanted = place / "installed", f"{self.packages} openvino=={OPENVINO}"
        if stamp.exists() and stamp.read_text() == wanted:
            return
        print(f"installing {self.title} into {place}", file=sys.stderr, flush=True)
        pip = [self.python(options), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        for step in ([sys.executable, "-m", "venv", "--clear", place], [*pip, *wanted.split()]):
            done = subprocess.run(step, capture_output=True, text=True, timeout=1200, check=False)
            if done.returncode:
                reasons = [line for line in done.stderr.splitlines() if line.startswith("ERROR")] or ["pip failed"]
                raise Failure(f"not installed: {reasons[-1].removeprefix('ERROR: ')}")
        stamp.write_text(wanted)

    @contextlib.contextmanager
    def start(self, options, models):
        self.install(options)
        with contextlib.ExitStack() as stack:
            for attempt in range(3):  # Triton's package starts a program that it has just written, which may be busy
                grpc, *others = free_ports(3)
                command = [self.python(options), HERE / "peers" / f"{self.script}.py", grpc, *others, *(model.path for model in models)]
                address = f"127.0.0.1:{grpc}"
                started = stack.enter_context(process(command, options.work / f"{self.script}.log"))
                try:
                    wait_until_ready(started, address, models)
                    break
                except Failure:
                    if attempt == 2 or "busy" not in last_error(started.log):
                        raise
                    stack.close()
            yield OverGrpc(options, address, models)


class Alone:
    """OpenVINO in one process, without a server."""

    def __init__(self, title, policy):
        self.title, self.policy = title, policy

    def install(self, options):
        pass

    @contextlib.contextmanager
    def start(self, options, models):
        command = [sys.executable, HERE / "peers/openvino_alone.py", self.policy, *(model.path for model in models)]
        with process(command, options.work / f"openvino-{self.policy}.log", stdin=subprocess.PIPE, stdout=subprocess.PIPE) as started:
            if line_of(started, START) != "ready\n":
                raise Failure("did not start")
            yield InProcess(started)


class Ours:
    """`placewright serve` with a policy. With `objectives` the server knows the objective of each model."""

    def __init__(self, title, policy="normalised", objectives=False, **keywords):
        self.title, self.policy, self.objectives, self.keywords = title, policy, objectives, keywords

    def install(self, options):
        pass

    @contextlib.contextmanager
    def start(self, options, models):
        import placewright

        keywords = dict(self.keywords)
        if self.objectives:
            keywords["objective"] = {model.name: f"{model.objective:.3f}ms" for model in models}
        # In a session of its own as the others are: the kernel shares out cores by session.
        program = options.work / "placewright"
        program.write_text(f'#!/bin/sh\nexec setsid {shlex.quote(str(options.program.resolve()))} "$@"\n')
        program.chmod(0o755)
        server = placewright.Server([model.path for model in models], policy=self.policy, program=program, http="none",
                                    start_timeout=START, **keywords)
        try:
            server.start()
        except RuntimeError as error:
            raise Failure(str(error)) from error
        try:
            yield OverGrpc(options, server.grpc, models)
        finally:
            server.stop()


class OverGrpc:
    """A running server that speaks the Open Inference Protocol over gRPC."""

    def __init__(self, options, address, models):
        self.options = options
        self.order = {"address": address, "calls": [call_of(options, model) for model in models]}

    def ask(self, order, seconds):
        with tempfile.NamedTemporaryFile("w", suffix=".json", dir=self.options.work) as file:
            json.dump(self.order | order, file)
            file.flush()
            try:
                done = subprocess.run([self.options.client, file.name], capture_output=True, text=True, timeout=seconds, check=False,
                                      start_new_session=True)
            except subprocess.TimeoutExpired as error:
                raise Failure(f"did not answer all requests within {seconds:.0f} s") from error
        if done.returncode:
            raise Failure(done.stderr.strip() or f"the client ended with {done.returncode}")
        return json.loads(done.stdout)


class InProcess:
    def __init__(self, started):
        self.process = started

    def ask(self, order, seconds):
        self.process.stdin.write((json.dumps(order) + "\n").encode())
        self.process.stdin.flush()
        line = line_of(self.process, seconds)
        if not line:
            raise Failure(f"did not answer all requests within {seconds:.0f} s")
        return json.loads(line)


def free_ports(count):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


@contextlib.contextmanager
def process(command, log, **keywords):
    """A process in a group of its own, all of which ends with the block. Nothing is written to its standard input."""
    keywords = {"stdin": subprocess.PIPE, "stdout": subprocess.DEVNULL} | keywords
    with log.open("wb") as file:
        started = subprocess.Popen(list(map(str, command)), stderr=file, start_new_session=True, **keywords)
    started.log = log
    try:
        yield started
    finally:
        with contextlib.suppress(BrokenPipeError):
            started.stdin.close()  # asks it to end
        for wanted in (None, signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                if wanted:
                    os.killpg(started.pid, wanted)
            with contextlib.suppress(subprocess.TimeoutExpired):
                started.wait(8)
                break
        with contextlib.suppress(ProcessLookupError):
            os.killpg(started.pid, signal.SIGKILL)


def line_of(started, seconds):
    """The next line of its output; empty if it does not come."""
    until = time.monotonic() + seconds
    line = b""
    while not line.endswith(b"\n"):
        readable, _, _ = select.select([started.stdout], [], [], max(0, until - time.monotonic()))
        piece = os.read(started.stdout.fileno(), 1 << 20) if readable else b""
        if not piece:
            return ""
        line += piece
    return line.decode()


def wait_until_ready(started, address, models):
    """Until it has answered one request of each model."""
    import grpc
    from tritonclient.grpc import service_pb2_grpc

    until = time.monotonic() + START
    limit = ("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1)
    with grpc.insecure_channel(address, options=[*limit, ("grpc.max_reconnect_backoff_ms", 500)]) as channel:
        stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
        for model in models:
            while True:
                try:
                    stub.ModelInfer(model.message(), timeout=30, metadata=[("application", model.name)])
                    break
                except grpc.RpcError as error:
                    reason = error.details()
                if started.poll() is not None or time.monotonic() > until:
                    raise Failure(f"did not start: {last_error(started.log) or reason}")
                time.sleep(0.3)


def last_error(log):
    lines = log.read_text(errors="replace").splitlines()
    return next((line[:300] for line in reversed(lines) if re.match(r"\s*\w*(Error|Exception)", line)), "")


def call_of(options, model):
    path = options.work / f"{model.name}.request"
    if not path.exists():
        path.write_bytes(model.message().SerializeToString())
    return {"method": "/inference.GRPCInferenceService/ModelInfer", "metadata": {"application": model.name}, "message": str(path)}


class BenchModel:
    """A model file with its inputs. `own`: the median milliseconds of an inference alone."""

    def __init__(self, path, own=None):
        self.path, self.name, self.own = path, path.stem, own
        self._message = None

    @property
    def objective(self):
        return 5 * self.own

    def message(self):
        from served import TYPES
        from tritonclient.grpc import service_pb2

        if self._message is None:
            import openvino

            request = service_pb2.ModelInferRequest(model_name=self.name)
            for port in openvino.Core().read_model(self.path).inputs:
                datatype, dtype = TYPES[port.get_element_type().get_type_name()]
                request.inputs.add(name=port.get_any_name(), datatype=datatype, shape=list(port.get_shape()))
                request.raw_input_contents.append(numpy.full(list(port.get_shape()), 0.5).astype(dtype).tobytes())
            self._message = request
        return self._message


SERVERS = {
    "serve": Ours("`placewright serve`"),
    "together": Ours("our front end, all at once", "together"),
    "openvino": Alone("OpenVINO's own requests, no server", "async"),
    "triton": Peer("Triton, Python backend", "triton_server", "nvidia-pytriton==0.7.0"),
    "mlserver": Peer("MLServer", "mlserver_model", "mlserver==1.7.1"),
    "ray": Peer("Ray Serve", "ray_server", "ray[serve]==2.60.0 tritonclient[grpc]==2.73.0"),
    "serve-objectives": Ours("`placewright serve`, objectives, late ones refused", objectives=True),
    "serve-late": Ours("`placewright serve`, objectives, none refused", objectives=True, late="serve"),
    "deadline": Alone("earliest deadline first, uncut, no server", "deadline"),
}
PEERS = ["together", "openvino", "triton", "mlserver", "ray"]
