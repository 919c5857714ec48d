"""The code blocks of the Python pages run, one after the other, as a reader would run them.

A block ```text after a block ```python is what it prints. Numbers differ from run to run, and so does what is chosen,
so the first word of every line is compared. `python tests/python/test_docs.py PAGE` writes what is printed into a page.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("torch")

import needs

needs.extension()

DOCS = Path(__file__).resolve().parents[2] / "docs"
BLOCK = re.compile(r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?", re.DOTALL)


def executed(page: Path) -> Iterator[tuple[str | None, str]]:
    """Of each block what the page says that it prints, and what it prints."""
    names: dict[str, object] = {}
    for code, shown in BLOCK.findall(page.read_text(encoding="utf-8")):
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(compile(code, str(page), "exec"), names)
        yield shown, printed.getvalue()


@pytest.mark.parametrize(
    ("page", "blocks", "files"),
    [
        ("python.md", 5, {"report.html", "bench.svg", "trace.json", "folder"}),
        ("start/pytorch.md", 5, {"report.html", "folder"}),
    ],
)
def test_the_blocks_of_the_page_run(
    page: str, blocks: int, files: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not {0, 1} <= os.sched_getaffinity(0):
        pytest.skip("the page uses cores 0 and 1")
    (tmp_path / "examples").symlink_to(DOCS.parent / "examples")
    monkeypatch.chdir(tmp_path)
    outputs = list(executed(DOCS / page))
    assert len(outputs) == blocks
    for shown, printed in outputs:
        if shown:
            assert first_words(printed) == first_words(shown)
    assert files <= set(os.listdir(tmp_path))


def first_words(text: str) -> list[str]:
    return [line.split()[0] for line in text.splitlines()]


def refresh(page: Path) -> None:
    outputs = [printed for _, printed in executed(page)]

    def with_output(match: re.Match[str]) -> str:
        printed = outputs.pop(0)
        return f"```python\n{match[1]}```" + (f"\n\n```text\n{printed}```" if match[2] is not None else "")

    page.write_text(BLOCK.sub(with_output, page.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    refresh(Path(sys.argv[1]).resolve())
