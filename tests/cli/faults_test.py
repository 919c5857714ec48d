"""What is left behind when something goes wrong in the middle: for every verb that writes, the program is killed, its files
may not grow, it gets no more memory, or no more threads. Every file is then whole or absent (or as it was before), and the
program ends by itself, with an exit code of its own and one sentence, unless it was killed."""

import json
import os
import pathlib
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = os.environ["PLACEWRIGHT_PROGRAM"]
PROBLEM = str(ROOT / "examples/moirai/GoogLeNet.json")
MEBIBYTE = 1 << 20
TIMEOUT = 300
DISTURBED = re.compile("the measurement is not valid|no round has a valid measurement")

# The verb with its arguments, and the files it writes. {model}, {plan} and {model_plan} are made
# beforehand; {core} is a device.
WRITERS = [
    ("generate layered --ops 20000 -o big.json", ["big.json"]),
    ("import {problem} -o imported.json", ["imported.json"]),
    ("import {model} --device {core} -o graph.json", ["graph.json"]),
    ("devices -o cluster.json", ["cluster.json"]),
    ("plan {problem} --planner heft --embed -o plan.json", ["plan.json"]),
    ("whatif {problem} --devices 1-3 --planner heft --csv points.csv --chart curves.svg", ["points.csv", "curves.svg"]),
    ("export {plan} --to trace -o trace.json", ["trace.json"]),
    ("export {plan} --to dot -o graph.dot", ["graph.dot"]),
    ("export {plan} --to csv -o rows.csv", ["rows.csv"]),
    ("export {plan} --to model-explorer -o explorer.json", ["explorer.json", "explorer.node-data.json"]),
    ("export {model_plan} --to openvino -o placed.xml", ["placed.bin", "placed.affinity.json", "placed.xml"]),
    ("report {plan} -o page.html", ["page.html"]),
    ("zoo make tiny-pair -o .", ["tiny-pair.bin", "tiny-pair.xml"]),
    ("profile {model} --device {core} --repeat 1 -o problem.json", ["problem.json"]),
    ("run {model_plan} --repeat 2 --no-baselines -o run.json --timeline run-trace.json", ["run.json", "run-trace.json"]),
    ("tune {model} --device {core} --rounds 1 --repeat 1 --time-limit 100ms -o tuned.json --corrected corrected.json",
     ["tuned.json", "corrected.json"]),
]


def limited(**limits):
    """For preexec_fn: soft and hard limits by name, as in resource.RLIMIT_NAME."""
    def apply():
        for name, most in limits.items():
            resource.setrlimit(getattr(resource, "RLIMIT_" + name), (most, most))
    return apply


def complete(path):
    """Whether the file ends where a file of its kind does."""
    text = path.read_bytes()
    try:
        if path.suffix == ".json":
            json.loads(text)
        elif path.suffix in (".xml", ".svg"):
            xml.etree.ElementTree.fromstring(text)
        elif path.suffix == ".html":
            return text.rstrip().endswith(b"</html>")
        elif path.suffix == ".dot":
            return text.endswith(b"}\n")
        else:
            return text.endswith(b"\n") or path.suffix == ".bin"
    except (ValueError, xml.etree.ElementTree.ParseError):
        return False
    return True


class FaultTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.made = tempfile.TemporaryDirectory()
        folder = pathlib.Path(cls.made.name)
        core = f"cpu:{min(os.sched_getaffinity(0))}"
        cls.cache = unittest.mock.patch.dict(os.environ, XDG_CACHE_HOME=str(folder / "cache"))
        cls.cache.start()

        def make(*arguments):
            subprocess.run([PROGRAM, *arguments], cwd=folder, check=True, capture_output=True, timeout=TIMEOUT)

        make("zoo", "make", "tiny-pair", "-o", ".")
        make("import", "tiny-pair.xml", "--device", core, "-o", "model.json")
        make("plan", "model.json", "--planner", "heft", "-o", "model-plan.json")
        make("plan", PROBLEM, "--planner", "heft", "-o", "plan.json")
        cls.words = {"problem": PROBLEM, "model": folder / "tiny-pair.xml", "plan": folder / "plan.json",
                     "model_plan": folder / "model-plan.json", "core": core}

    @classmethod
    def tearDownClass(cls):
        cls.cache.stop()
        cls.made.cleanup()

    def start(self, command, folder, limits=None):
        return subprocess.Popen([PROGRAM, *command.format(**self.words).split()], cwd=folder, preexec_fn=limits,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace")

    def finish(self, command, folder, limits=None):
        with self.start(command, folder, limits) as process:
            try:
                _, errors = process.communicate(timeout=TIMEOUT)
            except subprocess.TimeoutExpired:
                process.kill()
                self.fail("does not end")
            return process.returncode, errors

    def for_each_writer(self, check):
        """Calls check(command, its files, an empty folder for them)."""
        for command, files in WRITERS:
            with self.subTest(command=command), tempfile.TemporaryDirectory() as name:
                check(command, files, pathlib.Path(name))

    def expect_whole_or_absent(self, folder, files):
        for name in files:
            self.assertTrue(not (folder / name).exists() or complete(folder / name), f"{name} is cut off")

    def expect_clean_end(self, code, errors):
        self.assertIn(code, (0, 1, 3, 4), f"ended with {code}: {errors[-600:]}")
        if code in (3, 4):
            self.assertIn("placewright: error: ", errors)
            self.assertNotIn("terminate called", errors)

    def test_without_a_fault_everything_is_written(self):
        def check(command, files, folder):
            code, errors = self.finish(command, folder)
            if code == 1 and DISTURBED.search(errors):
                return  # other work on the machine: a measurement that is not valid need not be kept
            self.assertEqual(code, 0, errors)
            for name in files:
                self.assertTrue((folder / name).exists(), name)
                self.assertGreater((folder / name).stat().st_size, 64)
            self.expect_whole_or_absent(folder, files)
            self.assertEqual({path.name for path in folder.iterdir()}, set(files))
        self.for_each_writer(check)

    def test_killed_in_the_middle(self):
        def check(command, files, folder):
            begin = time.monotonic()
            self.finish(command, folder)
            lasts = time.monotonic() - begin
            for part in (0.2, 0.5, 0.8, 0.9, 0.95, 1.0):
                for name in files:
                    (folder / name).unlink(missing_ok=True)
                with self.start(command, folder) as process:
                    time.sleep(part * lasts)
                    process.send_signal(signal.SIGKILL)
                    process.communicate()
                self.expect_whole_or_absent(folder, files)
        self.for_each_writer(check)

    def test_a_file_that_may_not_grow_any_further(self):
        def check(command, files, folder):
            code, errors = self.finish(command, folder, limited(FSIZE=32))
            self.assertEqual(code, 3, errors)
            self.assertIn("cannot be written: File too large", errors)
            self.assertEqual(errors.count("placewright: error: "), 1, errors)
            self.assertEqual(list(folder.iterdir()), [], "something was left behind")
        self.for_each_writer(check)

    def test_a_file_that_cannot_be_replaced_stays_as_it_was(self):
        def check(command, files, folder):
            for name in files:
                (folder / name).write_text("old")
            code, errors = self.finish(command, folder, limited(FSIZE=32))
            self.assertEqual(code, 3, errors)
            for name in files:
                self.assertEqual((folder / name).read_text(), "old")
        self.for_each_writer(check)

    def least_memory(self):
        """The address space, in bytes, in which the program can start."""
        low, high = 0, 4096
        while high - low > 2:
            middle = (low + high) // 2
            done = subprocess.run([PROGRAM, "--version"], capture_output=True, check=False, timeout=TIMEOUT,
                                  preexec_fn=limited(AS=middle * MEBIBYTE))
            low, high = (low, middle) if done.returncode == 0 else (middle, high)
        return high * MEBIBYTE

    def test_no_more_memory(self):
        least = self.least_memory()

        def check(command, files, folder):
            for more in (0, 4, 32, 128):
                code, errors = self.finish(command, folder, limited(AS=least + more * MEBIBYTE))
                self.expect_clean_end(code, errors)
                self.expect_whole_or_absent(folder, files)
        self.for_each_writer(check)

    def test_no_more_threads(self):
        # A thread takes as much address space as the stack may grow to: few such stacks fit.
        # (RLIMIT_NPROC does not bind root.) With still less, oneTBB waits for ever inside OpenVINO.
        limits = limited(STACK=256 * MEBIBYTE, AS=self.least_memory() + 900 * MEBIBYTE)

        def check(command, files, folder):
            code, errors = self.finish(command, folder, limits)
            self.expect_clean_end(code, errors)
            self.expect_whole_or_absent(folder, files)
        self.for_each_writer(check)
        for planner in ("auto", "search", "decompose", "cpsat", "random"):
            with self.subTest(planner=planner), tempfile.TemporaryDirectory() as name:
                check(f"plan {{problem}} --planner {planner} --threads 32 --time-limit 2s -o plan.json", ["plan.json"],
                      pathlib.Path(name))


if __name__ == "__main__":
    unittest.main(argv=sys.argv, verbosity=2)
