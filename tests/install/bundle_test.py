"""Packs the program with scripts/bundle and uses it as on a machine where nothing is installed: from an empty folder,
without surroundings, and with no library but its own and the system's."""

import os
import pathlib
import subprocess
import tarfile
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = pathlib.Path(os.environ["PLACEWRIGHT_PROGRAM"])
MOST_BYTES = 44 * 1024 * 1024


class BundleTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.holder = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.holder.name)
        cls.archive = cls.folder / "bundle.tar.xz"
        subprocess.run([ROOT / "scripts/bundle", PROGRAM, cls.archive], check=True, capture_output=True)
        with tarfile.open(cls.archive) as archive:
            archive.extractall(cls.folder)

    @classmethod
    def tearDownClass(cls):
        cls.holder.cleanup()

    # What it prints, and the libraries that it loaded from elsewhere.
    def run_bundled(self, *arguments):
        with tempfile.TemporaryDirectory() as empty:
            log = pathlib.Path(empty) / "loaded"
            done = subprocess.run([self.folder / "placewright/placewright", *map(str, arguments)], capture_output=True,
                                  text=True, cwd=empty, timeout=300, check=False,
                                  env={"LD_DEBUG": "files", "LD_DEBUG_OUTPUT": str(log)})
            loaded = "".join(path.read_text(errors="replace") for path in pathlib.Path(empty).glob("loaded*"))
        self.assertEqual(done.returncode, 0, done.stderr)
        calls = [line.split()[-1] for line in loaded.splitlines() if "calling init: " in line]
        self.assertTrue(any("libhighs" in name for name in calls), calls)
        return done.stdout, [name for name in calls if not name.startswith((str(self.folder), "/lib", "/usr/lib"))]

    def test_the_archive_is_small_enough_to_travel(self):
        self.assertLessEqual(self.archive.stat().st_size, MOST_BYTES)

    def test_the_program_plans_with_cp_sat(self):
        out, loaded = self.run_bundled("plan", ROOT / "examples/moirai/example-1.json", "--planner", "cpsat")
        self.assertIn("planner           cpsat", out)
        self.assertEqual(loaded, [])

    def test_openvino_finds_the_cores(self):
        out, loaded = self.run_bundled("devices")
        self.assertIn("cpu:0", out)
        self.assertEqual(loaded, [])

    def test_models_are_served(self):
        if not PROGRAM.with_name("placewright-server").exists():
            self.skipTest("the server is not built")
        subprocess.run([PROGRAM, "zoo", "make", "tiny-branches", "-o", self.folder, "-q"], check=True)
        command = [self.folder / "placewright/placewright", "serve", self.folder / "tiny-branches.xml"]
        command += ["--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              env={"XDG_CACHE_HOME": str(self.folder / "cache")}) as server:
            said = [server.stdout.readline().split()[0] for _ in range(3)]
            server.terminate()
            rest = server.communicate(timeout=60)
        self.assertEqual(said, ["http", "grpc", "ready"], rest)
        self.assertEqual(server.returncode, 0, rest)


if __name__ == "__main__":
    unittest.main()
