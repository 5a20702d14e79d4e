#!/usr/bin/env python3
"""Runs every command of README.md and docs/*.md as a reader does, and checks the names of commands and flags in their text.

  run_pages.py PAGE ...             runs these pages: README.md, docs/client.md
  run_pages.py --others PAGE ...    runs all pages but these
  run_pages.py --names              checks the names of all pages, and runs nothing

Says how many blocks ran, and which were left out and why. page.py explains how a page says that. Exit codes: 0 all is as the
pages say, 1 not.
"""

import argparse
import sys
import time

import page
import reader
import usage


def run_page(path):
    """The Reader of the page; None: the page is wrong."""
    name, began = path.relative_to(page.ROOT), time.monotonic()
    reading = reader.Reader()
    try:
        reading.run(path.read_text(encoding="utf-8"))
    except (page.PageError, reader.Difference) as error:
        print(f"{name}: FAILED: {error}", flush=True)
        return None
    changed = f", {reading.changed} of them with a part replaced" if reading.changed else ""
    print(f"{name}: {reading.ran} blocks ran{changed}; {len(reading.left_out)} left out; {time.monotonic() - began:.1f} s",
          flush=True)
    for line, reason in reading.left_out:
        print(f"  left out, line {line}: {reason}")
    return reading


def main():
    parser = argparse.ArgumentParser(description="Runs the commands of the pages.")
    parser.add_argument("pages", nargs="*", help="paths from the root of the checkout")
    parser.add_argument("--others", action="store_true", help="run all pages but these")
    parser.add_argument("--names", action="store_true", help="check names of commands and flags only")
    options = parser.parse_args()
    everything = page.all_pages()
    given = [page.ROOT / name for name in options.pages]
    missing = [str(path) for path in given if path not in everything]
    if missing:
        print(f"there is no page {', '.join(missing)}")
        return 1
    if options.names:
        found = [f"{path.relative_to(page.ROOT)}, {problem}" for path in everything
                 for problem in usage.problems(path.read_text(encoding="utf-8"))]
        print("\n".join([*found, f"names in {len(everything)} pages: {len(found)} problems"]))
        return 1 if found else 0
    wanted = [path for path in everything if path not in given] if options.others else given
    wanted = [path for path in wanted if any(block.has_commands for block in page.blocks_of(path.read_text(encoding="utf-8")))]
    read = [reading for reading in map(run_page, wanted) if reading]
    failed = len(wanted) - len(read)
    print(f"{len(wanted)} pages with commands: {failed} failed; {sum(one.ran for one in read)} blocks ran, "
          f"{sum(len(one.left_out) for one in read)} left out")
    return 1 if failed or not wanted else 0


if __name__ == "__main__":
    sys.exit(main())
