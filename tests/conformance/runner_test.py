#!/usr/bin/env python3
"""The runner of the conformance test notices every wrong answer. An adapter that makes mistakes on purpose shows it."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

from matching import Mismatch, fill_in, match

HERE = pathlib.Path(__file__).resolve().parent
# Answers each call with what the call itself says.
ECHO = """
import json, sys
for line in sys.stdin:
    call = json.loads(line)
    if call["call"] == "die":
        sys.exit(int(call["code"]))
    if call["call"] == "hold":
        continue
    print(json.dumps({"id": call["id"], **call["says"]}), flush=True)
"""


class MatchingTest(unittest.TestCase):
    def matches(self, expected, actual, **kept):
        try:
            match(expected, actual, kept)
            return True
        except Mismatch:
            return False

    def test_fields_that_are_not_named_do_not_matter(self):
        self.assertTrue(self.matches({"a": 1}, {"a": 1, "b": 2}))
        self.assertFalse(self.matches({"a": 1}, {"b": 2}))
        self.assertFalse(self.matches({"a": None}, {}))
        self.assertFalse(self.matches({}, []))

    def test_lists_have_the_same_length(self):
        self.assertTrue(self.matches([{}, 2], [{"a": 1}, 2]))
        self.assertFalse(self.matches([1], [1, 2]))
        self.assertFalse(self.matches([], {}))

    def test_types_count(self):
        for expected, actual in ((1, True), (1, 1.0), (1, "1"), ("1", 1), (None, False), (0, None)):
            self.assertFalse(self.matches(expected, actual))

    def test_rules(self):
        for expected, right, wrong in (
                ({"$above": "x"}, 6, 5), ({"$above": "x"}, "6", "4"), ({"$has": "b"}, "abc", "ac"),
                ({"$any": [1, [2]]}, [2], 2), ({"$not": {"a": 1}}, {"a": 2}, {"a": 1}), ({"$use": "x"}, 5, 6)):
            self.assertTrue(self.matches(expected, right, x=5))
            self.assertFalse(self.matches(expected, wrong, x=5))
        self.assertFalse(self.matches({"a": {"$save": "x"}}, {}))
        self.assertFalse(self.matches({"a": {"$not": 1}}, {}))
        self.assertFalse(self.matches({"$unknown": 1}, 1))

    def test_short_forms(self):
        self.assertEqual(fill_in({"a": [{"$use": "x"}]}, {"x": 7}), {"a": [7]})
        self.assertEqual(fill_in({"$repeat": "ab", "times": 3}, {}), "ababab")
        self.assertEqual(fill_in({"$list": {"k": "$i"}, "times": 2}, {}), [{"k": "00000"}, {"k": "00001"}])


class RunnerTest(unittest.TestCase):
    def run_steps(self, *steps, timeout=10):
        """Runs a copy of the runner with one script. Returns its exit code and what it printed."""
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            for file in ("run.py", "matching.py"):
                (folder / file).write_text((HERE / file).read_text(encoding="utf-8"), encoding="utf-8")
            (folder / "echo.py").write_text(ECHO, encoding="utf-8")
            (folder / "scripts").mkdir()
            script = {"about": "a test", "steps": steps}
            (folder / "scripts" / "one.json").write_text(json.dumps(script), encoding="utf-8")
            done = subprocess.run(
                [sys.executable, folder / "run.py", "--adapter", f"{sys.executable} {folder / 'echo.py'}", "--timeout",
                 str(timeout)], capture_output=True, text=True, timeout=100, check=False)
            return done.returncode, done.stdout

    def says(self, answer, **step):
        return {"call": "echo", "says": answer, **step}

    def test_a_right_script(self):
        code, printed = self.run_steps(
            self.says({"ok": {"a": 5}}, expect={"a": {"$save": "x"}}),
            self.says({"ok": {"a": {"$use": "x"}}}, start="s"),
            {"answer": "s", "expect": {"a": 5}}, self.says({"error": {"code": "X"}}, error={"code": "X"}),
            self.says({"misuse": "no"}, misuse=True), self.says({"misuse": "no"}, error={"code": "X"}, or_misuse=True),
            self.says({"error": {"code": "X"}}, error={"code": "X"}, or_misuse=True),
            {"until": self.says({"ok": {}}), "expect": {}},
            {"server": "kill"}, {"server": "start"}, {"server": "stop"}, {"server": "start"}, {"sleep_ms": 1})
        self.assertEqual(code, 0, printed)
        self.assertIn("1 scripts, 0 failed", printed)

    def test_each_wrong_answer_fails_the_script(self):
        for words, *steps in (
                ("ok.a: 5 is expected, not 6", self.says({"ok": {"a": 6}}, expect={"a": 5})),
                ("ok is expected", self.says({"error": {"code": "X"}}, expect={})),
                ("ok is expected", self.says({"error": {"code": "X"}})),
                ("error is expected", self.says({"ok": {}}, error={})),
                ("error.code", self.says({"error": {"code": "X"}}, error={"code": "Y"})),
                ("misuse is expected", self.says({"ok": {}}, misuse=True)),
                ("error is expected", self.says({"misuse": "no"}, error={"code": "X"})),
                ("error is expected", self.says({"ok": {}}, error={"code": "X"}, or_misuse=True)),
                ("error.code", self.says({"error": {"code": "X"}}, error={"code": "Y"}, or_misuse=True)),
                ("ok is expected", self.says({"unsupported": "no such call"}, expect={})),
                ("does not look at the answers of s", self.says({"ok": {}}, start="s")),
                ("the adapter has ended", {"call": "die", "code": 0}),
                ("a step has exactly one of", {"call": "echo", "sleep_ms": 1}),
                ("a step has exactly one of", {"note": "nothing"})):
            code, printed = self.run_steps(*steps)
            self.assertEqual(code, 1, printed)
            self.assertIn(words, printed)

    def test_an_answer_that_does_not_come(self):
        code, printed = self.run_steps({"call": "hold"}, timeout=0.5)
        self.assertEqual(code, 1)
        self.assertIn("no answer within 0.5 s", printed)

    def test_an_adapter_that_ends_with_an_error(self):
        code, printed = self.run_steps({"call": "die", "code": 3, "start": "s"}, {"sleep_ms": 200})
        self.assertEqual(code, 1, printed)


if __name__ == "__main__":
    unittest.main()
