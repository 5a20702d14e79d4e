#!/usr/bin/env python3
"""The measure of builds: it counts what ran, the product and the tests apart, and says which limit is exceeded."""

import contextlib
import io
import types
import unittest

import clean_build
from clean_build import compile_seconds, cpu_model, judge, measure, read_edges

FIRST = """# ninja log v5
0\t4000\t1\tengine/CMakeFiles/kilokv_engine.dir/engine.cpp.o\taaaa
0\t9000\t1\tengine/CMakeFiles/engine_a_test.dir/a_test.cpp.o\tbbbb
4000\t4500\t1\tengine/libkilokv_engine.a\tcccc
100\t2100\t1\tengine/CMakeFiles/kilokv_headers_std_of_libraries.dir/cmake_pch.hxx.gch\tdddd
4500\t7500\t1\ttests/unit/core/CMakeFiles/core_test.dir/b_test.cpp.o\teeee
"""
# The product's object ran again, and so did the library; then Ninja wrote the log anew.
SECOND = "\n".join(FIRST.splitlines()[:1] + FIRST.splitlines()[2:]) + """
10\t1510\t2\tengine/CMakeFiles/kilokv_engine.dir/engine.cpp.o\taaaa
1510\t1600\t2\tengine/libkilokv_engine.a\tcccc
"""


class FakeBuild:
    jobs = 2

    def __init__(self, clean_seconds, edit):
        self.clean_seconds, self.result = clean_seconds, edit

    def configure(self, _):
        return 1, 1

    def build(self):
        return self.clean_seconds, 2 * self.clean_seconds

    def log(self):
        return FIRST

    def edit(self, _):
        return self.result


class CleanBuildTest(unittest.TestCase):
    def test_the_last_run_of_a_command_counts(self):
        self.assertEqual(read_edges(FIRST + SECOND)["engine/CMakeFiles/kilokv_engine.dir/engine.cpp.o"][1], 1.5)

    def test_a_clean_build_counts_all_objects_and_precompiled_headers(self):
        self.assertEqual(compile_seconds("", FIRST), (6.0, 2, 12.0, 2))

    def test_an_edit_counts_what_ran_again(self):
        self.assertEqual(compile_seconds(FIRST, SECOND), (1.5, 1, 0, 0))
        self.assertEqual(compile_seconds(FIRST, FIRST), (0, 0, 0, 0))

    def test_limits(self):
        self.assertEqual(judge(60, 60, "s"), "60.0 s (limit 60: holds)")
        self.assertEqual(judge(60.2, 60, "s"), "60.2 s (limit 60: EXCEEDED)")
        options = types.SimpleNamespace(configure=[], files=["one.hpp"])
        for clean_seconds, product, wall, holds in [(590, 60, 90, True), (600, 60, 90, False), (590, 61, 90, False),
                                                    (590, 60, 91, False)]:
            with self.subTest(clean_seconds=clean_seconds, product=product, wall=wall):
                out = io.StringIO()
                with contextlib.redirect_stdout(out):
                    self.assertEqual(measure(FakeBuild(clean_seconds, (wall, (product, 3, 40, 5))), options), holds)
                self.assertEqual("EXCEEDED" in out.getvalue(), not holds)
                self.assertIn("edit of one.hpp", out.getvalue())

    def test_a_build_that_fails_says_why(self):
        build = clean_build.Build("nowhere", 1)
        with self.assertRaisesRegex(RuntimeError, "exit 3:\nwhat is wrong"):
            build.run("sh", "-c", "echo what is wrong >&2; exit 3")

    def test_the_machine(self):
        self.assertEqual(cpu_model("processor\t: 0\nmodel name\t: Some CPU 7\n"), "Some CPU 7")
        self.assertEqual(cpu_model(""), "unknown CPU")


if __name__ == "__main__":
    unittest.main()
