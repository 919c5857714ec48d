"""`placewright.Server`, asked by Triton's clients as they are."""

from __future__ import annotations

import gzip
import inspect
import json
import os
import queue
import shutil
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy
import pytest

import placewright

tritonclient_http = pytest.importorskip("tritonclient.http")
tritonclient_grpc = pytest.importorskip("tritonclient.grpc")

PROGRAM = os.environ.get("PLACEWRIGHT_PROGRAM", "")
if not Path(PROGRAM).with_name("placewright-server").exists():
    pytest.skip("the server is not built", allow_module_level=True)

MODEL = "tiny-branches"


def made(folder: Path) -> Path:
    subprocess.run([PROGRAM, "zoo", "make", MODEL, "-o", folder, "-q"], check=True)
    return folder / f"{MODEL}.xml"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[placewright.Server]:
    folder = tmp_path_factory.mktemp("models")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        with placewright.Server([made(folder)], largest_body=1) as running:
            yield running


def client(server: placewright.Server, module: Any) -> Any:
    return module.InferenceServerClient(server.http if module is tritonclient_http else server.grpc)


def random_input(module: Any, asked: Any) -> tuple[Any, str]:
    keywords = {} if module is tritonclient_http else {"as_json": True}
    metadata = asked.get_model_metadata(MODEL, **keywords)
    tensor = metadata["inputs"][0]
    shape = [int(size) for size in tensor["shape"]]
    values = numpy.random.default_rng(1).standard_normal(shape).astype(numpy.float32)
    given = module.InferInput(tensor["name"], shape, tensor["datatype"])
    given.set_data_from_numpy(values)
    return given, metadata["outputs"][0]["name"]


@pytest.mark.parametrize("module", [tritonclient_http, tritonclient_grpc])
def test_clients_work_unchanged(server: placewright.Server, module: Any) -> None:
    asked = client(server, module)
    assert asked.is_server_live()
    assert asked.is_server_ready()
    assert asked.is_model_ready(MODEL)
    assert not asked.is_model_ready("nothing")
    given, output = random_input(module, asked)
    answer = asked.infer(MODEL, [given], request_id="7")
    assert numpy.isfinite(answer.as_numpy(output)).all()
    named = asked.infer(MODEL, [given], outputs=[module.InferRequestedOutput(output)])
    assert (named.as_numpy(output) == answer.as_numpy(output)).all()


def test_both_protocols_agree(server: placewright.Server) -> None:
    answers = []
    for module in (tritonclient_http, tritonclient_grpc):
        asked = client(server, module)
        given, output = random_input(module, asked)
        answers.append(asked.infer(MODEL, [given]).as_numpy(output))
    assert (answers[0] == answers[1]).all()


@pytest.mark.parametrize("module", [tritonclient_http, tritonclient_grpc])
def test_mistakes_are_told_in_a_sentence(server: placewright.Server, module: Any) -> None:
    asked = client(server, module)
    given, _ = random_input(module, asked)
    small = module.InferInput(given.name(), [1], "FP32")
    small.set_data_from_numpy(numpy.zeros(1, numpy.float32))
    other = module.InferInput("other", [1], "FP32")
    other.set_data_from_numpy(numpy.zeros(1, numpy.float32))
    mistakes = {
        "there is no model 'nothing'": ("nothing", [given]),
        f"the input '{given.name()}' is missing": (MODEL, []),
        "has the shape": (MODEL, [small]),
        "the model has no input 'other'": (MODEL, [other]),
    }
    for sentence, (model, inputs) in mistakes.items():
        with pytest.raises(Exception, match=sentence):
            asked.infer(model, inputs)
    assert asked.infer(MODEL, [given]) is not None


def status(server: placewright.Server, path: str, body: bytes | None = None) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://{server.http}/{path}", body, timeout=60) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_http_has_standard_codes(server: placewright.Server) -> None:
    infer = f"v2/models/{MODEL}/infer"
    assert status(server, "v2/health/ready")[0] == 200
    assert status(server, "v2/nothing")[0] == 404
    assert status(server, infer, b"{")[0] == 400
    assert status(server, infer, b" " * 2_000_000)[0] == 413
    code, text = status(server, "metrics")
    assert code == 200
    assert f'placewright_requests_total{{model="{MODEL}",version="1",answer="done"}}' in text


def metric(text: str, name: str) -> float:
    line = next(line for line in text.splitlines() if line.startswith(name))
    return float(line.rsplit(" ", 1)[1])


