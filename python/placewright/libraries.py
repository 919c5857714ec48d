"""Shared libraries that other wheels bring, and the program."""

from __future__ import annotations

import importlib.util
import os
import shutil
from pathlib import Path

_CP_SAT = "PLACEWRIGHT_ORTOOLS_LIB"


def find_cp_sat() -> None:
    """Names the library of the installed ortools, if there is one and the user named none. Nothing is loaded yet."""
    if _CP_SAT in os.environ:
        return
    found = importlib.util.find_spec("ortools")
    for folder in found.submodule_search_locations or () if found else ():
        for library in sorted(Path(folder, ".libs").glob("libortools.so*")):
            os.environ[_CP_SAT] = str(library)


def program_path(given: str | os.PathLike[str] | None) -> str:
    """The program `placewright`: what is given, what PLACEWRIGHT_PROGRAM names, or the one on the PATH."""
    found = given or os.environ.get("PLACEWRIGHT_PROGRAM") or shutil.which("placewright")
    if not found:
        raise RuntimeError("there is no program 'placewright': name it, or set PLACEWRIGHT_PROGRAM")
    return os.fspath(found)
