#!/usr/bin/env python3
"""Checks that what the tree cites exists: pages, sections, gaps, links, and files.

- docs/NAME.md, or a page of the root such as README.md, anywhere: the page exists.
- docs/NAME.md, section 3.2 (sections 3 to 7; sections 3 and 4): each number is a numbered heading of that page.
- docs/papers.md, gap 5: the page's table of gaps has that row.
- section 3.2, in a page with numbered headings and with no page named before it: a heading of that same page.
- [text](page.md#anchor), in a page: the file exists, and the anchor is one of its headings.
- engine/..., server/..., client/..., tests/..., proto/..., deploy/..., cmake/..., .ci/... in a page or a comment: a file,
  a folder, or the stem of a file.

Prints FILE:LINE: rule, one violation a line. Exit codes: 0 none, 1 some.
"""

import argparse
import os
import re
import sys

SKIPPED = {".git", "build", ".cache", "__pycache__", ".venv", "node_modules"}
NOT_READ = ("tests/layout/", "tests/bench/results/")  # examples of violations; raw output of other commits
PAGE = re.compile(r"(?<![\w/.-])((?:docs/)?[\w-]+\.md)\b")
SECTIONS = re.compile(r"\.md,? \(?sections? (\d+(?:\.\d+)?)(?:(,| and| to) (\d+(?:\.\d+)?))?")
GAP = re.compile(r"\.md, gaps? (\d+)")
OWN_SECTION = re.compile(r"(?<!\.md, )(?<!\.md )\bsections? (\d+(?:\.\d+)?)(?: (?:and|to) (\d+(?:\.\d+)?))?")
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
PATH = re.compile(r"(?<![\w/.<$-])((?:engine|server|client|tests|proto|deploy|cmake|\.ci)/[\w./-]*\w)")
HEADING = re.compile(r"#+ (?:(\d+(?:\.\d+)?)\.? )?(.*)")
SOURCES = (".hpp", ".cpp", ".cuh", ".cu", ".py", ".sh", ".proto", ".pml", ".txt", ".cmake")
# Words of these pages that look like a path of the tree, and are none.
NO_PATHS = re.compile(r"^(?:client|server)/(?:client|server)$")


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
        self.pages = {path: read_lines(root, path) for path in self.paths if path.endswith(".md")}

    def headings(self, page):
        return [match for match in map(HEADING.fullmatch, self.pages.get(page, [])) if match]

    def sections(self, page):
        return {match[1] for match in self.headings(page) if match[1]}

    def anchors(self, page):
        return {anchor_of(line.lstrip("#").strip()) for line in self.pages[page] if line.startswith("#")}

    def gaps(self, page):
        return {match[1] for match in (re.match(r"\| (\d+) \|", line) for line in self.pages.get(page, [])) if match}


def page_named(tree, name, path):
    """The page that `name` means in the file `path`: by its path from the root, or beside a page."""
    beside = os.path.normpath(os.path.join(os.path.dirname(path), name))
    return next((page for page in (name, beside) if page in tree.pages), None)


def check_pages(tree, path, line):
    for match in PAGE.finditer(line):
        page = page_named(tree, match[1], path)
        if page is None:
            # A bare name in a source may be anything, such as summary.md, which a program writes.
            if match[1].startswith("docs/"):
                yield f"{match[1]} is no page of this tree"
            continue
        rest = line[match.end() - len(".md"):]
        cited = SECTIONS.match(rest)
        for number in filter(None, (cited[1], cited[3]) if cited else ()):
            if number not in tree.sections(page):
                yield f"{page} has no section {number}"
        gap = GAP.match(rest)
        if gap and gap[1] not in tree.gaps(page):
            yield f"{page} has no gap {gap[1]}"


def check_own_sections(tree, path, line):
    numbered = tree.sections(path)
    if not numbered:
        return
    plain = PAGE.sub("PAGE.md", LINK.sub("PAGE.md", line))
    for match in OWN_SECTION.finditer(re.sub(r"PAGE\.md,? \(?sections? [\d.]+(?: (?:and|to) [\d.]+)?", "", plain)):
        for number in filter(None, match.groups()):
            if number not in numbered and number.rstrip(".") not in numbered:
                yield f"{path} has no section {number}"


def check_links(tree, path, line):
    for match in LINK.finditer(line):
        target, _, anchor = match[1].partition("#")
        if "://" in target or target.startswith("mailto:"):
            continue
        file = os.path.normpath(os.path.join(os.path.dirname(path), target)) if target else path
        if file not in tree.known:
            yield f"the link {match[1]} leads nowhere"
        elif anchor and anchor not in tree.anchors(file):
            yield f"{file} has no heading #{anchor}"


def check_paths(tree, line):
    for match in PATH.finditer(line):
        path = match[1]
        if path not in tree.known and not NO_PATHS.match(path):
            yield f"{path} is no file of this tree"


def comment_of(path, line):
    """What of the line is for a reader: all of a page; a comment of a source."""
    if path.endswith(".md"):
        return line
    start = line.find("#") if path.endswith((".py", ".sh", ".txt", ".cmake")) else line.find("//")
    return line[start:] if start >= 0 else ""


def violations(root):
    tree = Tree(root)
    papers = [path for path in tree.pages if path.startswith("docs/")]
    for path in sorted(tree.paths):
        is_page = path.endswith(".md")
        if path.startswith(NOT_READ) or not (is_page or path.endswith(SOURCES)):
            continue
        for number, line in enumerate(read_lines(root, path), 1):
            found = [*check_pages(tree, path, line), *check_paths(tree, comment_of(path, line))]
            if is_page:
                found += check_links(tree, path, line)
            if path in papers and path != "docs/papers.md":  # which cites sections of papers, too
                found += check_own_sections(tree, path, line)
            for rule in found:
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
