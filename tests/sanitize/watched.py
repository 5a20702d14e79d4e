#!/usr/bin/env python3
"""Runs a test of a build with sanitizers, and fails if any program that the test starts has a report.

    watched.py --sanitizer thread --reports FOLDER -- COMMAND ...

A sanitizer writes each report into a file of FOLDER at once. So a report counts even if nobody looks at the exit code or
at the standard error of its process, and if the process is killed later. CTest puts this program before every test of a
build with KILOKV_SANITIZE (tests/CMakeLists.txt).

The environment variable KILOKV_SANITIZED names the sanitizers. Python tests read it in tests/crash/programs.py.

Exit codes: that of the command; 1 if there are reports.
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
REPORTS_SHOWN = 20
CHARACTERS_SHOWN = 12000  # of each

# What all of them get. A program that has a report ends with this code, too.
COMMON = {"exitcode": "66", "strip_path_prefix": f"{HERE.parent.parent}/"}
OPTIONS = {
    "ASAN_OPTIONS": {"detect_leaks": "1", "strict_string_checks": "1"},
    "LSAN_OPTIONS": {"suppressions": str(HERE / "lsan.supp"), "print_suppressions": "0"},
    "UBSAN_OPTIONS": {"print_stacktrace": "1"},
    # The program goes on after a report, so that one run shows all of them. It keeps the longest history: a rule can only
    # match a stack that is still known. At its end it waits only a moment for the
    # threads that still run, because the tests start the client many hundred times.
    "TSAN_OPTIONS": {"suppressions": str(HERE / "tsan.supp"), "print_suppressions": "0", "halt_on_error": "0",
                     "second_deadlock_stack": "1", "history_size": "7", "atexit_sleep_ms": "50"},
}


def environment(sanitizers, reports):
    """The variables of a test. What is set outside comes last, and so it wins."""
    variables = {"KILOKV_SANITIZED": sanitizers}
    for name, options in OPTIONS.items():
        words = [f"{key}={value}" for key, value in {**COMMON, **options, "log_path": reports / "report"}.items()]
        variables[name] = ":".join([*words, *filter(None, [os.environ.get(name)])])
    return variables


def show(reports):
    """Prints the reports; returns how many files there are."""
    found = sorted(reports.glob("report.*"))
    for path in found[:REPORTS_SHOWN]:
        text = path.read_text(errors="replace")
        print(f"--- report of a sanitizer: {path.name}\n{text[:CHARACTERS_SHOWN]}")
    if found:
        print(f"--- {len(found)} processes of this test have reports of sanitizers; they are in {reports}", flush=True)
    return len(found)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sanitizer", required=True, help="address,undefined or thread")
    parser.add_argument("--reports", required=True, type=pathlib.Path, help="folder for the reports; it is emptied first")
    parser.add_argument("command", nargs="+")
    options = parser.parse_args()
    reports = options.reports.absolute()
    shutil.rmtree(reports, ignore_errors=True)
    reports.mkdir(parents=True)
    done = subprocess.run(options.command, env={**os.environ, **environment(options.sanitizer, reports)}, check=False)
    code = done.returncode if done.returncode >= 0 else 128 - done.returncode
    return 1 if show(reports) else code


if __name__ == "__main__":
    sys.exit(main())
