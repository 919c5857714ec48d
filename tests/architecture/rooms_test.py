#!/usr/bin/env python3
"""Checks the house rules of src/ and include/ by reading their #include lines: who may open whose door, which family
of planners may include another (none), which room may see a third party's headers, that only the program prints, and
that a public header needs nothing but public headers. No two files define a type of the same name: a file that sees one
of them links with the other's functions. The pages that tell of the rooms must say the same."""

import pathlib
import re
import sys

# room: the other rooms whose headers it may include.
MAY_INCLUDE = {
    "problem": "",
    "evaluate": "problem",
    "verify": "problem",
    "solvers": "plugins",
    "coarsen": "problem evaluate",
    "bounds": "problem evaluate solvers coarsen",
    "plugins": "",
    "planners": "problem evaluate solvers coarsen bounds plugins machine",
    "planning": "problem evaluate verify solvers coarsen bounds machine planners",
    "formats": "problem",
    "machine": "problem formats",
    "backends": "problem plugins machine formats",
    "profiling": "problem evaluate coarsen formats machine backends",
    "running": "problem evaluate coarsen formats machine backends",
    "serving": "problem solvers formats machine backends profiling running",
    "server": "problem formats machine backends serving",
    "tuning": "problem evaluate verify coarsen formats machine backends running planners planning",
    "zoo": "formats backends",
    "analysis": "problem evaluate verify solvers coarsen bounds machine planners planning",
    "report": "problem evaluate analysis formats serving",
    "library": "problem evaluate verify coarsen bounds planners planning formats machine backends profiling running "
    "analysis",
    "cli": "problem evaluate verify solvers coarsen bounds plugins planners planning formats machine backends profiling "
    "running serving server tuning zoo analysis report library",
}

# room: headers that no other room may include.
OWNS_HEADERS = {
    "solvers": re.compile(r"highs|ortools/|lemon/|scotch", re.IGNORECASE),
    "server": re.compile(r"grpcpp/|httplib|inference\.(grpc\.)?pb\.h|google/protobuf"),
}

# Folders that are plugins: only they see their third party's headers, and no other file includes
# theirs.
PLUGINS = {
    "backends/openvino": re.compile(r"openvino/"),
    "planners/learned/plugin": re.compile(r"(torch|ATen)/"),
}

# Families of planners stand beside each other, on what they share.
SHARED_BY_FAMILIES = "methods"

MAY_PRINT = {"cli", "server"}
PRINTS = re.compile(r"std::(cout|cerr|clog)\b|\b(f|v|vf)?printf\s*\(|\bputs\s*\(|\bfmt::print\s*\(")

SOURCE_SUFFIXES = {".h", ".hpp", ".cpp", ".cc", ".inc"}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def without_comments_and_strings(text):
    """The code alone, with the line breaks kept so that line numbers stay true."""
    # A quote after a digit or a letter separates digits: 1'000.
    characters = r"(?<!\w)'(?:\\.|[^'\\\n])+'"
    strings = r'R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"'
    pattern = re.compile(rf"//[^\n]*|/\*.*?\*/|{strings}|{characters}", re.DOTALL)
    return pattern.sub(lambda match: "\n" * match.group().count("\n"), text)


def faults_of_plugins(place, bracket, header):
    for plugin, owned in PLUGINS.items():
        if place == plugin:
            continue
        if bracket == "<" and owned.match(header):
            yield f"includes {header}, a header that only {plugin}/ may see"
        if bracket == '"' and header.startswith(f"{plugin}/"):
            yield f'includes "{header}": a plugin is loaded, nobody includes from it'


def family_of(folder):
    """The family of planners that a folder or header belongs to; None outside of families."""
    parts = folder.split("/")
    return parts[1] if parts[0] == "planners" and len(parts) > 1 else None


def faults_of_family(place, header):
    own, other = family_of(place), family_of(header.rpartition("/")[0])
    if own and other and other not in (own, SHARED_BY_FAMILIES):
        yield f'includes "{header}": a family of planners includes itself and {SHARED_BY_FAMILIES}/ only'


def faults_of_include(place, bracket, header):
    room = place.split("/")[0]
    yield from faults_of_plugins(place, bracket, header)
    if bracket == '"':
        yield from faults_of_family(place, header)
    for owner, owned in OWNS_HEADERS.items():
        foreign = bracket == "<" or header.split("/")[0] not in MAY_INCLUDE
        if foreign and owned.search(header) and room != owner:
            yield f"includes {header}, a header that only {owner}/ may see"
    if bracket == "<":
        return
    other = header.split("/")[0]
    if "/" not in header:
        yield f'includes "{header}": write "{room}/{header}", headers are named from src/'
    elif other in MAY_INCLUDE:
        if other != room and other not in MAY_INCLUDE[room].split():
            yield f'includes "{header}": {room}/ may include only: {MAY_INCLUDE[room] or "nothing of ours"}'
    elif other != "placewright":
        yield f'includes "{header}", which is in no room (third-party headers go in <>)'


