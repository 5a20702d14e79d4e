#!/usr/bin/env python3
"""deploy/test.sh with tools that only say how they were called: its flags, its steps and their minutes, its last lines."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
# Each notes its call. $FAIL names one that fails.
TOOL = """#!/bin/sh
echo "$(basename "$0") $*" >>"$CALLS"
[ "$(basename "$0")" != ctest ] || printf '1/1 Test #1: a\\n%s%% tests passed, 1 tests failed out of 1\\n\\nTotal Test time\\n' 0
[ "$(basename "$0")" != "$FAIL" ]
"""
CLOSING = "0% tests passed, 1 tests failed out of 1\n\nTotal Test time\n"


class TestScript(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="kilokv-test-script-")
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        (self.root / "deploy").mkdir()
        for script in ("test.sh", "build.sh", "tidy.py"):
            shutil.copy(ROOT / "deploy" / script, self.root / "deploy")
        self.calls, tools = self.root / "calls", self.root / "tools"
        tools.mkdir()
        for tool in (*(tools / name for name in ("cmake", "ctest", "clang-format", "clang-tidy")),
                     self.root / "deploy" / "install-deps.sh", self.root / "tests" / "fuzz" / "run.sh"):
            tool.parent.mkdir(parents=True, exist_ok=True)
            tool.write_text(TOOL)
            tool.chmod(0o755)
        self.commands = []
        for part, source in (("engine", "a.cpp"), ("engine", "a.cu"), ("server/core", "b.cpp"), ("client", "c.cpp"),
                             ("tls", "f.cpp"), ("tests", "d.cpp"), ("build/release", "e.cpp")):
            path = self.root / part / source
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
            command = f"c++ -O3 --param=ggc-x=2 -Winvalid-pch -include /a/b.dir/cmake_pch.hxx -o a.o -c {path}"
            self.commands.append({"directory": str(path.parent), "command": command, "file": str(path)})
        (self.root / "build/release/compile_commands.json").write_text(json.dumps(self.commands, indent=2))

    def run_script(self, *flags, fail="", code=0):
        """The calls of the tools, and what was printed."""
        self.calls.write_text("")
        environment = {**os.environ, "CALLS": str(self.calls), "FAIL": fail,
                       "PATH": f"{self.root / 'tools'}:{os.environ['PATH']}"}
        done = subprocess.run([self.root / "deploy" / "test.sh", *flags], env=environment, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=60)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return self.calls.read_text().splitlines(), done.stdout

    def steps(self, output):
        return re.findall(r"^ +\d+\.\d min  (.*)$", output, re.MULTILINE)

    def test_everything(self):
        calls, output = self.run_script()
        self.assertEqual(calls[0], "install-deps.sh ")
        self.assertIn("--target all", " ".join(calls))
        self.assertEqual(self.steps(output), ["packages", "formatting", "build", "tests"])

    def test_a_label_without_tests_fails(self):
        calls, _ = self.run_script("--no-install", "--label", "untit")
        self.assertIn("--no-tests=error --label-regex untit", next(call for call in calls if call.startswith("ctest")))

    def test_no_install(self):
        calls, output = self.run_script("--no-install")
        self.assertFalse([call for call in calls if call.startswith("install-deps.sh")])
        self.assertEqual(self.steps(output), ["formatting", "build", "tests"])

    def test_quick_builds_the_unit_tests_and_nothing_else(self):
        calls, output = self.run_script("--quick")
        builds = [call for call in calls if call.startswith("cmake --build")]
        self.assertEqual(len(builds), 1)
        self.assertTrue(builds[0].endswith("--target unit_tests"), builds)
        self.assertIn("--label-regex ^unit$", next(call for call in calls if call.startswith("ctest")))
        self.assertIn("build of the unit tests", self.steps(output))

    def test_the_minutes_come_before_the_closing_lines_of_ctest(self):
        for words in ([], ["--quick"], ["--engine-alone", "--tidy"]):
            _, output = self.run_script(*words)
            self.assertTrue(output.endswith(CLOSING), output)
            self.assertLess(output.index("Minutes of each step:"), output.rindex("% tests passed"))
            runs = 2 if "--engine-alone" in words else 1
            self.assertEqual((output.count("1/1 Test #1"), output.count("% tests passed")), (runs, runs))

    def sources_of_tidy(self, *flags, **more):
        """The names of the sources of each call: of a group, those that it includes."""
        calls, _ = self.run_script(*flags, **more)
        files = [pathlib.Path(call.split()[-1]) for call in calls if call.startswith("clang-tidy")]
        return sorted(re.findall(r'^#include ".*/(\S+)"$', file.read_text(), re.MULTILINE) if file.parent.name == "tidy"
                      else [file.name] for file in files)

    def add_source(self, path, text):
        (self.root / path).write_text(text)
        self.commands.append({"directory": str(self.root), "command": f"c++ -O3 -o a.o -c {self.root / path}",
                              "file": str(self.root / path)})
        (self.root / "build/release/compile_commands.json").write_text(json.dumps(self.commands))

    def test_clang_tidy_reads_what_is_compiled(self):
        product = [["a.cpp"], ["b.cpp"], ["c.cpp"], ["f.cpp"]]
        self.assertEqual(self.sources_of_tidy("--tidy"), sorted([*product, ["d.cpp"]]))
        self.assertEqual(self.sources_of_tidy("--tidy-product"), product)
        self.assertEqual(self.sources_of_tidy(), [])

    def test_clang_tidy_reads_sources_of_one_folder_together(self):
        self.add_source("client/g.cpp", "constexpr int kOne = 1, kTwo = 2;\nint same(int x) { return x; }\n")
        self.add_source("client/h.cpp", "using other::Same;\n")
        self.add_source("client/i.cpp", "std::string same() { return {}; }\n")
        self.add_source("client/j.cpp", "class Same {};\n")
        self.add_source("client/k.cpp", "constexpr std::size_t kTwo{3};\n")
        self.assertEqual(self.sources_of_tidy("--tidy-product"),
                         [["a.cpp"], ["b.cpp"], ["c.cpp", "g.cpp", "h.cpp"], ["f.cpp"], ["i.cpp", "j.cpp", "k.cpp"]])

    def test_a_group_with_findings_is_read_source_by_source(self):
        self.add_source("client/g.cpp", "")
        self.assertEqual(self.sources_of_tidy("--tidy-product", fail="clang-tidy", code=1),
                         sorted([["a.cpp"], ["b.cpp"], ["f.cpp"], ["c.cpp", "g.cpp"], ["a.cpp"], ["b.cpp"], ["f.cpp"], ["c.cpp"],
                                 ["g.cpp"]]))

    def test_clang_tidy_without_sources_fails(self):
        (self.root / "build/release/compile_commands.json").write_text("[]")
        calls, output = self.run_script("--tidy", code=1)
        self.assertEqual(self.steps(output)[-1], "clang-tidy  FAILED")
        self.assertFalse([call for call in calls if call.startswith("clang-tidy")])

    def test_clang_tidy_gets_nothing_that_only_gcc_knows(self):
        calls, _ = self.run_script("--tidy")
        (folder,) = {re.search(r"-p (\S+)", call)[1] for call in calls if call.startswith("clang-tidy")}
        commands = json.loads((self.root / folder / "compile_commands.json").read_text())
        self.assertEqual(sorted(command["command"] for command in commands),
                         sorted(f"c++ -O3 -o tidy.o -c {command['file']}" for command in self.commands
                                if command["file"].endswith(".cpp") and "/build/" not in command["file"]))

    def test_every_step_of_ci_has_its_minutes(self):
        self.assertIn("deploy/test.sh --engine-alone --tidy-product --fuzz", (ROOT / ".ci" / "run").read_text())
        calls, output = self.run_script("--engine-alone", "--tidy-product", "--fuzz")
        self.assertEqual(self.steps(output),
                         ["packages", "formatting", "the engine alone", "build", "clang-tidy",
                          "build of the fuzz targets", "corpora of the fuzz targets", "tests"])
        self.assertIn("run.sh --no-build --replay", calls)

    def test_what_fails_ends_it_and_is_named(self):
        for tool, step in (("install-deps.sh", "packages"), ("clang-format", "formatting"), ("cmake", "build"),
                           ("clang-tidy", "clang-tidy"), ("run.sh", "corpora of the fuzz targets"), ("ctest", "tests")):
            with self.subTest(tool):
                code = 123 if tool == "clang-format" else 1  # xargs says 123
                _, output = self.run_script("--tidy", "--fuzz", fail=tool, code=code)
                self.assertEqual(self.steps(output)[-1], f"{step}  FAILED")
                if tool == "ctest":
                    self.assertTrue(output.endswith(CLOSING), output)

    def test_an_unknown_flag_is_refused(self):
        calls, output = self.run_script("--fast", code=2)
        self.assertEqual((calls, output), ([], ""))

    def test_help(self):
        calls, output = self.run_script("--help")
        self.assertEqual(calls, [])
        self.assertIn("--tidy-product", output)
        self.assertNotIn("set -euo", output)


class UnitTests(unittest.TestCase):
    """The target that --quick builds has all programs that ctest runs for the label."""

    def test_the_target_is_whole(self):
        build = pathlib.Path(os.environ.get("KILOKV_BIN_DIR", ROOT / "build" / "release" / "bin")).parent
        listed = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1", "--label-regex", "^unit$"],
                                capture_output=True, text=True, check=True, timeout=60).stdout
        # A script needs no program of its own.
        tests = {test["name"] for test in json.loads(listed)["tests"]
                 if any(word.startswith(f"{build}/tests/bin/") for word in test["command"])}
        graph = subprocess.run(["ninja", "-C", build, "-t", "query", "tests/CMakeFiles/unit_tests"], capture_output=True,
                               text=True, check=True, timeout=60).stdout
        programs = set(re.findall(r"tests/bin/(\S+)", graph))
        self.assertGreater(len(programs), 40)
        self.assertEqual(tests, programs)


if __name__ == "__main__":
    unittest.main()
