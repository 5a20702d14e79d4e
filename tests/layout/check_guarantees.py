#!/usr/bin/env python3
"""Checks that docs/guarantees.md names tests and mutations that exist.

A row of a table of that page is a promise, and its second column has code spans:

- `crash/sync_test.py`, a path: the file is in tests.
- `name` after a colon behind such a file: a test or a function in this file. Several are separated by commas.
- `id` after the word mutation or mutations: a mutation of tests/mutants, of which no result says that the tests do not
  find it.

Every promise names at least one file. Prints FILE:LINE: rule, one violation a line. Exit codes: 0 none, 1 some.
"""

import argparse
import os
import re
import sys

PAGE = "docs/guarantees.md"
ROW = re.compile(r"\| (.+?) \| (.+) \|")
HEADS = ("promise", "---")
SPAN = re.compile(r"`([^`]+)`")
FILE = re.compile(r"[\w/-]+\.(?:py|cpp|pml)")


def read(root, path):
    try:
        with open(os.path.join(root, path), encoding="utf-8") as file:
            return file.read()
    except OSError:
        return None


def mutations(root):
    """The id of each mutation, and its result; "": it has not been run."""
    found = {}
    for name in ("chosen", "drawn"):
        text = read(root, f"tests/mutants/{name}.toml") or ""
        found.update(dict.fromkeys(re.findall(r'(?m)^id = "(.*)"', text), ""))
    results = read(root, "tests/mutants/found.toml") or ""
    for one, result in re.findall(r'(?ms)^id = "([^"]*)"$(?:(?!^id = ).)*?^result = "([^"]*)"', results):
        if one in found:
            found[one] = result
    return found


def has_test(path, text, name):
    """Whether the file defines a test or a function of this name."""
    if path.endswith(".py"):
        return re.search(rf"(?m)^\s*def {re.escape(name)}\(", text) is not None
    return re.search(rf"\bTEST(?:_F|_P)?\((?:\w+,\s*)?{re.escape(name)}\)", text) is not None


def check_part(root, part, known):
    """The problems of a part between semicolons: a file with its tests, or mutations."""
    spans = SPAN.findall(part)
    if re.match(r"mutations? `", part):
        for name in spans:
            if name not in known:
                yield f"there is no mutation {name}"
            elif known[name] not in ("", "found"):
                yield f"the result of the mutation {name} is: {known[name]}"
        return
    path, names = (spans[0], spans[1:]) if spans else ("", [])
    if not FILE.fullmatch(path):
        yield f"names neither a file of tests nor a mutation: {part}"
        return
    text = read(root, f"tests/{path}")
    if text is None:
        yield f"there is no tests/{path}"
        return
    for name in names:
        if not has_test(path, text, name):
            yield f"tests/{path} has no test {name}"


def violations(root):
    text = read(root, PAGE)
    if text is None:
        yield f"{PAGE}:1: the page is missing"
        return
    known, promises = mutations(root), 0
    for number, line in enumerate(text.splitlines(), 1):
        row = ROW.fullmatch(line)
        if not row or row[1] in HEADS:
            continue
        promises += 1
        parts = row[2].split("; ")
        for part in parts:
            for rule in check_part(root, part, known):
                yield f"{PAGE}:{number}: {rule}"
        if all(part.startswith("mutation") for part in parts):
            yield f"{PAGE}:{number}: the promise has no test"
    if promises == 0:
        yield f"{PAGE}:1: the page has no promise"


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    parser = argparse.ArgumentParser(description="Checks that the page of guarantees names tests and mutations that exist.")
    parser.add_argument("--root", default=os.path.join(here, "..", ".."), help="of the checkout (default: this one)")
    found = list(violations(parser.parse_args().root))
    print("\n".join([*found, f"guarantees: {len(found)} violations"]))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
