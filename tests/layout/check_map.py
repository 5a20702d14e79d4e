#!/usr/bin/env python3
"""Checks that a reader finds every page: the map docs/README.md, the links from page to page, and the pictures.

- README.md links the map. The map has the groups start, concepts, recipes, clients, operations, reference, internals, in this
  order, and each group has at least one page.
- The map lists every page of docs exactly once, in a row `| [page.md](page.md) | what it says |`.
- The last line of every page is `Next: [heading of that page](that page)`, with the page that follows in the map. After the
  last page comes the map itself.
- Every drawing of docs/images is well-formed SVG with a title and a light background of its own. Some page shows each picture. Every
  picture that a page shows has a text for those who do not see it.

Prints FILE:LINE: rule, one violation a line. Exit codes: 0 none, 1 some.
"""

import argparse
import os
import re
import sys
import xml.etree.ElementTree as xml

MAP = "docs/README.md"
GROUPS = ["Start", "Concepts", "Recipes", "Clients", "Operations", "Reference", "Internals"]
IMAGES = "docs/images"
ROW = re.compile(r"\| \[([\w-]+\.md)\]\(([\w-]+\.md)\) \| (.*) \|")
PICTURE = re.compile(r"!\[([^\]]*)\]\(([^)\s]+)\)")
SVG = "{http://www.w3.org/2000/svg}"


def lines_of(root, path):
    try:
        with open(os.path.join(root, path), encoding="utf-8") as file:
            return file.read().splitlines()
    except FileNotFoundError:
        return []


def names_in(root, folder, ending):
    try:
        return sorted(name for name in os.listdir(os.path.join(root, folder)) if name.endswith(ending))
    except FileNotFoundError:
        return []


def heading_of(root, name):
    return next((line[2:] for line in lines_of(root, f"docs/{name}") if line.startswith("# ")), None)


def check_map(root, pages):
    """Yields violations of the map, and adds the pages to the list in their order."""
    if not any("](docs/README.md)" in line for line in lines_of(root, "README.md")):
        yield f"README.md:1: it does not link {MAP}"
    groups, sizes = [], {}
    for number, line in enumerate(lines_of(root, MAP), 1):
        if line.startswith("## "):
            groups.append(line[3:])
        row = ROW.fullmatch(line)
        if not row:
            continue
        name, target, says = row.groups()
        sizes[groups[-1] if groups else ""] = True
        if name != target:
            yield f"{MAP}:{number}: {name} leads to {target}"
        elif target in pages:
            yield f"{MAP}:{number}: {target} is listed twice"
        elif heading_of(root, target) is None:
            yield f"{MAP}:{number}: {target} is no page with a heading"
        elif not says.strip():
            yield f"{MAP}:{number}: what {target} says is missing"
        else:
            pages.append(target)
    if groups != GROUPS:
        yield f"{MAP}:1: the groups are not {', '.join(GROUPS)}"
    for group in groups:
        if group not in sizes:
            yield f"{MAP}:1: the group {group} has no page"


def check_next(root, pages):
    for name, following in zip(pages, [*pages[1:], "README.md"]):
        lines = lines_of(root, f"docs/{name}")
        wanted = f"Next: [{heading_of(root, following)}]({following})"
        if not lines or lines[-1] != wanted:
            yield f"docs/{name}:{len(lines)}: the last line is not {wanted}"


def check_picture(root, name):
    """What is wrong with the picture itself. A PNG is a picture of a screen, which nobody has drawn."""
    if name.endswith(".png"):
        return
    try:
        picture = xml.parse(os.path.join(root, IMAGES, name)).getroot()
    except xml.ParseError as error:
        yield f"it is not well-formed: {error}"
        return
    if picture.tag != f"{SVG}svg" or "viewBox" not in picture.attrib:
        yield "it is no SVG with a viewBox"
    elif not (picture.findtext(f"{SVG}title") or "").strip():
        yield "it has no title"
    else:
        first = next((part for part in picture if part.tag.removeprefix(SVG) not in ("title", "desc", "defs", "style")), None)
        if first is None or first.tag != f"{SVG}rect" or first.get("fill") != "#ffffff":
            yield "its first shape is no white background, without which nobody can read it on a dark page"


def check_pictures(root, names):
    shown = set()
    for name in names:
        for number, line in enumerate(lines_of(root, f"docs/{name}"), 1):
            for text, target in PICTURE.findall(line):
                shown.add(target)
                if not text.strip():
                    yield f"docs/{name}:{number}: the picture {target} has no text"
    for name in names_in(root, IMAGES, ""):
        if f"images/{name}" not in shown:
            yield f"{IMAGES}/{name}:1: no page shows it"
        for rule in check_picture(root, name):
            yield f"{IMAGES}/{name}:1: {rule}"


def violations(root):
    pages, names = [], [name for name in names_in(root, "docs", ".md") if name != "README.md"]
    yield from check_map(root, pages)
    for name in names:
        if name not in pages:
            yield f"docs/{name}:1: {MAP} does not list it"
    yield from check_next(root, pages)
    yield from check_pictures(root, names)


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    parser = argparse.ArgumentParser(description="Checks the map of the pages, their links to the next one, and the pictures.")
    parser.add_argument("--root", default=os.path.join(here, "..", ".."), help="of the checkout (default: this one)")
    found = list(violations(parser.parse_args().root))
    print("\n".join([*found, f"map: {len(found)} violations"]))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