def faults_of_file(place, text):
    """`place` is the file's folder, from src/ on."""
    room = place.split("/")[0]
    for number, line in enumerate(text.splitlines(), start=1):
        if match := INCLUDE.match(line):
            for fault in faults_of_include(place, *match.groups()):
                yield number, fault
    if room not in MAY_PRINT:
        for number, line in enumerate(without_comments_and_strings(text).splitlines(), start=1):
            if PRINTS.search(line):
                yield number, "prints: only cli/ may, the library hands back values"


PUBLIC_PREFIX = "placewright/"


def faults_of_public_file(text, include_root):
    """A user of the library has the folder placewright/ and nothing else of ours."""
    for number, line in enumerate(text.splitlines(), start=1):
        match = INCLUDE.match(line)
        if not match or match.group(1) == "<":
            continue
        header = match.group(2)
        if not header.startswith(PUBLIC_PREFIX) or not (include_root / header).is_file():
            yield number, f'includes "{header}": a public header includes public headers, as "{PUBLIC_PREFIX}…"'


def public_faults(include_root):
    for path in sorted((include_root / "placewright").rglob("*")):
        if path.suffix not in SOURCE_SUFFIXES:
            continue
        room = path.relative_to(include_root / "placewright").parts[0] if path.parent.name != "placewright" else "library"
        text = path.read_text()
        if room not in MAY_INCLUDE:
            yield f"{path}: lies in no room"
            continue
        for number, fault in faults_of_public_file(text, include_root):
            yield f"{path}:{number}: {fault}"
        # The rules between the rooms are the same, whichever folder a header lies in.
        for number, fault in faults_of_file(room, text.replace(f'"{PUBLIC_PREFIX}', '"')):
            yield f"{path}:{number}: {fault}"


def faults(source_root):
    for entry in sorted(source_root.iterdir()):
        if not entry.is_dir():
            yield f"{entry}: lies in no room of src/"
        elif entry.name not in MAY_INCLUDE:
            yield f"{entry}: unknown room; name it in docs/architecture.md and in the table of this test"
        else:
            for path in sorted(entry.rglob("*")):
                if path.suffix in SOURCE_SUFFIXES:
                    for number, fault in faults_of_file(path.parent.relative_to(source_root).as_posix(), path.read_text()):
                        yield f"{path}:{number}: {fault}"


# A scope opens, or a type gets its name, where one of these words begins a declaration; see
# types_defined.
TYPE = re.compile(r"\b(?:struct|class|union|enum(?:\s+(?:struct|class))?)\s+(\w+(?:::\w+)*)[^<>()=]*$")
NAMESPACE = re.compile(r"\bnamespace(?:\s+(\w+(?:::\w+)*))?\s*$")
ALIAS = re.compile(r"\busing\s+(\w+)\s*=")


def types_defined(text):
    """(line, name with its namespaces) of the types that other files could name: those in no class and no function,
    and in no namespace without a name. Specialisations of templates have no name of their own."""
    scopes = []  # the name of each namespace that is open; None for other braces and namespaces without a name
    begin = 0  # of the declaration
    code = without_comments_and_strings(text)
    for place in re.finditer(r"[{};]", code):
        declaration = code[begin : place.start()]
        begin = place.end()
        if place.group() == "}":
            scopes.pop()
            continue
        found = (TYPE if place.group() == "{" else ALIAS).search(re.sub(r"\btemplate\s*<[^{}]*?>\s", "", declaration))
        if found and None not in scopes:
            yield code.count("\n", 0, place.start()) + 1, "::".join([*scopes, found.group(1)])
        if place.group() == "{":
            namespace = NAMESPACE.search(declaration)
            scopes.append(namespace.group(1) if namespace else None)


def faults_of_types(texts):
    """`texts`: by path. One definition rule, which no compiler checks across files."""
    definitions = {}
    for path, text in texts.items():
        for number, name in types_defined(text):
            definitions.setdefault(name, []).append(f"{path}:{number}")
    for name, places in definitions.items():
        for place in places[1:]:
            yield f"{place}: defines {name}, as {places[0]} does: one of them needs a name of its own"


def documented_rooms(page):
    """room: the rooms that its row in the table of docs/architecture.md names."""
    rows = re.findall(r"^\| `(\w+)/` \|.*\| ([\w, ]+) \|$", page, re.MULTILINE)
    return {room: set() if doors == "nothing" else set(doors.split(", ")) for room, doors in rows}


def faults_of_pages(page, contributing):
    """The pages for people say what the table above says; `everything` may leave out the library's front."""
    documented = documented_rooms(page)
    for room in sorted(documented.keys() | MAY_INCLUDE.keys()):
        said, doors = documented.get(room), set(MAY_INCLUDE.get(room, "").split())
        if said is None or room not in MAY_INCLUDE:
            yield f"docs/architecture.md: the table and this test do not both know {room}/"
        elif said != doors and not (said == {"everything"} and doors >= MAY_INCLUDE.keys() - {room, "library"}):
            yield f"docs/architecture.md: {room}/ may include: {', '.join(sorted(doors)) or 'nothing'}"
        if f"`{room}/`" not in contributing:
            yield f"CONTRIBUTING.md does not name {room}/"


