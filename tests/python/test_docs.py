"""The code blocks of docs/python.md run, one after the other, as a reader would run them."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

pytest.importorskip("torch")

import needs

needs.extension()

ROOT = Path(__file__).resolve().parents[2]


def test_the_blocks_of_the_page_run(tmp_path, monkeypatch) -> None:
    if not {0, 1} <= os.sched_getaffinity(0):
        pytest.skip("the page uses cores 0 and 1")
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "python.md").read_text(encoding="utf-8"), re.S)
    assert len(blocks) == 4
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, "docs/python.md", "exec"), names)
    assert {"report.html", "trace.json", "folder"} <= set(os.listdir(tmp_path))
