#!/usr/bin/env python3
"""The ring of the cooperative validator (validator.pml), checked by spin, every state: the protocol as it is built holds,
and each planted bug is found. Every run has to end by itself: one that gives up at a depth fails."""

import os
import re
import shutil
import subprocess
import tempfile
import unittest

MODEL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "validator.pml")

MEMORY_MIB_MAX = 500
DEPTH_MAX = 10_000

# The property that each bug breaks, by the comment at its assertion in the model.
PLANTS = {
    "WRITE_UNDONE": "slot_done",
    "GAP_OF_FRONT": "looked_at",
    "GAP_OF_BACK": "looked_at",
    "CUT_UNSEEN": "both_looked",
    "CUT_KEPT": "looked_at",
    "FIND_UNWAITED": "looked_at",
    "FIND_KEPT": "named",
    "LATER_NAMED": "named",
    "TAKEN_UNCHECKED": "looked_at",
}


def run(folder, *command):
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} ends with {done.returncode}:\n{done.stdout}")
    return done.stdout


class Search:
    """What pan says of the model with these defines."""

    def __init__(self, **defines):
        with tempfile.TemporaryDirectory() as folder:
            run(folder, "spin", *[f"-D{name}={value}" for name, value in defines.items()], "-a", MODEL)
            run(folder, "gcc", "-O0", "-w", "-DCOLLAPSE", "-DSAFETY", f"-DMEMLIM={MEMORY_MIB_MAX}", "-o", "pan", "pan.c")
            self.output = run(folder, "./pan", f"-m{DEPTH_MAX}")
            self.trail = ""
            if self.errors:
                # Its last lines name the assertion by its line in the model.
                flags = [f"-D{name}={value}" for name, value in defines.items()]
                shutil.copy(os.path.join(folder, "validator.pml.trail"), os.path.join(folder, "model.trail"))
                self.trail = subprocess.run(["spin", *flags, "-k", "model.trail", "-t", MODEL], cwd=folder,
                                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                            check=False).stdout
        states = re.search(r"^ *(\S+) states, stored", self.output, re.MULTILINE)[1]
        print(f"{self.errors} errors {float(states):10,.0f} states  {defines}", flush=True)

    @property
    def errors(self):
        return int(re.search(r"errors: (\d+)", self.output)[1])

    def complete(self):
        return not re.search(r"Search not completed|max search depth too small|out of memory|-DMEMLIM bound",
                             self.output)

    def broken(self):
        """The comment at the assertion that does not hold; empty: none was reached."""
        place = re.search(r"validator\.pml:(\d+), Error: assertion violated", self.trail)
        if not place:
            return ""
        with open(MODEL, encoding="utf-8") as file:
            line = file.readlines()[int(place[1]) - 1]
        return re.search(r"assert.*/\* (\w+) \*/", line)[1]


class ValidatorModelTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        for program in "spin", "gcc":
            if not shutil.which(program):
                raise RuntimeError(f"{program} is needed: deploy/install-deps.sh")

    def test_holds(self):
        for slots in 1, 2, 3, 4:
            with self.subTest(slots=slots):
                search = Search(SLOTS=slots)
                self.assertEqual(search.errors, 0, search.output)
                self.assertTrue(search.complete(), search.output)

    def test_planted_bugs(self):
        for plant, broken in PLANTS.items():
            with self.subTest(plant=plant):
                search = Search(PLANT=plant)
                self.assertEqual(search.errors, 1, search.output)
                self.assertEqual(search.broken(), broken, search.trail[-2000:])

    def test_an_end_that_is_not_seen(self):
        search = Search(PLANT="END_UNSEEN")
        self.assertRegex(search.output, "invalid end state")


if __name__ == "__main__":
    unittest.main()
