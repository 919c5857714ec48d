"""`placewright llama` with the real llama.cpp: two RPC servers on this machine, models of random weights.

Skipped where llama.cpp was not built (`make llama`).
"""

import contextlib
import importlib.util
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = os.environ["PLACEWRIGHT_PROGRAM"]
TOOLS = pathlib.Path(os.environ.get("PLACEWRIGHT_LLAMA_TOOLS", ROOT / ".deps/llama/bin"))
sys.path.insert(0, str(ROOT / "bench"))


def missing():
    if not (TOOLS / "llama-bench").exists():
        return "llama.cpp was not built (make llama)"
    if importlib.util.find_spec("gguf") is None:
        return "the package gguf is missing (make llama)"
    return ""


@unittest.skipIf(missing(), missing())
class LlamaTest(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)
        self.endpoints = [self.start_server(), self.start_server()]

    def start_server(self):
        with socket.socket() as one:
            one.bind(("127.0.0.1", 0))
            port = one.getsockname()[1]
        server = subprocess.Popen([TOOLS / "ggml-rpc-server", "-t", "1", "-p", str(port)],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        for _ in range(200):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                return f"127.0.0.1:{port}"
            time.sleep(0.1)
        self.fail("the RPC server does not answer")

    def model(self, experts):
        import random_gguf

        path = self.folder / "model.gguf"
        random_gguf.write(path, 6, 256, experts)
        return path

    def llama(self, model, hosts, *more):
        file = self.folder / "hosts.json"
        file.write_text(json.dumps({"placewright": "llama-hosts", "version": 1, "hosts": hosts}))
        done = subprocess.run(
            [PROGRAM, "llama", model, "--hosts", file, "--tools", TOOLS, "--context", "128", "--tokens", "8",
             "--repeats", "1", "--threads", "1", "--json", *more], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def generated(self, command):
        """The text that the command generates, and what it says of its memory."""
        words = [*command, "-p", "ab", "-n", "8", "--temp", "0", "--seed", "1", "-no-cnv", "-lv", "4"]
        done = subprocess.run(words, capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL,
                              check=False, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr[-2000:])
        return done.stdout, done.stderr

    def check_split(self, answer):
        """The model runs on the planned hosts; what it generates."""
        split, said = self.generated(answer["command"])
        for number in range(sum(share["host"] != "here" for share in answer["candidates"][0]["shares"])):
            self.assertIn(f"RPC{number}", said)
        self.assertIn("ab", split)
        return split

    def test_a_model_that_no_host_holds(self):
        model = self.model(0)
        size = model.stat().st_size
        hosts = [{"name": "a", "endpoint": self.endpoints[0], "memory": 0.7 * size},
                 {"name": "b", "endpoint": self.endpoints[1], "memory": 0.7 * size}]
        answer = self.llama(model, hosts, "--for", "llama-completion")
        self.assertTrue(answer["split"])
        self.assertEqual(sum(share["layers"] for share in answer["candidates"][0]["shares"]), 6)
        whole = [str(TOOLS / "llama-completion"), "-m", str(model), "-ngl", "0", "-dev", "none", "-t", "1"]
        # llama-completion may end before all of its text is printed: one text begins as the other.
        texts = sorted((self.check_split(answer).strip(), self.generated(whole)[0].strip()), key=len)
        self.assertIn("ab", texts[0])
        self.assertTrue(texts[1].startswith(texts[0]), texts)

    def test_experts_on_this_machine(self):
        model = self.model(4)
        hosts = [{"name": "a", "endpoint": self.endpoints[0], "memory": 0.6 * model.stat().st_size}]
        answer = self.llama(model, hosts, "--for", "llama-completion")
        self.assertGreater(answer["candidates"][0]["shares"][0]["experts_here"], 0)
        self.assertIn("-ot", answer["command"])
        self.check_split(answer)

    def test_free_memory_is_asked_for(self):
        answer = self.llama(self.model(0), [{"name": "a", "endpoint": self.endpoints[0]}])
        self.assertGreater(answer["hosts"][0]["memory"], 2**20)
        self.assertFalse(answer["split"])


if __name__ == "__main__":
    unittest.main()
