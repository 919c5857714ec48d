"""Installs into an empty folder and uses what is there as a stranger would: the program, find_package, pkg-config, the
man page, the completions."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = os.environ["PLACEWRIGHT_BUILD_DIR"]
CMAKE = os.environ["PLACEWRIGHT_CMAKE"]
PROBLEM = ROOT / "examples/moirai/example-1.json"
# Whatever the surroundings add for the build tree must not help here.
CLEAN = {key: value for key, value in os.environ.items() if key not in ("LD_LIBRARY_PATH", "CMAKE_PREFIX_PATH")}


def run(*command, **keywords):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=600, check=False,
                          env={**CLEAN, **keywords.pop("env", {})}, **keywords)
    if done.returncode != 0:
        raise AssertionError(f"{command} ended with {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done.stdout


class InstallTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.holder = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.holder.name)
        cls.staged = cls.folder / "staged"
        run(CMAKE, "--install", BUILD, "--prefix", cls.staged)
        # Another place than the one it was installed to: nothing may remember the prefix.
        cls.prefix = cls.folder / "moved"
        cls.staged.rename(cls.prefix)
        cls.library_dir = next(cls.prefix.rglob("libplacewright.a")).parent

    @classmethod
    def tearDownClass(cls):
        cls.holder.cleanup()

    def use(self, programs):
        plan = self.folder / "plan.json"
        self.assertIn("is valid", run(programs / "plan_a_file", PROBLEM, plan))
        self.assertIn("latency:", run(programs / "build_a_problem"))
        self.assertIn("transfers", run(programs / "own_placement", PROBLEM))
        self.assertIn("valid", run(self.prefix / "bin/placewright", "check", plan))

    def test_the_program_runs_from_anywhere(self):
        self.assertIn("placewright ", run(self.prefix / "bin/placewright", "--version", cwd=self.folder))
        self.assertIn("auto", run(self.prefix / "bin/placewright", "plan", PROBLEM, "--time-limit", "1s"))

    @unittest.skipUnless((pathlib.Path(BUILD).parent / "libplacewright_learned.so").exists(), "built without libtorch")
    def test_the_learned_planners_are_found(self):
        self.assertIn("hsdag", run(self.prefix / "bin/placewright", "plan", PROBLEM, "--planner", "hsdag",
                                   "--option", "episodes=2", cwd=self.folder))

    def test_only_our_own_folder_is_on_the_include_path(self):
        self.assertEqual([path.name for path in (self.prefix / "include").iterdir()], ["placewright"])
        for header in (self.prefix / "include").rglob("*.h"):
            name = header.relative_to(self.prefix / "include").as_posix()
            with self.subTest(name):
                run("c++", "-std=c++20", "-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Werror",
                    "-Wno-missing-field-initializers", "-fsyntax-only", f"-I{self.prefix / 'include'}", "-x", "c++", "-",
                    input=f"#include <{name}>\n#include <{name}>\nint main() {{}}\n")

    def test_find_package(self):
        build = self.folder / "consumer"
        run(CMAKE, "-S", ROOT / "examples/api", "-B", build, f"-DCMAKE_PREFIX_PATH={self.prefix}",
            "-DCMAKE_BUILD_TYPE=Release")
        run(CMAKE, "--build", build)
        self.use(build)

    @unittest.skipUnless(shutil.which("pkg-config"), "pkg-config is not here")
    def test_pkg_config(self):
        build = self.folder / "by-pkg-config"
        build.mkdir()
        flags = run("pkg-config", "--cflags", "--libs", "placewright",
                    env={"PKG_CONFIG_PATH": str(self.library_dir / "pkgconfig")}).split()
        for name in ("plan_a_file", "build_a_problem", "own_placement", "run_a_model"):
            run("c++", "-std=c++20", ROOT / f"examples/api/{name}.cpp", "-o", build / name, *flags)
        self.use(build)

    def test_the_man_page(self):
        page = self.prefix / "share/man/man1/placewright.1"
        text = page.read_text()
        for verb in ("plan", "compare", "check", "simulate", "import", "info", "planners"):
            self.assertIn(f".SS placewright {verb}", text)
        if shutil.which("groff"):
            self.assertIn("PLACEWRIGHT(1)", run("groff", "-man", "-Tascii", "-ww", "-Wmac", page))

    def complete(self, *words):
        script = self.prefix / "share/bash-completion/completions/placewright"
        quoted = " ".join(f"'{word}'" for word in words)
        return run("bash", "-c", f"source '{script}'; COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; "
                   "_placewright; printf '%s\\n' \"${COMPREPLY[@]}\"").split()

    def test_bash_completion(self):
        self.assertEqual(self.complete("placewright", "pl"), ["plan", "planners"])
        self.assertEqual(self.complete("placewright", "plan", "--obj"), ["--objective"])
        self.assertEqual(self.complete("placewright", "plan", "--objective", "t"), ["throughput", "total-completion"])
        self.assertIn("heft", self.complete("placewright", "plan", "--planner", ""))

    def test_other_completions(self):
        for shell, path in (("zsh", "zsh/site-functions/_placewright"), ("fish", "fish/vendor_completions.d/placewright.fish")):
            with self.subTest(shell):
                script = self.prefix / "share" / path
                text = script.read_text()
                for word in ("compare", "objective", "total-completion", "heft"):
                    self.assertIn(word, text)
                if shutil.which(shell):
                    run(shell, "--no-execute", script)


if __name__ == "__main__":
    unittest.main(argv=sys.argv)
