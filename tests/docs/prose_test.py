"""Pages and comments are plain English: short sentences with a verb, no words of a private dialect, comments of bounded width.

    prose_test.py            what breaks a rule; exit code 1 if anything does
    prose_test.py --figures  words a sentence for each page

Of pages, tables, code and headings are left out. Of comments, formulas and tables may be wider: they stand further in.
CONTRIBUTING.md has the rules under "Words".
"""

import pathlib
import re
import statistics
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
MEAN_WORDS = 18  # of a page
LONG = 30  # words
LONG_SHARE = 0.05  # of the sentences of a page
LONGEST = 45
MEDIAN_MEAN_WORDS = 16  # of all pages: the median of their means
COMMENT_COLUMNS = 100
SUFFIXES = {".h", ".cpp", ".py", ".ts", ".mjs", ".cmake", ".sh"}

# What readers stumbled over, and what to write instead.
DIALECT = {
    r"told apart": "differ clearly",
    r"no plan and have no part": "cannot be expressed as a plan",
    r"forth and back": "in both orders",
    r"read over\b": "ignored",
    r"uncut it\b": "the model uncut",
    r"by (?:itself|themselves) (?:it|they) seldom": "alone … seldom",
    r"for want of": "because there was no",
    r"to and fro": "in both directions",
    r"\bis not reached\b": "state the figure; targets do not belong here",
    r"\bthe aim (?:was|is|,)": "state the figure; targets do not belong here",
    r"\bbuild of \d": "no history",
    r"\bin an earlier build\b": "no history",
    r"\(commit [0-9a-f]{7}": "no history",
    r"\bthe day before\b": "no history",
    r"\bSince then\b": "no history",
    r"\bsoonest of all\b": "first",
    r"\bnobody (?:waits|thinks|can tell)\b": "devices and programs are not people",
    r"\bwhoever\b": "name the thing",
    r"\b(?:devices?|ops?|tensors?|stages?|models?|threads?|planners?) who\b": "which or that",
    r"\bworth stating\b": "valid",
    r"\bdearer\b": "more expensive",
    r"\bbesides,": "also",
    r"\bof one's own\b": "your own",
}

# A sentence without any of these has no verb. Other verbs end in s, ed or ing.
VERBS = set(
    "be am are was were have had do did can may must should would could will might need needs let make made take took taken "
    "give gave given get got run ran go went come came see saw seen say said tell told put set keep kept know knew known find "
    "found hold held show shown write wrote written read begin began begun lie lay lead led lose lost win won cut cost stand "
    "stood mean meant add use ask call change check choose compare copy count describe differ end exist fit follow give help "
    "install keep leave left list look measure move name open pass pay plan prefer press print prove reach replace return save "
    "serve share sit start state stay stop think try turn wait want work apply become build built close contain depend bring "
    "brought grow grew grown hand happen improve include lack learn let limit load map match note order overlap own place point "
    "predict profile rank receive refuse report rest rise rose run say search select send sent sleep slept solve split sum "
    "travel tune unpack vary view belong combine consider decide define draw drawn execute expect export explain handle "
    "ignore import minimise minimize multiply occupy perform pack prepare produce raise reject repeat reduce remove require "
    "simulate store trace train understand verify wins answer spend sped speed declare register bump link edit".split()
)


def pages():
    return [*ROOT.glob("*.md"), *sorted((ROOT / "docs").rglob("*.md")), ROOT / "src/planners/README.md", ROOT / "examples/README.md"]


def sentences(text, ends=".!?:"):
    text = re.sub(r"```.*?```|<!--.*?-->", "", text, flags=re.DOTALL)
    text = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith(("|", "#", ":::", "!["))
                     and not re.match(r"    (?! *[*\-\d])", line))
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"`[^`\n]*(?:\n[^`\n]*)?`", "code", text)
    text = re.sub(r"\n\s*(?:[*\-]|\d+\.)\s+", "\n\n", text)
    found = [" ".join(part.split()) for part in re.split(rf"(?<=[{ends}])\s+|\n\n", text)]
    return [sentence for sentence in found if len(sentence.split()) >= 3]


def lengths_of(page):
    return [len(sentence.split()) for sentence in sentences(page.read_text())]


def has_verb(sentence):
    words = [word.strip("*_()\"'.,:;!?").lower() for word in sentence.split()]
    return any(word in VERBS or re.search(r"(?:s|ed|ing|n't)$", word) for word in words)


def faults_of_page(page):
    text, name = page.read_text(), page.relative_to(ROOT)
    found = sentences(text)
    for sentence in found:
        words = len(sentence.split())
        if words > LONGEST:
            yield f"{name}: {words} words in one sentence, at most {LONGEST}: {sentence[:90]}…"
    for sentence in sentences(text, ".!?"):
        is_entry = page.name == "CHANGELOG.md" or re.match(r"code(?: \([^)]*\))?:", sentence)  # `key`: what it is
        if sentence.endswith(".") and not is_entry and not has_verb(sentence):
            yield f"{name}: a sentence without a verb: {sentence}"
    for phrase, instead in DIALECT.items():
        for match in re.finditer(phrase, " ".join(found)):
            yield f"{name}: '{match[0]}': {instead}"
    words = [len(sentence.split()) for sentence in found]
    if sum(words) < 120:
        return
    long = sum(count > LONG for count in words)
    if statistics.mean(words) > MEAN_WORDS:
        yield f"{name}: {statistics.mean(words):.1f} words a sentence, at most {MEAN_WORDS}"
    if long > 1 and long / len(words) > LONG_SHARE:
        yield f"{name}: {long} of {len(words)} sentences have more than {LONG} words, at most {LONG_SHARE:.0%}"


def faults_of_all_pages(figures):
    middle = statistics.median(statistics.mean(lengths) for lengths in figures.values())
    if middle > MEDIAN_MEAN_WORDS:
        yield f"{middle:.1f} words a sentence in the median page, at most {MEDIAN_MEAN_WORDS}"


def sources():
    for folder in ("src", "include", "tests", "bench", "fuzz", "examples", "python", "scripts", "cmake", "viewer/src", "zoo"):
        for path in (ROOT / folder).rglob("*"):
            by_hand = path.suffix in SUFFIXES or path.name == "CMakeLists.txt" or path.parent == ROOT / "scripts" and not path.suffix
            if path.is_file() and by_hand:
                yield path
    yield from (ROOT / "CMakeLists.txt", ROOT / "Makefile")


def wide_comments():
    for path in sources():
        name = path.relative_to(ROOT)
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if len(line) > COMMENT_COLUMNS and re.match(r"\s*(?://|#) \S", line):
                yield f"{name}:{number}: a comment of {len(line)} columns, at most {COMMENT_COLUMNS} (scripts/wrap-comments)"


def main():
    figures = {page: lengths for page in pages() if sum(lengths := lengths_of(page)) >= 120}
    if "--figures" in sys.argv:
        for page, lengths in sorted(figures.items(), key=lambda item: -statistics.mean(item[1])):
            share = sum(length > LONG for length in lengths) / len(lengths)
            print(f"{statistics.mean(lengths):5.1f} words, {share:4.0%} beyond {LONG}, longest {max(lengths):3}  {page.relative_to(ROOT)}")
        return 0
    faults = [*(fault for page in pages() for fault in faults_of_page(page)), *faults_of_all_pages(figures), *wide_comments()]
    print("\n".join(faults) if faults else "the pages are plain English, and comments keep their columns")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
