#!/usr/bin/env python3
"""The lock protocol of PR-STM (prstm.pml), checked by spin, every state: the protocol as it is built holds, and each
planted bug is found. Every run has to end by itself: one that gives up at a depth or at the end of its memory fails."""

import os
import re
import shutil
import subprocess
import tempfile
import time
import unittest

MODEL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "prstm.pml")

MEMORY_MIB_MAX = 1500
DEPTH_MAX = 100_000

# What a transaction reads, in this order, and what it writes then.
AUDIT, SET_X = ("xy", ""), ("", "x")
COPY_X, COPY_Y = ("x", "y"), ("y", "x")
DRAW = ("yx", "x")
TRANSFER, TRANSFER_DOWN = ("xy", "xy"), ("yx", "xy")

# Flags for the compiler and for pan.
SAFETY = ["-DSAFETY"], []
PROGRESS = [], ["-a"]
PROGRESS_IF_FAIR = [], ["-a", "-f"]
PROGRESS_ALONE = [], ["-a", "-A"]  # whatever else is wrong
PROGRESS_ALONE_IF_FAIR = [], ["-a", "-A", "-f"]

WRONG_READ = r"assertion violated .*saw_"
WRONG_LOCK_WORD = r"assertion violated .*lock_word"
CLAIM_LEFT = r"assertion violated .*claim"
WAITS_AGAIN = r"assertion violated .*wanted"
TRIES_FOR_EVER = r"acceptance cycle"


def run(folder, *command):
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} ends with {done.returncode}:\n{done.stdout}")
    return done.stdout


def bits(programs):
    """The set as the model wants it."""
    places = {"": 0, "x": 1, "y": 2, "xy": 3, "yx": 4}
    return sum(1 << (places[reads] + 5 * places[writes]) for reads, writes in programs)


class Search:
    """What pan says of a variant of the model, where a transaction has any of `programs`, and the first one `first`."""

    def __init__(self, kind, programs, first=None, optimize="-O1", **defines):
        compile_flags, flags = kind
        self.name = ", ".join([*(f"{name}={value}" for name, value in defines.items()),
                               *(["fair"] if "-f" in flags else []),
                               *([f"first reads {first[0] or '-'} writes {first[1] or '-'}"] if first else [])])
        defines["PROGRAMS"] = bits(programs)
        defines["PROGRAMS_FIRST"] = bits([first] if first else programs)
        start = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            run(folder, "spin", *[f"-D{name}={value}" for name, value in defines.items()], "-a", MODEL)
            run(folder, "gcc", optimize, "-w", "-DCOLLAPSE", f"-DMEMLIM={MEMORY_MIB_MAX}", *compile_flags,
                "-o", "pan", "pan.c")
            self.output = run(folder, "./pan", f"-m{DEPTH_MAX}", *flags)
        self.seconds = time.monotonic() - start
        self.errors = int(self.number(r"errors: (\d+)"))

    def number(self, pattern):
        return float(re.search(pattern, self.output, re.MULTILINE)[1])

    def complete(self):
        return not re.search(r"Search not completed|max search depth too small|out of memory|-DMEMLIM bound",
                             self.output)

    def print(self, result):
        states = self.number(r"^ *(\S+) states, stored")
        mebibytes = self.number(r"(\S+)\s+total actual memory usage")
        print(f"{result:9} {states:12,.0f} states {self.seconds:6.1f} s {mebibytes:6.0f} MiB  {self.name}", flush=True)


class PrstmModelTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        for program in "spin", "gcc":
            if not shutil.which(program):
                raise RuntimeError(f"{program} is needed: deploy/install-deps.sh")

    def assert_holds(self, *arguments, **options):
        search = Search(*arguments, **options)
        search.print("FAILS" if search.errors else "holds")
        self.assertEqual(search.errors, 0, search.output)
        self.assertTrue(search.complete(), search.output)

    def assert_found(self, error, *arguments, **options):
        search = Search(*arguments, optimize="-O0", **options)
        search.print("found" if search.errors else "NOT FOUND")
        self.assertEqual(search.errors, 1, search.output)
        self.assertRegex(search.output, error)

    def test_serializable_in_ticket_order(self):
        self.assert_holds(SAFETY, [AUDIT, COPY_X, COPY_Y, DRAW, TRANSFER])

    def test_all_commit_under_weak_fairness(self):
        self.assert_holds(PROGRESS_IF_FAIR, [COPY_X, TRANSFER], SET_X)
        self.assert_holds(PROGRESS_IF_FAIR, [COPY_X, COPY_Y], TRANSFER)

    def test_all_commit_in_lockstep(self):
        self.assert_holds(PROGRESS, [SET_X, COPY_X, COPY_Y, TRANSFER], LOCKSTEP=1)

    def test_planted_bugs_that_break_serializability(self):
        for plant in ["READ_UNCHECKED", "VALIDATE_FIRST", "VALIDATE_NO_MORE", "VALIDATE_LOCKED", "TICKET_FIRST"]:
            with self.subTest(plant=plant):
                self.assert_found(WRONG_READ, SAFETY, [AUDIT, COPY_X, COPY_Y, DRAW], PLANT=plant)

    def test_planted_bugs_that_break_locks(self):
        for plant in ["STEAL_LOCKED", "RELEASE_STOLEN", "VERSION_KEPT"]:
            with self.subTest(plant=plant):
                self.assert_found(WRONG_LOCK_WORD, SAFETY, [COPY_X, COPY_Y, DRAW], PLANT=plant)

    def test_planted_bugs_that_break_priority(self):
        for plant in ["NO_CLAIMS", "IGNORE_CLAIMS", "REPLACE_CLAIMS"]:
            with self.subTest(plant=plant):
                self.assert_found(WAITS_AGAIN, SAFETY, [COPY_X, COPY_Y, TRANSFER], PLANT=plant)
        self.assert_found(CLAIM_LEFT, SAFETY, [COPY_X, COPY_Y, TRANSFER], PLANT="KEEP_CLAIMS")

    def test_planted_bugs_that_break_progress(self):
        programs = [COPY_X, COPY_Y, TRANSFER, TRANSFER_DOWN]
        for plant in ["STEAL_FROM_HIGHER", "NEVER_PESSIMISTIC"]:
            with self.subTest(plant=plant):
                self.assert_found(TRIES_FOR_EVER, PROGRESS_ALONE_IF_FAIR, programs, PLANT=plant)
                self.assert_found(TRIES_FOR_EVER, PROGRESS_ALONE, programs, PLANT=plant, LOCKSTEP=1)
        self.assert_found(TRIES_FOR_EVER, PROGRESS_ALONE_IF_FAIR, [COPY_X, TRANSFER], SET_X, PLANT="GIVE_BACK")
        self.assert_found(TRIES_FOR_EVER, PROGRESS_ALONE, programs, PLANT="GIVE_BACK", LOCKSTEP=1, UNSORTED=1)


if __name__ == "__main__":
    unittest.main()
