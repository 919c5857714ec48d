"""Builds the wheel as `make wheel` does, installs it into an empty environment, and tests the package there, with the
examples of docs/python.md. PyTorch is the one that set-up put into .deps/torch."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CACHED = "CMAKE_COMPILE_WARNING_AS_ERROR=ON"
PIP = ("-m", "pip", "--disable-pip-version-check", "-q")
PINS = ("-c", ROOT / "scripts" / "constraints.txt")
# What torch imports, and what runs the tests.
BESIDE = ("filelock", "fsspec", "jinja2", "networkx", "pytest", "setuptools", "sympy", "typing_extensions")
# They come with wheels of their own.
FOREIGN = ("libopenvino", "libortools", "libtorch")


def run(*command: str | Path, **variables: str) -> None:
    subprocess.run([str(part) for part in command], check=True, env={**os.environ, **variables}, cwd=ROOT)


def built(folder: Path) -> Path:
    # The compiler and the warnings of the other builds here, so that the compiler cache serves
    # this one too.
    run(ROOT / "scripts" / "wheel", folder, CXX="/usr/bin/c++", SKBUILD_CMAKE_DEFINE=CACHED)
    (wheel,) = folder.glob("placewright-*.whl")
    assert "manylinux" in wheel.name, wheel.name
    held = zipfile.ZipFile(wheel).namelist()
    assert any(name.endswith("py.typed") for name in held)
    copied = [
        name for name in held if any(library in name for library in FOREIGN) and "placewright_openvino" not in name
    ]
    assert not copied, copied
    return wheel


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        wheel = built(folder)
        downloads = folder / "downloads"
        run(sys.executable, *PIP, "download", *PINS, "--dest", downloads, wheel, *BESIDE)
        venv.create(folder / "empty", with_pip=True, symlinks=True)
        python = folder / "empty" / "bin" / "python"
        begin = time.monotonic()
        run(python, *PIP, "install", "--no-index", "--find-links", downloads, wheel)
        print(f"installed in {time.monotonic() - begin:.1f} s beside its downloads", flush=True)
        run(python, *PIP, "install", "--no-index", "--find-links", downloads, *BESIDE)
        tests = ("planning", "comparison", "session", "docs")
        files = (f"tests/python/test_{name}.py" for name in tests)
        torch = str(ROOT / ".deps" / "torch")
        run(python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *files, PLACEWRIGHT_INSTALLED="1", PYTHONPATH=torch)


if __name__ == "__main__":
    main()
