#!/usr/bin/env python3
"""A served hour with faults:  tests/serving_soak.py [--minutes 60] [--rate 8] [--json FILE]

Clients over gRPC and HTTP send requests for three models. Meanwhile other clients leave in the middle of theirs, a model is
unloaded and loaded again, its file changes, another process takes the cores, and the server may only take little more memory
than it has after all of this happened once (--headroom). At the end the server is asked to stop while requests are on their way.

Prints the requests that were accepted and got neither an answer nor an error, and how much the server's own memory grew from
a sixth of the time on (minute 10 of an hour). Exit code 1 if a request was left without an answer, the server ended, or the
memory grew by --growth MB or more.
"""

import argparse
import collections
import json
import multiprocessing
import os
import pathlib
import random
import re
import resource
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "python"))

import numpy
import tritonclient.grpc
import tritonclient.http

import placewright

MODELS = ["tiny-branches", "tiny-pair", "squeezenet"]
PATIENCE = 60  # seconds after which a request counts as left without an answer
FAULTS = {"clients": "leaving_clients", "reloads": "reloads", "cores": "taken_cores"}
FRONTS = {"grpc": tritonclient.grpc, "http": tritonclient.http}


class Soak:
    def __init__(self, options, server, folder):
        self.options, self.server, self.folder = options, server, folder
        self.over = threading.Event()
        self.counts = collections.Counter()
        self.lock = threading.Lock()
        self.memory = []  # second, bytes
        self.begin = time.monotonic()

    def count(self, what):
        with self.lock:
            self.counts[what] += 1

    # Clients.

    def connect(self, front):
        module = FRONTS[front]
        if front == "grpc":
            return module.InferenceServerClient(self.server.grpc)
        return module.InferenceServerClient(self.server.http, connection_timeout=PATIENCE, network_timeout=PATIENCE)

    def inputs(self, front, model):
        """Made from the file, so that they are known while the model is not there."""
        import openvino

        made = []
        for port in openvino.Core().read_model(self.folder / f"{model}/1/{model}.xml").inputs:
            given = FRONTS[front].InferInput(port.get_any_name(), list(port.get_shape()), "FP32")
            given.set_data_from_numpy(numpy.full(list(port.get_shape()), 0.5, numpy.float32))
            made.append(given)
        return made

    def client(self, number):
        front = ["grpc", "http"][number % 2]
        draw = random.Random(number)
        given = {model: self.inputs(front, model) for model in MODELS}
        client = self.connect(front)
        while not self.over.is_set():
            model = draw.choice(MODELS)
            keywords = {"client_timeout": PATIENCE} if front == "grpc" else {}
            begin = time.monotonic()
            try:
                client.infer(model, given[model], **keywords)
                self.count("answered")
            except Exception as error:
                self.count(self.meaning(error, time.monotonic() - begin))
                client = self.connect(front)
            self.over.wait(draw.expovariate(self.options.rate / self.options.clients))
        self.count("clients ended")

    def meaning(self, error, took):
        """Of an error: a refusal with a status, or no answer at all."""
        text = str(error)
        if took >= PATIENCE or "DEADLINE_EXCEEDED" in text or "timed out" in text:
            return "without an answer"
        # Before it accepts requests again, or after it has ended, there is nobody to accept one.
        if "onnection refused" in text or "failed to connect" in text:
            return "not accepted"
        if re.search(r"Socket closed|reset by peer|closed by|Stream removed|end of file|empty response", text, re.IGNORECASE):
            return "without an answer" if not self.over.is_set() else "not accepted"
        return "refused"

    # Faults.

    def leaving_clients(self):
        """Half a body, half a header, a call that is cancelled."""
        draw = random.Random(7)
        given = self.inputs("grpc", "squeezenet")
        client = self.connect("grpc")
        while not self.over.wait(draw.uniform(0.2, 1)):
            if draw.random() < 0.5:
                call = client.async_infer("squeezenet", given, callback=lambda result, error: None)
                time.sleep(draw.uniform(0, 0.02))
                call.cancel()
            else:
                host, port = self.server.http.rsplit(":", 1)
                try:
                    with socket.create_connection((host, int(port)), timeout=5) as connection:
                        connection.sendall(b"POST /v2/models/squeezenet/infer HTTP/1.1\r\nContent-Length: 600000\r\n\r\n" + bytes(draw.randint(0, 500_000)))
                except OSError:
                    pass
            self.count("clients that left")

    def reloads(self):
        draw = random.Random(8)
        while not self.over.wait(draw.uniform(2, 8)):
            model = draw.choice(MODELS[:2])
            try:
                if draw.random() < 0.3:
                    os.utime(self.folder / f"{model}/1/{model}.xml")
                else:
                    for action in ("unload", "load"):
                        request = urllib.request.Request(f"http://{self.server.http}/v2/repository/models/{model}/{action}", b"{}")
                        urllib.request.urlopen(request, timeout=PATIENCE).read()
                        self.over.wait(0.2)
                self.count("reloads")
            except OSError as error:
                self.count(f"reload failed: {error}")

    def taken_cores(self):
        while not self.over.wait(20):
            hogs = [multiprocessing.get_context("spawn").Process(target=hog, args=(3,)) for _ in os.sched_getaffinity(0)]
            for each in hogs:
                each.start()
            for each in hogs:
                each.join()
            self.count("times that the cores were taken")

    # Memory.

    def anonymous(self):
        status = pathlib.Path(f"/proc/{self.server.pid}/status").read_text()
        return 1024 * int(re.search(r"RssAnon:\s+(\d+)", status)[1]), 1024 * int(re.search(r"VmSize:\s+(\d+)", status)[1])

    def watch(self):
        limited = False
        seconds = 60 * self.options.minutes
        while not self.over.wait(min(5, seconds / 60)):
            own, address_space = self.anonymous()
            now = time.monotonic() - self.begin
            self.memory.append((now, own))
            if not limited and now > seconds / 10:
                limit = address_space + int(1e6 * self.options.headroom)
                resource.prlimit(self.server.pid, resource.RLIMIT_AS, (limit, limit))
                limited = True

    def growth(self):
        """Bytes: the median of the last twelfth of the time over that of the twelfth after a sixth."""
        seconds = 60 * self.options.minutes
        early = [own for moment, own in self.memory if seconds / 6 <= moment < seconds / 4]
        late = [own for moment, own in self.memory if moment >= seconds * 11 / 12]
        return statistics.median(late) - statistics.median(early)

    def run(self):
        workers = [threading.Thread(target=self.client, args=(number,)) for number in range(self.options.clients)]
        chosen = [getattr(self, FAULTS[name]) for name in self.options.faults]
        faults = [threading.Thread(target=what) for what in (*chosen, self.watch)]
        for thread in [*workers, *faults]:
            thread.start()
        until = self.begin + 60 * self.options.minutes
        said = 0.0
        while time.monotonic() < until and self.alive():
            time.sleep(0.5)
            if time.monotonic() - said > 60:
                said = time.monotonic()
                print(f"{(said - self.begin) / 60:.0f} min: {self.memory[-1][1] / 1e6 if self.memory else 0:.2f} MB, {dict(self.counts)}",
                      file=sys.stderr, flush=True)
        survived = self.alive()
        grown = self.growth() if survived else 0
        text = urllib.request.urlopen(f"http://{self.server.http}/metrics").read().decode() if survived else ""
        self.over.set()
        if survived:
            self.server.stop()
        for thread in [*workers, *faults]:
            thread.join(2 * PATIENCE)
        return survived, grown, text

    def alive(self):
        try:
            return pathlib.Path(f"/proc/{self.server.pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
        except OSError:
            return False


def hog(seconds):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        pass


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--rate", type=float, default=8, help="requests a second, of all clients")
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--faults", nargs="*", choices=FAULTS, default=list(FAULTS), help="to find what a growth comes from")
    parser.add_argument("--headroom", type=float, default=256, help="MB of address space beyond what it has after a tenth of the time")
    parser.add_argument("--growth", type=float, default=1, help="MB that memory may grow")
    parser.add_argument("--program", type=pathlib.Path, default=ROOT / "build/placewright")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place) / "models"
        for model in MODELS:
            subprocess.run([options.program, "zoo", "make", model, "-o", folder / model / "1", "-q"], check=True)
        os.environ["XDG_CACHE_HOME"] = str(pathlib.Path(place) / "cache")
        server = placewright.Server(folder=str(folder), program=options.program, start_timeout=600).start()
        soak = Soak(options, server, folder)
        survived, grown, metrics = soak.run()
    lost = soak.counts["without an answer"]
    report = {"minutes": options.minutes, "survived": survived, "without_an_answer": lost, "growth": grown, "counts": dict(soak.counts),
              "memory": soak.memory, "log": server.log[-50:], "metrics": metrics}
    if options.json:
        options.json.write_text(json.dumps(report, indent=1) + "\n")
    counts = ", ".join(f"{value:,} {what}" for what, value in sorted(soak.counts.items()))
    print(f"{counts}\n{lost} requests without an answer, memory grew by {grown / 1e6:.2f} MB"
          + ("" if survived else f"\nthe server ended: {server.log[-3:]}"))
    return 0 if survived and lost == 0 and grown < 1e6 * options.growth else 1


if __name__ == "__main__":
    sys.exit(main())