def test_predicted_latencies_stand_beside_measured_ones(server: placewright.Server) -> None:
    asked = client(server, tritonclient_grpc)
    given, _ = random_input(tritonclient_grpc, asked)
    for _ in range(5):
        asked.infer(MODEL, [given])
    time.sleep(0.5)
    text = status(server, "metrics")[1]
    labels = f'{{model="{MODEL}",version="1"}}'
    answered = metric(text, f"placewright_latency_seconds_count{labels}")
    assert answered >= 5
    assert metric(text, f"placewright_predicted_latency_seconds_count{labels}") == answered
    assert metric(text, f"placewright_model_busy_core_seconds_total{labels}") > 0
    assert metric(text, f"placewright_queue_requests{labels}") == 0
    names = [line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")]
    assert len(names) == len(set(names)), "Prometheus refuses a metric that is there twice"
    report = json.loads(status(server, "v2/report")[1])
    [model] = report["models"]
    assert model["name"] == MODEL
    assert model["state"] == "ready"
    assert model["done"] == answered
    assert model["measured"]["p99"] >= model["measured"]["p50"] > 0
    assert model["predicted"]["p50"] > 0


def test_single_requests_can_be_traced(server: placewright.Server) -> None:
    asked = client(server, tritonclient_http)
    given, _ = random_input(tritonclient_http, asked)
    asked.infer(MODEL, [given], request_id="traced")
    asked.infer(MODEL, [given], request_id="another")
    events = json.loads(status(server, "v2/trace?id=traced")[1])["traceEvents"]
    ids = {event["args"]["client_id"] for event in events if event["ph"] == "b"}
    assert ids == {"traced"}
    [step] = [event for event in events if event["ph"] == "X"]
    begin = min(event["ts"] for event in events if event["ph"] == "b")
    end = max(event["ts"] for event in events if event["ph"] == "e")
    assert begin <= step["ts"] <= step["ts"] + step["dur"] <= end
    assert len(json.loads(status(server, "v2/trace")[1])["traceEvents"]) > len(events)


def test_top_shows_what_the_server_does(server: placewright.Server) -> None:
    def top(*arguments: str) -> str:
        done = subprocess.run([PROGRAM, "top", *arguments], capture_output=True, text=True, timeout=60, check=True)
        return done.stdout

    page = top(server.http, "--once")
    assert "cores busy for" in page
    assert MODEL in page
    report = json.loads(top(server.http, "--once", "--json"))
    assert report["models"][0]["name"] == MODEL
    schema = Path(__file__).resolve().parents[2] / "docs/schema/serve-report.json"
    pytest.importorskip("jsonschema").Draft202012Validator(json.loads(schema.read_text())).validate(report)
    with subprocess.Popen([PROGRAM, "top", server.http, "--interval", "100ms"], stdout=subprocess.PIPE) as running:
        assert running.stdout is not None
        while running.stdout.readline().count(b"cores busy") == 0:
            pass
        running.send_signal(signal.SIGINT)
        running.communicate(timeout=60)
        assert running.returncode == 0
    for address, sentence in (("127.0.0.1:1", "refused"), ("nothing", "expected HOST:PORT"), (server.grpc, "")):
        failed = subprocess.run([PROGRAM, "top", address, "--once"], capture_output=True, text=True, timeout=60)
        assert failed.returncode != 0
        assert sentence in failed.stderr


def test_model_files_are_simulated_as_they_would_be_served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    model = str(made(tmp_path))
    command = [PROGRAM, "serve", model, "--rate", "20", "--requests", "500", "--json"]
    predicted = json.loads(subprocess.run(command, capture_output=True, text=True, timeout=300, check=True).stdout)
    [own] = [served["own_time"] for served in predicted["served"]]
    assert predicted["models"][0]["p50"] >= own
    with placewright.Server([model]) as server:
        [served] = json.loads(status(server, "v2/report")[1])["models"]
        assert served["own_time"] == pytest.approx(own, rel=1e-3), "measured once for both"


def test_a_reload_answers_what_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with placewright.Server([made(tmp_path)], queue=100_000) as server:
        asked = client(server, tritonclient_grpc)
        given, _ = random_input(tritonclient_grpc, asked)
        errors: queue.Queue[Any] = queue.Queue()
        count = 3000
        for number in range(count):
            asked.async_infer(MODEL, [given], callback=lambda result, error: errors.put(error))
            if number % 1000 == 500:
                client(server, tritonclient_http).load_model(MODEL)
        assert [error for error in (errors.get(timeout=60) for _ in range(count)) if error] == []
        assert sum("is unloaded" in line for line in server.log) == 3


def test_a_body_is_limited_however_it_comes(server: placewright.Server) -> None:
    path = f"http://{server.http}/v2/models/{MODEL}/infer"
    packed = gzip.compress(b" " * 2_000_000)
    assert len(packed) < 10_000
    pieces = (b" " * 1000 for _ in range(2000))  # urllib sends an iterable in chunks
    for body, headers in ((packed, {"Content-Encoding": "gzip"}), (pieces, {}), (b" " * 20_000_000, {})):
        with pytest.raises(urllib.error.HTTPError, match="413"):
            urllib.request.urlopen(urllib.request.Request(path, body, headers), timeout=60)
    ranges = {"Range": "bytes=" + ",".join(["0-"] * 100)}
    with pytest.raises(urllib.error.HTTPError, match="400"):
        urllib.request.urlopen(urllib.request.Request(f"http://{server.http}/metrics", headers=ranges), timeout=60)
    form = {"Content-Type": "multipart/form-data; boundary=x"}
    with pytest.raises(urllib.error.HTTPError, match="400"):
        urllib.request.urlopen(urllib.request.Request(path, b"--x--", form), timeout=60)
    # curl calls every body a form.
    assert status(server, f"v2/models/{MODEL}/infer", b" " * 9000)[0] == 400


def bytes_until_the_end(server: placewright.Server, request: bytes, drops: bool) -> bytes:
    host, port = server.http.split(":")
    answer = b""
    with socket.create_connection((host, int(port)), timeout=30) as connection:
        connection.sendall(request)
        try:
            while True:
                if drops:
                    time.sleep(0.2)
                    connection.sendall(b"a")
                else:
                    read = connection.recv(65536)
                    if not read:
                        return answer
                    answer += read
        except (BrokenPipeError, ConnectionResetError):
            return answer


def test_a_slow_client_loses_its_connection(server: placewright.Server) -> None:
    begin = time.monotonic()
    bytes_until_the_end(server, b"GET /v2/health/live HTTP/1.1\r\nName: ", drops=True)
    assert time.monotonic() - begin < 60  # for ever, if nobody ends it


def test_a_request_without_a_body_is_answered(server: placewright.Server) -> None:
    request = b"POST /v2/repository/index HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
    assert bytes_until_the_end(server, request, drops=False).startswith(b"HTTP/1.1 200 ")


def test_headers_have_an_end(server: placewright.Server) -> None:
    line = b"GET /v2/health/live HTTP/1.1\r\n"
    answer = bytes_until_the_end(server, line + b"A: b\r\n" * 50_000 + b"\r\n", drops=False)
    assert answer.startswith(b"HTTP/1.1 400 ")


def test_a_hidden_request_is_not_answered(server: placewright.Server) -> None:
    hidden = b"GET /v2/health/live HTTP/1.1\r\n\r\n"
    outer = b"GET /v2/health/live HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(hidden)
    assert bytes_until_the_end(server, outer + hidden, drops=False).count(b"HTTP/1.1") == 1


@pytest.mark.parametrize("module", [tritonclient_http, tritonclient_grpc])
def test_an_output_is_answered_once(server: placewright.Server, module: Any) -> None:
    asked = client(server, module)
    given, output = random_input(module, asked)
    twice = [module.InferRequestedOutput(output)] * 2
    with pytest.raises(Exception, match="twice"):
        asked.infer(MODEL, [given], outputs=twice)


def test_names_of_models_are_escaped_in_the_metrics(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    xml = made(tmp_path)
    odd = xml.with_name('a"b\\c.xml')
    xml.rename(odd)
    xml.with_suffix(".bin").rename(odd.with_suffix(".bin"))
    with placewright.Server([odd], grpc="none") as server:
        assert 'model="a\\"b\\\\c",version="1"' in status(server, "metrics")[1]


def wait_for(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.05)


def test_a_folder_is_served_and_models_come_and_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    version = tmp_path / "models" / "small" / "3"
    version.mkdir(parents=True)
    xml = made(tmp_path)
    for file in (xml, xml.with_suffix(".bin")):
        file.rename(version / file.name)
    outside = tmp_path / "outside.xml"
    outside.write_text("<net/>")
    (tmp_path / "models" / "link.xml").symlink_to(outside)
    os.mkfifo(tmp_path / "models" / "pipe.onnx")
    with placewright.Server(folder=str(tmp_path / "models"), grpc="none") as server:
        asked = client(server, tritonclient_http)
        assert asked.is_model_ready("small", "3")
        assert [model["name"] for model in asked.get_model_repository_index()] == ["small"]
        asked.unload_model("small")
        assert not asked.is_model_ready("small")
        asked.load_model("small")
        assert asked.is_model_ready("small")
        os.utime(version / xml.name)
        wait_for(lambda: sum("is unloaded" in line for line in server.log) == 2)
        assert asked.is_model_ready("small")
        (version / xml.name).unlink()
        wait_for(lambda: not asked.is_model_ready("small"))
        loads = sum("is ready" in line for line in server.log)
        assert loads == 3, "once each: the start, the request to load, the change of the file"
        for stranger in ("link", "..%2Foutside"):
            with pytest.raises(Exception, match="there is no model"):
                asked.load_model(stranger)


def test_models_beyond_the_memory_come_back_when_they_are_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    subprocess.run([PROGRAM, "zoo", "make", "squeezenet", "-o", tmp_path, "-q"], check=True)
    names = ["first", "second"]
    for name in names:
        for ending in (".xml", ".bin"):
            shutil.copy(tmp_path / f"squeezenet{ending}", tmp_path / f"{name}{ending}")
    files = [tmp_path / f"{name}.xml" for name in names]
    with placewright.Server(files, grpc="none"):
        pass  # measures
    with placewright.Server(files, grpc="none") as server:
        taken = [model["memory"] / 1e6 for model in json.loads(status(server, "v2/report")[1])["models"]]
    with placewright.Server(files, memory=max(taken) + min(taken) / 2) as server:
        assert any("leaves the memory for 'second'" in line for line in server.log)
        states = {model["name"]: model["state"] for model in json.loads(status(server, "v2/report")[1])["models"]}
        assert states == {"first": "unloaded", "second": "ready"}
        asked = client(server, tritonclient_grpc)
        assert asked.is_model_ready("first")
        given, output = input_of(asked, "first")
        answers = [asked.infer(name, [given]).as_numpy(output) for name in names * 3]
        assert all((answer == answers[0]).all() for answer in answers)
        assert any("model 'first' version 1 is back" in line for line in server.log)


def test_a_model_larger_than_the_memory_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    subprocess.run([PROGRAM, "zoo", "make", "squeezenet", "-o", tmp_path, "-q"], check=True)
    with pytest.raises(RuntimeError, match=r"takes [0-9]+ MB, and all models may take 1 MB \(--memory\)"):
        placewright.Server([tmp_path / "squeezenet.xml"], memory=1).start()


def test_a_configuration_says_what_is_served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    made(tmp_path)
    (tmp_path / "token.txt").write_text("secret\n")
    config = tmp_path / "serve.json"
    settings: dict[str, Any] = {
        "models": [{"path": f"{MODEL}.xml", "service": {"objective": 1e-3, "queue": 5}}],
        "token": "token.txt",
        "log": "json",
        "http": "none",
    }
    config.write_text(json.dumps(settings))
    schema = json.loads((Path(__file__).resolve().parents[2] / "docs/schema/serve-config.json").read_text())
    validator = pytest.importorskip("jsonschema").Draft202012Validator(schema)
    validator.validate(settings)
    with placewright.Server(config=str(config)) as server:
        asked = client(server, tritonclient_http)  # the flag of the class counts more than the file
        assert asked.is_server_live()
        with pytest.raises(Exception, match="the token is missing or wrong"):
            asked.get_model_metadata(MODEL)
        grpc = client(server, tritonclient_grpc)
        headers = {"authorization": "Bearer secret"}
        metadata = grpc.get_model_metadata(MODEL, headers=headers, as_json=True)["inputs"][0]
        given = tritonclient_grpc.InferInput(metadata["name"], [int(size) for size in metadata["shape"]], "FP32")
        given.set_data_from_numpy(numpy.zeros(given.shape(), numpy.float32))
        with pytest.raises(Exception, match="the answer would come after the deadline"):
            grpc.infer(MODEL, [given], headers=headers)
        assert all(set(json.loads(line)) == {"time", "message"} for line in server.log)
    for change, sentence in (
        ({"models": [{"path": "x.xml", "service": {"weight": 0}}]}, "models/0/service/weight: expected a number"),
        ({"modells": []}, "modells: the key is not known"),
        ({"policy": "fastest"}, "policy.*normalised"),
        ({"models": [{"service": {}}]}, "path"),
    ):
        assert not validator.is_valid(change)
        config.write_text(json.dumps(change))
        with pytest.raises(RuntimeError, match=sentence):
            placewright.Server(config=str(config)).start()


def input_of(asked: Any, model: str) -> tuple[Any, str]:
    metadata = asked.get_model_metadata(model, as_json=True)
    tensor = metadata["inputs"][0]
    given = tritonclient_grpc.InferInput(tensor["name"], [int(size) for size in tensor["shape"]], "FP32")
    given.set_data_from_numpy(numpy.ones(given.shape(), numpy.float32))
    return given, metadata["outputs"][0]["name"]


def test_a_stranger_is_refused_before_the_body_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "token").write_text("secret\n")
    with placewright.Server([made(tmp_path)], token=str(tmp_path / "token"), grpc="none") as server:
        head = b"POST /v2/models/%s/infer HTTP/1.1\r\nContent-Length: 50000000\r\n\r\n" % MODEL.encode()
        begin = time.monotonic()
        assert bytes_until_the_end(server, head, drops=False).startswith(b"HTTP/1.1 401 ")
        assert time.monotonic() - begin < 4, "nobody waits for the body"


def test_a_token_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "token").write_text("secret\n")
    with placewright.Server([made(tmp_path)], token=str(tmp_path / "token")) as server:
        for module in (tritonclient_http, tritonclient_grpc):
            asked = client(server, module)
            with pytest.raises(Exception, match="the token is missing or wrong"):
                asked.get_model_metadata(MODEL)
            headers = {"authorization": "Bearer secret"}
            assert asked.get_model_metadata(MODEL, headers=headers) is not None


