#!/usr/bin/env python3
"""Histories that were written by hand from docs/transactions.md and docs/history.md, not from any code, and what the
judge says of them: by_hand/NAME.jsonl, and the verdict that it must get in by_hand/NAME.verdict: `valid`, or `invalid: `
and the reason, which names the line. A second line, `judge: ` and a part of the judge's message, says the reason in the
judge's words. A judge that rejects a history for another reason fails."""

import pathlib
import re
import subprocess
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
HISTORIES = sorted((HERE / "by_hand").glob("*.jsonl"))


def lines_of(text):
    return set(re.findall(r"\bline (\d+)", text))


class ByHandTest(unittest.TestCase):
    def test_each_history_gets_its_verdict(self):
        for path in HISTORIES:
            verdict, *reason = path.with_suffix(".verdict").read_text(encoding="utf-8").splitlines()
            self.assertRegex(verdict, r"^(valid|invalid: .*\bline \d+.*)$", path.name)
            self.assertEqual(len(reason), 0 if verdict == "valid" else 1, path.name)
            command = [sys.executable, HERE / "judge.py", path]
            run = subprocess.run(command, capture_output=True, text=True, check=False)
            with self.subTest(history=path.name, verdict=verdict):
                self.assertEqual(run.returncode, 0 if verdict == "valid" else 1, run.stdout)
                violations = [line for line in run.stdout.splitlines() if line.startswith("VIOLATION")]
                self.assertEqual(bool(violations), verdict != "valid", run.stdout)  # well-formed, whatever the verdict
                for violation in violations:
                    self.assertTrue(lines_of(violation) & lines_of(verdict), run.stdout)
                    self.assertRegex(reason[0], "^judge: .{10}")
                    self.assertIn(reason[0].removeprefix("judge: "), violation)

    def test_verdicts_and_histories_are_pairs(self):
        verdicts = {path.stem for path in (HERE / "by_hand").glob("*.verdict")}
        self.assertEqual(verdicts, {path.stem for path in HISTORIES})
        self.assertGreaterEqual(len(verdicts), 10)


if __name__ == "__main__":
    unittest.main()
