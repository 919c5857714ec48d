"""The docs name what there is: every planner, every verb, every schema; links lead somewhere.

With --commands, the commands that the pages show end as the pages say. With --site, MkDocs builds the site and finds no
link that leads nowhere.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = os.environ["PLACEWRIGHT_PROGRAM"]
MOST_COLUMNS = 120
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")


def printed(*arguments):
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=60, check=True).stdout


def missing_planners():
    page = (ROOT / "src/planners/README.md").read_text()
    sections = dict(section.split("\n", 1) for section in page.split("\n## ")[1:])
    for planner in json.loads(printed("planners", "--json")):
        name, role = planner["name"], planner["role"]
        if f"\n| `{name}` |" not in sections.get(role, ""):
            yield f"src/planners/README.md has no row for the planner '{name}' under '{role}'"


def missing_verbs():
    listed = printed("--help").split("Verbs:\n")[1].split("\n\n")[0]
    verbs = re.findall(r"^  ([a-z-]+) ", listed, re.MULTILINE)
    assert "plan" in verbs and len(verbs) >= 7
    page = (ROOT / "docs/reference/README.md").read_text()
    for verb in verbs:
        if not (ROOT / f"docs/verbs/{verb}.md").exists() or f"verbs/{verb}.md" not in page:
            yield f"the verb '{verb}' has no page docs/verbs/{verb}.md, or docs/reference/README.md does not name it"


def missing_schemas():
    page = (ROOT / "docs/schema/README.md").read_text()
    for path in (ROOT / "docs/schema").glob("*.json"):
        if f"`{path.name}`" not in page:
            yield f"docs/schema/README.md does not name {path.name}"


def all_pages():
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").glob("*.md"), *(ROOT / "src").rglob("*.md")]
    assert len(pages) > 15
    return pages


def long_lines():
    """Of prose: tables, and what is typed or printed (fenced or indented by four), may be wider."""
    for page in all_pages():
        fenced = False
        for number, line in enumerate(page.read_text().splitlines(), 1):
            if line.lstrip().startswith("```"):
                fenced = not fenced
            wide = fenced or line.startswith(("|", "    "))
            if not wide and len(line) > MOST_COLUMNS:
                yield f"{page.relative_to(ROOT)}:{number} has {len(line)} columns, prose has at most {MOST_COLUMNS}"


def dead_links():
    for page in all_pages():
        for target in LINK.findall(page.read_text()):
            if not (page.parent / target).exists():
                yield f"{page.relative_to(ROOT)}: the link {target} leads nowhere"


def citations_of_missing_pages():
    """Comments in the source name pages from the root, from docs/ or from their own folder."""
    for path in [*(ROOT / "src").rglob("*.[hc]*"), *(ROOT / "include").rglob("*.h")]:
        for page in set(re.findall(r"[\w/-]+\.md\b", path.read_text())):
            if not any((folder / page).exists() for folder in (ROOT, ROOT / "docs", path.parent)):
                yield f"{path.relative_to(ROOT)} names {page}, which is not in the repository"


def unknown_flags():
    """Of commands that pages and examples/demo.sh show: every flag is in the help of its verb."""
    help_of = {}
    for path in [*all_pages(), ROOT / "examples/demo.sh"]:
        text = path.read_text().replace("\\\n", " ")
        for verb, words in re.findall(r"(?:placewright|step|measured) ([a-z-]+)((?: +[^\s`|>;&()]+)+)", text):
            flags = re.findall(r" (--[a-z][a-z-]*)", words)
            if not flags or not (ROOT / f"docs/verbs/{verb}.md").exists():
                continue
            if verb not in help_of:
                help_of[verb] = set(re.findall(r"--[a-z][a-z-]*", printed(verb, "--help")))
            for flag in set(flags) - help_of[verb]:
                yield f"{path.relative_to(ROOT)} shows 'placewright {verb} {flag}', which {verb} does not take"
    assert len(help_of) >= 7, "the pages show commands"


def build_site():
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
        command = [sys.executable, "-m", "mkdocs", "build", "--site-dir", folder]
        return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


def main():
    if "--site" in sys.argv:
        return build_site()
    if "--commands" in sys.argv:
        return subprocess.run([sys.executable, ROOT / "scripts/refresh-docs", "--check"], check=False).returncode
    faults = [*missing_planners(), *missing_verbs(), *missing_schemas(), *long_lines(), *dead_links(),
              *citations_of_missing_pages(), *unknown_flags()]
    print("\n".join(faults) if faults else "the docs name what there is")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
