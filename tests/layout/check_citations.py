#!/usr/bin/env python3
"""Checks that what the tree cites exists: pages, sections, gaps, links, and files.

- docs/NAME.md, or a page of the root such as README.md, anywhere: the page exists.
- docs/NAME.md, section 3.2 (sections 3 to 7; sections 3, 4 and 5): each number is a numbered heading of that page. The
  page may also be named by a link, as in [name](NAME.md), section 3.
- docs/papers.md, gap 5 (gaps 4 and 7): the page's table of gaps has that row.
- `some_test`: `name_of_a_test`, in docs/papers.md: the file some_test.cpp has a test of this name.
- `kRule`, `gap_...` or `SOME_MACRO`, in docs/papers.md: a word of the sources of engine or tests.
- section 3.2, in a page with numbered headings and with no page named before it: a heading of that same page.
- [text](page.md#anchor), in a page: the file exists, and the anchor is one of its headings.
- engine/..., server/..., client/..., tests/..., proto/..., deploy/..., cmake/..., .ci/... in a page or a comment: a file,
  a folder, or the stem of a file.

The lines of a paragraph, of a comment, or of a docstring are joined before they are looked at, because a citation may
be wrapped.

Prints FILE:LINE: rule, one violation a line. Exit codes: 0 none, 1 some.
"""

import argparse
import os
import re
import sys

SKIPPED = {".git", "build", ".cache", "__pycache__", ".venv", "node_modules"}
NOT_READ = ("tests/layout/", "tests/bench/results/")  # examples of violations; raw output of other commits
PAGE = re.compile(r"(?<![\w/.-])((?:docs/)?[\w-]+\.md)\b")
NUMBER = r"\d+(?:\.\d+)?"
# Several numbers follow only a plural, because "section 7, 24 bits" names one section.
NUMBERS = rf"(?:s ({NUMBER}(?:(?:, and|,| and| to) {NUMBER})*)| ({NUMBER}))"
AFTER_PAGE = r"\.md(?:#[\w-]*)?[)`]*,? \(?"  # the page may be in quotes, or the target of a link
SECTIONS = re.compile(rf"{AFTER_PAGE}section{NUMBERS}")
GAP = re.compile(rf"{AFTER_PAGE}gap{NUMBERS}")
OWN_SECTION = re.compile(rf"\bsection{NUMBERS}")
OWN_GAP = re.compile(rf"\bgap{NUMBERS}")
PAPERS = "docs/papers.md"
TESTS_NAMED = re.compile(r"`(\w+_test)`: (`\w+`(?:(?:, | and )`\w+`)*)")
WORD_NAMED = re.compile(r"`(k[A-Z]\w*|gap_\w+|[A-Z][A-Z0-9]*_[A-Z0-9_]+)`")
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
PATH = re.compile(r"(?<![\w/.<$-])((?:engine|server|client|tests|proto|deploy|cmake|\.ci)/[\w./-]*\w)")
HEADING = re.compile(r"#+ (?:(\d+(?:\.\d+)?)\.? )?(.*)")
SOURCES = (".hpp", ".cpp", ".cuh", ".cu", ".py", ".sh", ".proto", ".pml", ".txt", ".cmake")
# Words of these pages that look like a path of the tree, and are none.
NO_PATHS = re.compile(r"^(?:client|server)/(?:client|server)$|/CMakeFiles/")  # words of prose, and what a build makes
MARKERS = {".py": "#", ".sh": "#", ".txt": "#", ".cmake": "#", ".pml": "/*"}  # where a comment begins; else //


def read_lines(root, path):
    try:
        with open(os.path.join(root, path), encoding="utf-8") as file:
            return file.read().splitlines()
    except (OSError, UnicodeDecodeError):
        return []


def files(root):
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if name not in SKIPPED)
        for name in sorted(set(names) - SKIPPED):
            yield os.path.relpath(os.path.join(folder, name), root)


