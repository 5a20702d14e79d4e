#!/usr/bin/env python3
"""kilokv-engine-bench strategies: its tables, and that docs/configuration.md holds them."""

import os
import pathlib
import re
import subprocess
import unittest

BIN = pathlib.Path(os.environ["KILOKV_BIN_DIR"])
PAGE = pathlib.Path(__file__).parents[2] / "docs" / "configuration.md"
BEGIN, END = "<!-- begin: kilokv-engine-bench strategies --markdown -->\n", "<!-- end: strategies -->\n"


def run(program, *arguments):
    return subprocess.run([BIN / program, *arguments], capture_output=True, text=True, stdin=subprocess.DEVNULL,
                          timeout=60)


def first_cells(table):
    return re.findall(r"(?m)^\| `([^`]+)` ", table)


class StrategiesTest(unittest.TestCase):
    def markdown(self):
        done = run("kilokv-engine-bench", "strategies", "--markdown")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout

    def test_the_page_holds_the_tables(self):
        text = PAGE.read_text(encoding="utf-8")
        self.assertEqual((text.count(BEGIN), text.count(END)), (1, 1))
        held = text.split(BEGIN)[1].split(END)[0]
        self.assertEqual(held.strip("\n"), self.markdown().strip("\n"),
                         f"put what `kilokv-engine-bench strategies --markdown` prints between the marks of {PAGE}")

    def test_programs_have_what_the_tables_have(self):
        tables = self.markdown().split("\n\n")
        strategies, settings = map(first_cells, tables)
        of_the_bench_alone = first_cells("".join(line for line in tables[1].splitlines(keepends=True)
                                                 if "Only `kilokv-engine-bench`" in line))
        self.assertEqual(of_the_bench_alone, ["--stage-times"])
        self.assertIn("serial", strategies)
        self.assertIn("--records-per-lock", settings)
        bench, server = run("kilokv-engine-bench", "--help").stdout, run("kilokvd", "--help").stdout
        described = run("kilokv-engine-bench", "strategies").stdout
        for strategy in strategies:
            self.assertRegex(described, f"(?m)^  {strategy} ")
            self.assertRegex(server, rf"(?m)^ +--strategy TEXT .*\b{strategy}\b")
        for setting in settings:
            self.assertRegex(bench, f"(?m)^  {setting} ")
            check = self.assertNotRegex if setting in of_the_bench_alone else self.assertRegex
            check(server, f"(?m)^  {setting} ")

    def test_wrong_usage(self):
        done = run("kilokv-engine-bench", "strategies", "--json")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("unknown flag --json", done.stderr)


if __name__ == "__main__":
    unittest.main()
