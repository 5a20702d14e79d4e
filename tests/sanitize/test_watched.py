#!/usr/bin/env python3
"""watched.py with small programs that have an error; and the suppressions, which may name libraries only."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import textwrap
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import planted  # noqa: E402

RACE = """
    #include <thread>
    #include <unistd.h>
    int shared = 0;
    void raise_shared() { for (int i = 0; i < 1000; ++i) shared += 1; }
    int main() { std::thread a(raise_shared), b(raise_shared); a.join(); b.join(); pause(); }
"""
USE_AFTER_FREE = """
    #include <unistd.h>
    int main() { volatile int* one = new int(1); delete one; if (fork() == 0) return *one; pause(); }
"""
LEAK = """
    int* volatile kept = nullptr;
    int main() { kept = new int(1); kept = nullptr; }
"""
OVERFLOW = "int main(int count, char**) { int most = 2147483646 + count; most += count; return most == 7; }"
FINE = "int main() {}"
# What a test does that never looks at its server: starts it, and kills it.
KILLED_LATER = "{program} 2>/dev/null & sleep 2; kill -9 $!; wait $!; exit 0"
# One line of a suppression file. A rule of ThreadSanitizer leaves out what a library does; one of LeakSanitizer, what a
# library has allocated. Each names a library, or a function of RocksDB or Protobuf.
FUNCTION = r"rocksdb::\w+::\w*|google::protobuf::internal::\w+"
RULE = re.compile(rf"(called_from_lib|leak|race):(lib[\w+-]+\.so|{FUNCTION})")
LIBRARIES = ("libgrpc", "libgpr", "libabsl_", "libcares", "libssl", "libcrypto")


class Watched(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="kilokv-watched-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_watched(self, sanitizer, code, command="{program}"):
        """The exit code and what was printed of a command that runs this program."""
        source, program = self.folder / "program.cpp", self.folder / "program"
        source.write_text(textwrap.dedent(code))
        subprocess.run(["g++", "-std=c++20", "-O1", "-g1", "-w", "-pthread", "-static-libubsan", "-fno-sanitize-recover=all",
                        f"-fsanitize={sanitizer}", "-o", program, source], check=True, timeout=60)
        # Only what watched.py sets: this test may itself run below it.
        environment = {name: value for name, value in os.environ.items() if not name.endswith("SAN_OPTIONS")}
        done = subprocess.run([sys.executable, HERE / "watched.py", "--sanitizer", sanitizer, "--reports", self.folder / "reports",
                               "--", "bash", "-c", command.format(program=program)], env=environment,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
        return done.returncode, done.stdout

    def test_a_race_of_a_program_that_is_killed(self):
        code, text = self.run_watched("thread", RACE, KILLED_LATER)
        self.assertEqual(code, 1, text)
        self.assertIn("data race", text)
        self.assertIn("raise_shared", text)

    def test_a_use_after_free_of_a_child_whose_exit_code_nobody_sees(self):
        code, text = self.run_watched("address", USE_AFTER_FREE, KILLED_LATER)
        self.assertEqual(code, 1, text)
        self.assertIn("heap-use-after-free", text)

    def test_a_leak(self):
        code, text = self.run_watched("address", LEAK, "{program}; exit 0")
        self.assertEqual(code, 1, text)
        self.assertIn("detected memory leaks", text)

    def test_an_overflow(self):
        code, text = self.run_watched("address,undefined", OVERFLOW, "{program}; exit 0")
        self.assertEqual(code, 1, text)
        self.assertIn("signed integer overflow", text)

    def test_without_a_report_the_exit_code_is_that_of_the_command(self):
        for sanitizer in ("thread", "address"):
            self.assertEqual(self.run_watched(sanitizer, FINE), (0, ""))
            self.assertEqual(self.run_watched(sanitizer, FINE, "{program}; exit 7"), (7, ""))

    def test_a_command_that_is_ended_by_a_signal(self):
        self.assertEqual(self.run_watched("thread", FINE, "kill -9 $$"), (137, ""))


class Suppressions(unittest.TestCase):
    def test_each_names_a_library_and_has_a_reason(self):
        for name in ("tsan.supp", "lsan.supp"):
            reason = False
            for line in (HERE / name).read_text().splitlines():
                with self.subTest(f"{name}: {line}"):
                    if not line or line.startswith("#"):
                        reason = line.startswith("#")
                        continue
                    self.assertTrue(reason, "no comment with the reason before it")
                    rule = RULE.fullmatch(line)
                    self.assertTrue(rule, "no rule for a library")
                    if rule[1] == "race":
                        self.assertRegex(rule[2], FUNCTION, "not a function of RocksDB or Protobuf")
                    else:
                        self.assertTrue(rule[2].startswith(LIBRARIES), "not a known library")
                        self.assertEqual(rule[1], "leak" if name == "lsan.supp" else "called_from_lib")

    def test_the_planted_errors_apply(self):
        for name, (_, changes, _) in planted.PLANTS.items():
            for path, after in changes:
                with self.subTest(f"{name}: {path}"):
                    self.assertEqual((planted.ROOT / path).read_text().count(after), 1)


if __name__ == "__main__":
    unittest.main()
