#!/usr/bin/env python3
"""The check of the guarantees finds each planted name that leads nowhere, and lets through those that lead somewhere."""

import os
import tempfile
import unittest

from check_guarantees import PAGE, violations

HEAD = "| promise | what tries to break it |\n| --- | --- |\n"
TREE = {
    PAGE: HEAD + "| It holds. | `crash/kill_test.py`; `unit/a_test.cpp`: `Holds`, `alone`; mutations `broken`, `drawn-1` |\n",
    "tests/crash/kill_test.py": "class Kill:\n    def test_kill(self):\n        pass\n",
    "tests/unit/a_test.cpp": "TEST_F(ATest, Holds) {}\nTEST(alone) {}\n// TEST(ATest, Later)\nint Mentioned;\n",
    "tests/mutants/chosen.toml": '[[mutant]]\nid = "broken"\n\n[[mutant]]\nid = "new"\n\n[[mutant]]\nid = "survivor"\n',
    "tests/mutants/drawn.toml": '[[mutant]]\nid = "drawn-1"\n',
    "tests/mutants/found.toml": '[[mutant]]\nid = "broken"\nresult = "found"\nby = "x"\n\n'
                                '[[mutant]]\nid = "survivor"\nresult = "survived"\n',
}


class GuaranteesTest(unittest.TestCase):
    def check(self, row, **changed):
        with tempfile.TemporaryDirectory() as root:
            for path, text in {**TREE, **({PAGE: HEAD + f"| It holds. | {row} |\n"} if row else {}), **changed}.items():
                os.makedirs(os.path.join(root, os.path.dirname(path)), exist_ok=True)
                with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                    file.write(text)
            return list(violations(root))

    def test_nothing_is_found_where_all_names_lead_somewhere(self):
        self.assertEqual(self.check(None), [])
        self.assertEqual(self.check("`crash/kill_test.py`: `test_kill`; mutation `new`"), [])

    def test_each_wrong_name_is_found(self):
        for row, rule in [("`crash/kill_tests.py`", "there is no tests/crash/kill_tests.py"),
                          ("`crash/kill_test.py`: `test_kills`", "tests/crash/kill_test.py has no test test_kills"),
                          ("`unit/a_test.cpp`: `Holds`, `Mentioned`", "tests/unit/a_test.cpp has no test Mentioned"),
                          ("`unit/a_test.cpp`; mutation `fixed`", "there is no mutation fixed"),
                          ("`unit/a_test.cpp`; mutation `survivor`", "the result of the mutation survivor is: survived"),
                          ("mutation `broken`", "the promise has no test"),
                          ("all tests", "names neither a file of tests nor a mutation: all tests"),
                          ("`test_kill`", "names neither a file of tests nor a mutation: `test_kill`")]:
            with self.subTest(row=row):
                self.assertEqual(self.check(row), [f"{PAGE}:3: {rule}"])

    def test_a_page_without_promises(self):
        self.assertEqual(self.check(None, **{PAGE: "# Guarantees\n"}), [f"{PAGE}:1: the page has no promise"])


if __name__ == "__main__":
    unittest.main()
