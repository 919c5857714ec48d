"""Builds the wheel as `pip install .` does, installs it into an empty environment, and tests the package there."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CACHED = "CMAKE_COMPILE_WARNING_AS_ERROR=ON"


def run(*command: str | Path, **variables: str) -> None:
    subprocess.run([str(part) for part in command], check=True, env={**os.environ, **variables}, cwd=ROOT)


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        pins = ("-c", ROOT / "scripts" / "constraints.txt")
        pip = ("-m", "pip", "--disable-pip-version-check", "-q")
        # This interpreter has the pinned build requirements, so none are fetched.
        build = ("wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", folder)
        # The compiler and the warnings of the other builds here, so that the compiler cache serves
        # this one too.
        run(sys.executable, *pip, *build, ROOT, CXX="/usr/bin/c++", SKBUILD_CMAKE_DEFINE=CACHED)
        (wheel,) = folder.glob("placewright-*.whl")
        venv.create(folder / "empty", with_pip=True, symlinks=True)
        python = folder / "empty" / "bin" / "python"
        run(python, *pip, "install", *pins, f"{wheel}[openvino]", "pytest")
        tests = ("tests/python/test_planning.py", "tests/python/test_session.py")
        run(python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests, PLACEWRIGHT_INSTALLED="1")
        run(
            python,
            "-c",
            "import placewright, pathlib; assert (pathlib.Path(placewright.__file__).parent / 'py.typed').exists()",
        )


if __name__ == "__main__":
    main()