def test_an_end_by_a_signal_is_clean(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    server = placewright.Server([made(tmp_path)]).start()
    os.kill(server.pid, signal.SIGTERM)
    server.stop()
    assert server.log[-1].endswith("all accepted requests have been answered")


def test_a_signal_is_heard_while_models_are_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    models: list[str] = []
    for number in range(20):
        folder = tmp_path / str(number)
        folder.mkdir()
        models.append(str(made(folder).rename(folder / f"m{number}.xml")))
        (folder / f"{MODEL}.bin").rename(folder / f"m{number}.bin")
    command = [PROGRAM, "serve", *models, "--http", "127.0.0.1:0", "--grpc", "none"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("http ")
        process.send_signal(signal.SIGTERM)
        printed, said = process.communicate(timeout=60)
        assert process.returncode == 0
        assert "ready" not in printed
        assert said.splitlines()[-1].endswith("all accepted requests have been answered")


def test_keywords_are_options_of_the_program() -> None:
    text = subprocess.run([PROGRAM, "serve", "--help"], capture_output=True, text=True, check=True).stdout
    options = {line.split()[0].removeprefix("--") for line in text.splitlines() if line.lstrip().startswith("--")}
    parameters = inspect.signature(placewright.Server.__init__).parameters
    keywords = {
        name.replace("_", "-") for name, each in parameters.items() if each.kind is inspect.Parameter.KEYWORD_ONLY
    }
    assert keywords - options == {"program", "start-timeout"}


def test_options_reach_the_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    limits = {"objective": {MODEL: "20s"}, "queue": 5, "largest_body": 0.001, "policy": "arrival"}
    with placewright.Server([made(tmp_path)], grpc="none", insecure=True, **limits) as server:
        assert status(server, f"v2/models/{MODEL}/infer", b" " * 2_000)[0] == 413
    with pytest.raises(RuntimeError, match="--nonsense"):
        placewright.Server([tmp_path / f"{MODEL}.xml"], nonsense=1).start()


def test_what_cannot_start_says_why(tmp_path: Path, server: placewright.Server) -> None:
    model = made(tmp_path)
    with pytest.raises(RuntimeError, match="the port is in use"):
        placewright.Server([model], http=server.http).start()
    with pytest.raises(RuntimeError, match="give --token or --tls-clients, or allow it with --insecure"):
        placewright.Server([model], http="0.0.0.0:0").start()
    with pytest.raises(RuntimeError, match="no model is called 'nothing'"):
        placewright.Server([model], objective={"nothing": "5ms"}).start()
    with pytest.raises(RuntimeError, match="there is no such file"):
        placewright.Server([tmp_path / "nothing.xml"]).start()
