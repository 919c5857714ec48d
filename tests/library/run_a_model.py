"""Runs the example run_a_model on a model of the zoo and this process's first core: run_a_model.py PROGRAM"""

import os
import pathlib
import subprocess
import sys
import tempfile

with tempfile.TemporaryDirectory() as folder:
    model = pathlib.Path(folder) / "tiny-branches.xml"
    subprocess.run([os.environ["PLACEWRIGHT_PROGRAM"], "zoo", "make", "tiny-branches", "-o", folder], check=True)
    core = min(os.sched_getaffinity(0))
    printed = subprocess.run([sys.argv[1], model, f"cpu:{core}"], check=True, capture_output=True, text=True).stdout
    assert " numbers" in printed, printed