def anchor_of(heading):
    """As hosts of repositories make anchors: lower case, punctuation left out, spaces as dashes."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


class Tree:
    def __init__(self, root):
        self.root = root
        self.paths = set(files(root))
        self.known = set(self.paths)
        for path in self.paths:
            self.known.add(os.path.splitext(path)[0])
            while path:
                path = os.path.dirname(path)
                self.known.add(path)
        self.words_of = {}
        self.pages = {path: read_lines(root, path) for path in self.paths if path.endswith(".md")}

    def headings(self, page):
        return [match for match in map(HEADING.fullmatch, self.pages.get(page, [])) if match]

    def sections(self, page):
        return {match[1] for match in self.headings(page) if match[1]}

    def anchors(self, page):
        return {anchor_of(line.lstrip("#").strip()) for line in self.pages[page] if line.startswith("#")}

    def words(self, path):
        if path not in self.words_of:
            self.words_of[path] = set(re.findall(r"\w+", "\n".join(read_lines(self.root, path))))
        return self.words_of[path]

    def has_word(self, word):
        return any(word in self.words(path) for path in self.paths
                   if path.startswith(("engine/", "tests/")) and path.endswith(SOURCES) and not path.startswith(NOT_READ))

    def gaps(self, page):
        return {match[1] for match in (re.match(r"\| (\d+) \|", line) for line in self.pages.get(page, [])) if match}


def page_named(tree, name, path):
    """The page that `name` means in the file `path`: by its path from the root, or beside a page."""
    beside = os.path.normpath(os.path.join(os.path.dirname(path), name))
    return next((page for page in (name, beside) if page in tree.pages), None)


# The checks below yield (offset in the text, rule).


def numbers_of(match):
    return re.findall(NUMBER, match[1] or match[2]) if match else []


def check_pages(tree, path, text):
    for match in PAGE.finditer(text):
        page = page_named(tree, match[1], path)
        if page is None:
            # A bare name in a source may be anything, such as summary.md, which a program writes.
            if match[1].startswith("docs/"):
                yield match.start(), f"{match[1]} is no page of this tree"
            continue
        rest = text[match.end() - len(".md"):]
        for number in numbers_of(SECTIONS.match(rest)):
            if number not in tree.sections(page):
                yield match.start(), f"{page} has no section {number}"
        for number in numbers_of(GAP.match(rest)):
            if number not in tree.gaps(page):
                yield match.start(), f"{page} has no gap {number}"


def is_of_other_page(text, match):
    """Whether a page is named right before the section or the gap."""
    return re.search(rf"{AFTER_PAGE}$", text[:match.start()]) is not None


def check_own_sections(tree, path, text):
    numbered = tree.sections(path)
    for match in OWN_SECTION.finditer(text) if numbered else ():
        for number in [] if is_of_other_page(text, match) else numbers_of(match):
            if number not in numbered:
                yield match.start(), f"{path} has no section {number}"


def check_papers(tree, path, text):
    for match in OWN_GAP.finditer(text):
        for number in numbers_of(match):
            if number not in tree.gaps(path):
                yield match.start(), f"{path} has no gap {number}"
    for match in TESTS_NAMED.finditer(text):
        of_test = [source for source in tree.paths if os.path.basename(source) == f"{match[1]}.cpp"]
        if not of_test:
            yield match.start(), f"there is no {match[1]}.cpp"
        for name in re.findall(r"\w+", match[2]):
            if of_test and name not in tree.words(of_test[0]):
                yield match.start(), f"{of_test[0]} has no test {name}"
    for match in WORD_NAMED.finditer(text):
        if not tree.has_word(match[1]):
            yield match.start(), f"no source has {match[1]}"


def check_links(tree, path, text):
    for match in LINK.finditer(text):
        target, _, anchor = match[1].partition("#")
        if "://" in target or target.startswith("mailto:"):
            continue
        file = os.path.normpath(os.path.join(os.path.dirname(path), target)) if target else path
        if file not in tree.known:
            yield match.start(), f"the link {match[1]} leads nowhere"
        elif anchor and anchor not in tree.anchors(file):
            yield match.start(), f"{file} has no heading #{anchor}"


def check_paths(tree, text):
    for match in PATH.finditer(text):
        path = match[1]
        if path not in tree.known and not NO_PATHS.search(path):
            yield match.start(), f"{path} is no file of this tree"


# The parts of a file: (number of the line, text, whether it is for a reader, whether a new text begins with it).


def parts_of_page(lines):
    """Lines. A row of a table, a heading and an item of a list begin a new text, and so does an empty line."""
    for number, line in enumerate(lines, 1):
        yield number, line, True, bool(re.match(r"\s*$|[|#]|\s*[-*] |\s*\d+\. |\s*```", line))


def parts_of_source(path, lines):
    """Code, comments and docstrings. A comment may go on in the next line."""
    marker = MARKERS.get(os.path.splitext(path)[1], "//")
    end = None  # of a comment or a docstring over several lines
    for number, line in enumerate(lines, 1):
        plain = line.strip()
        if end is not None:
            yield number, plain.lstrip("*").strip(), True, not plain
            end = None if end in plain else end
        elif path.endswith(".py") and plain.startswith('"""'):
            end = None if plain.count('"""') > 1 else '"""'
            yield number, plain, True, True
        else:
            code, found, comment = line.partition(marker)
            if code.strip():
                yield number, code, False, True
            if found:
                yield number, comment.strip("/#* "), True, bool(code.strip())
            if marker == "/*" and found and "*/" not in comment:
                end = "*/"


def texts_of(path, lines):
    """Yields (text, whether it is for a reader, where its lines begin: offset and number)."""
    text, was_read, begins = "", False, []
    for number, part, is_read, is_new in parts_of_page(lines) if path.endswith(".md") else parts_of_source(path, lines):
        goes_on = begins and was_read and is_read and not is_new and number <= begins[-1][1] + 1
        if begins and not goes_on:
            yield text, was_read, begins
            text, begins = "", []
        text += " " if begins else ""
        begins.append((len(text), number))
        text, was_read = text + part, is_read
    if begins:
        yield text, was_read, begins


def check_text(tree, path, text, is_read):
    yield from check_pages(tree, path, text)
    if is_read:
        yield from check_paths(tree, text)
    if path.endswith(".md"):
        yield from check_links(tree, path, text)
    if path == PAPERS:
        yield from check_papers(tree, path, text)
    elif path.startswith("docs/") and path.endswith(".md"):  # papers.md cites sections of papers, too
        yield from check_own_sections(tree, path, text)


def violations(root):
    tree = Tree(root)
    for path in sorted(tree.paths):
        if path.startswith(NOT_READ) or not path.endswith((".md", *SOURCES)):
            continue
        for text, is_read, begins in texts_of(path, read_lines(root, path)):
            for offset, rule in check_text(tree, path, text, is_read):
                number = max(line for begin, line in begins if begin <= offset)
                yield f"{path}:{number}: {rule}"


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    parser = argparse.ArgumentParser(description="Checks that cited pages, sections, links and files exist.")
    parser.add_argument("--root", default=os.path.join(here, "..", ".."), help="of the checkout (default: this one)")
    found = list(violations(parser.parse_args().root))
    print("\n".join([*found, f"citations: {len(found)} violations"]))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
