"""What MkDocs does beyond reading docs/ (mkdocs.yml names this file).

Pages that live beside the source become pages of the site, and links to them and to source files lead there. Verbs,
file formats and results are listed from their folders, so that a new page needs no entry.
"""

import posixpath
import re
from pathlib import Path

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parent.parent
OUTSIDE = {
    "README.md": "README.md",  # its reader is on the site already: the site's own first page
    "src/planners/README.md": "planners/README.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "examples/README.md": "examples.md",
}
SCRIPTS = {"mermaid": "assets/mermaid.js", "iframe-worker": "assets/iframe-worker.js"}  # npm package: its copy
SHIM = "https://unpkg.com/iframe-worker/shim"  # what the theme would fetch
LISTED = {"Verbs": "verbs", "File formats": "formats", "Results": "results"}
LANGUAGE = {".cpp": "cpp", ".h": "cpp", ".py": "python", ".sh": "bash", ".json": "json"}
LINK = re.compile(r"(\]\()([^)#:\s]+)((?:#[^)\s]*)?\))")
HOME_OF = {site: source for source, site in OUTSIDE.items() if site != "README.md"}


def listed(folder):
    pages = sorted(path.name for path in (ROOT / "docs" / folder).glob("*.md"))
    pages.sort(key=lambda name: name != "README.md")
    return [f"{folder}/{name}" for name in pages]


def with_lists(entries):
    """The navigation of mkdocs.yml with its empty lists filled."""
    filled = []
    for entry in entries:
        if isinstance(entry, dict):
            ((title, inside),) = entry.items()
            if isinstance(inside, list):
                entry = {title: with_lists(inside) or listed(LISTED[title])}
        filled.append(entry)
    return filled


def source_page(path):
    return f"source/{path}.md"


def linked_sources():
    """Files outside docs/ that pages link to and that are no pages themselves."""
    found = set()
    for page in [*(ROOT / "docs").rglob("*.md"), *(ROOT / source for source in OUTSIDE)]:
        for _, target, _ in LINK.findall(page.read_text(encoding="utf-8")):
            path = (page.parent / target).resolve()
            if path.is_file() and path.is_relative_to(ROOT):
                name = path.relative_to(ROOT).as_posix()
                if not name.startswith("docs/") and name not in OUTSIDE:
                    found.add(name)
    return sorted(found)


def on_config(config):
    config["nav"] = with_lists(config["nav"])
    return config


def on_files(files: Files, config) -> Files:
    for source, site in OUTSIDE.items():
        if site != "README.md":
            files.append(File.generated(config, site, content=(ROOT / source).read_text(encoding="utf-8")))
    for name in linked_sources():
        path = ROOT / name
        text = path.read_text(encoding="utf-8").rstrip("\n")
        shown = f"# {name}\n\n````{LANGUAGE.get(path.suffix, 'text')}\n{text}\n````\n"
        files.append(File.generated(config, source_page(name), content=shown))
    for package, site in SCRIPTS.items():
        script = next((ROOT / ".deps/site").glob(f"{package}-*.js"))
        files.append(File.generated(config, site, abs_src_path=str(script)))
    return files


def on_page_markdown(markdown, page, config, files):
    """Links as they are right in the repository become links that are right on the site."""
    site = page.file.src_uri
    home = posixpath.dirname(HOME_OF.get(site, f"docs/{site}"))

    def rewritten(match):
        path = posixpath.normpath(posixpath.join(home, match[2]))
        if path in OUTSIDE:
            target = OUTSIDE[path]
        elif path.startswith("docs/"):
            target = path.removeprefix("docs/")
        else:
            target = source_page(path)
        return match[1] + posixpath.relpath(target, posixpath.dirname(site) or ".") + match[3]

    return LINK.sub(rewritten, markdown)


def on_post_page(output, page, config):
    home = posixpath.dirname(page.file.dest_uri) or "."
    return output.replace(SHIM, posixpath.relpath(SCRIPTS["iframe-worker"], home))