def check_the_checker():
    """The rules catch what they are for; a test that cannot fail proves nothing."""
    cases = [
        ("problem", '#include "evaluate/schedule.h"', True),
        ("verify", '#include "evaluate/schedule.h"', True),
        ("planners", '#include "solvers/cp_sat.h"', False),
        ("planners", "#include <lemon/network_simplex.h>", True),
        ("planners/latency", '#include "planners/latency/module.h"', False),
        ("planners/latency", '#include "planners/methods/sweep.h"', False),
        ("planners/latency", '#include "planners/planner.h"', False),
        ("planners/latency", '#include "planners/published/published.h"', True),
        ("planners/methods", '#include "planners/methods/fill.h"', False),
        ("planners/methods", '#include "planners/latency/latency.h"', True),
        ("planners/learned/plugin", '#include "planners/learned/learner.h"', False),
        ("planners", '#include "planners/learned/learned.h"', False),
        ("planners", "#include <interfaces/highs_c_api.h>", True),
        ("solvers", "#include <scotch.h>", False),
        ("formats", "#include <openvino/openvino.hpp>", True),
        ("backends", "#include <openvino/openvino.hpp>", True),
        ("backends/openvino", "#include <openvino/openvino.hpp>", False),
        ("backends/openvino", '#include "backends/openvino/core_part.h"', False),
        ("backends/other", '#include "backends/openvino/core_part.h"', True),
        ("backends", '#include "backends/openvino/core_part.h"', True),
        ("running", '#include "backends/openvino/core_part.h"', True),
        ("backends/openvino", '#include "backends/runtime.h"', False),
        ("planners/learned", "#include <torch/nn.h>", True),
        ("planners/learned/plugin", "#include <torch/nn.h>", False),
        ("planners/learned", '#include "planners/learned/plugin/layers.h"', True),
        ("planners/learned/plugin", '#include "planners/learned/plugin/layers.h"', False),
        ("cli", '#include "backends/import.h"', False),
        ("backends", '#include "running/execution.h"', True),
        ("problem", '#include "graph.h"', True),
        ("problem", 'std::cout << "x";', True),
        ("problem", "// std::cout is for cli/", False),
        ("formats", "snprintf(buffer, size, format);", False),
        ("cli", "std::cout << x;", False),
    ]
    for room, line, expected in cases:
        assert bool(list(faults_of_file(room, line))) == expected, f"{room}: {line}"
    include_root = pathlib.Path(__file__).resolve().parents[2] / "include"
    public_cases = [
        ('#include "placewright/problem/plan.h"', False),
        ('#include "problem/plan.h"', True),
        ('#include "placewright/problem/join.h"', True),
        ("#include <vector>", False),
    ]
    for line, expected in public_cases:
        assert bool(list(faults_of_public_file(line, include_root))) == expected, line
    type_cases = [
        ("namespace a {\nstruct X {\n int x;\n};\n}", ["a::X"]),
        ("namespace a { class X final : public Y { struct Inner {}; }; }", ["a::X"]),
        ("namespace a { template <class T> struct X {}; template <> struct X<int> {}; }", ["a::X"]),
        ("namespace a { enum class X : int { one }; using Y = Id<struct YNoun>; struct Z; }", ["a::X", "a::Y"]),
        ("namespace a::b { namespace { struct X {}; } namespace c { struct X {}; } }", ["a::b::c::X"]),
        ("namespace a { void f(struct X* x) { struct Y {}; char c = '{'; R\"({)\"; } struct Z {}; }", ["a::Z"]),
    ]
    for text, expected in type_cases:
        assert [name for _, name in types_defined(text)] == expected, text
    assert list(faults_of_types({"x.h": type_cases[0][0], "y.h": type_cases[1][0]}))
    assert not list(faults_of_types({"x.h": type_cases[0][0], "y.h": "namespace a { struct X; }"}))
    rows = [f"| `{room}/` | x | {', '.join(doors.split()) or 'nothing'} |" for room, doors in MAY_INCLUDE.items()]
    names = "".join(f"`{room}/`" for room in MAY_INCLUDE)
    assert not list(faults_of_pages("\n".join(rows), names))
    assert list(faults_of_pages("\n".join(rows[1:]), names))
    assert list(faults_of_pages("\n".join(rows).replace("| problem |", "| solvers |"), names))
    assert list(faults_of_pages("\n".join(rows), names.replace("`verify/`", "")))


def main():
    check_the_checker()
    root = pathlib.Path(__file__).resolve().parents[2]
    pages = [(root / name).read_text() for name in ("docs/architecture.md", "CONTRIBUTING.md")]
    sources = [path for folder in ("include", "src") for path in sorted((root / folder).rglob("*"))]
    texts = {path: path.read_text() for path in sources if path.suffix in SOURCE_SUFFIXES}
    found = [*faults(root / "src"), *public_faults(root / "include"), *faults_of_types(texts), *faults_of_pages(*pages)]
    print("\n".join(found) if found else "every room keeps to its doors, every type has a name of its own")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
