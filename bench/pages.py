"""What the scripts beside this one share that run the program and write tables into pages of the documentation."""

import json
import re
import subprocess


class Program:
    """The placewright program; what it prints as JSON."""

    def __init__(self, path):
        self.path = path

    def run(self, *arguments):
        """The printed object; also where the answer is no, which is said by an exit code of 1."""
        done = subprocess.run([self.path, *map(str, arguments), "--json"], capture_output=True, text=True, check=False)
        if done.returncode > 1 or not done.stdout.strip():
            raise RuntimeError(f"placewright {' '.join(map(str, arguments))}: {done.stderr.strip()}")
        return json.loads(done.stdout)

    def write(self, *arguments):
        """For what is written into a file."""
        subprocess.run([self.path, *map(str, arguments), "--quiet"], check=True)


def table(titles, rows, numbers=True):
    """In Markdown; the first column holds words, the others numbers unless told otherwise."""
    rule = " ---: |" if numbers else " --- |"
    lines = ["| " + " | ".join(titles) + " |", "| --- |" + rule * (len(titles) - 1)]
    return "\n".join(lines + ["| " + " | ".join(map(str, row)) + " |" for row in rows]) + "\n"


def fill(page, name, text):
    """Replaces what stands in the page between `<!-- NAME -->` and the next `<!-- end -->`."""
    marked = re.compile(rf"(<!-- {re.escape(name)} -->\n).*?(<!-- end -->)", re.DOTALL)
    filled, count = marked.subn(lambda found: found[1] + text + found[2], page.read_text())
    if count != 1:
        raise SystemExit(f"{page}: there is no part '{name}'")
    page.write_text(filled)
