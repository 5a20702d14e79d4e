#!/usr/bin/env python3
"""Three kinds of unique numbers. docs/recipes.md says which one is for what.

  ids/NAME/last             the number of the last version that was taken
  ids/NAME/next             how many numbers the blocks have used up
  ids/NAME/numbered         how many documents have a number
  ids/NAME/number/DOCUMENT  the number of a document
"""

import pathlib
import sys

import kilokv

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from example import integer, main, wrong_command  # noqa: E402

USAGE = """\
ids [--endpoint HOST:PORT] VERB ...
  version NAME             a number that grows, and never comes again, also after a restore from a backup
  block NAME COUNT         COUNT numbers at once; the program may give them out without the server
  number NAME DOCUMENT     1, 2, 3 and so on without a gap; the same document always gets the same number
"""


def version(session, name):
    taken = kilokv.Transaction().put(f"ids/{name}/last", kilokv.COMMIT_VERSION)  # each transaction that writes has one
    return f"version {session.execute(taken).version}"


def block(session, name, count):
    key = f"ids/{name}/next"
    taking = kilokv.Transaction().add(key, count)
    last = taking.get(key)
    result = session.execute(taking)
    if not result.committed:
        return result.outcome.name
    return f"block {result[last] - count + 1} {result[last]}"


def number(session, name, document):
    numbered, own = f"ids/{name}/numbered", f"ids/{name}/number/{document}"
    numbering = kilokv.Transaction()
    numbering.guard_absent(own)  # false: an earlier run has given it a number
    numbering.add(numbered, 1)
    new = numbering.get(numbered)
    numbering.put(own, new)
    old = numbering.otherwise.get(own)

    result = session.execute(numbering)
    if result.outcome not in (kilokv.Outcome.COMMITTED, kilokv.Outcome.GUARD_FAILED):
        return result.outcome.name
    return f"number {result[new] if result.committed else result[old]}"


def run(session, words):
    verb, arguments = words[0], words[1:]
    if verb == "version" and len(arguments) == 1:
        return version(session, *arguments)
    if verb == "block" and len(arguments) == 2:
        return block(session, arguments[0], integer(arguments[1], 1))
    if verb == "number" and len(arguments) == 2:
        return number(session, *arguments)
    raise wrong_command()


if __name__ == "__main__":
    sys.exit(main(USAGE, run))
