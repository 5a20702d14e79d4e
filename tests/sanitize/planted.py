#!/usr/bin/env python3
"""Plants errors in the server, and expects that a test of the real server fails by the report of a sanitizer.

    planted.py [--only REGEX] [-j JOBS]

Each error of PLANTS is put into a checkout of its own, build/planted/tree, at the last commit. kilokvd is built there with
the preset of the sanitizer, and integration_signals_test runs. First the test must pass without an error. This shows
that the suppressions hide no race of two threads of server/core, nor one of a thread of gRPC with a thread of core. It
takes minutes for each sanitizer, so the suite does not run it. The mutations of tests/mutants are for builds without
sanitizers: there, a test has a limit of address space, and the sanitizers need more than that.

Exit codes: 0 all errors were reported; 1 one was not, or the test fails without one.
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TREE = ROOT / "build" / "planted" / "tree"
TEST = "integration_signals_test"
PROGRAMS = ("kilokvd", "kilokv", "kilokv-bench")

CONTEXT, EXECUTOR = "server/core/pipeline/core_context.hpp", "server/core/pipeline/execute_stage.cpp"
LOG, SUBMIT = "server/core/pipeline/log_stage.cpp", "server/core/pipeline/admission.cpp"
# Where code is put in: after this text.
MEMBER = (CONTEXT, "  Counters counters;\n")
WHEN_A_BATCH_RUNS = (EXECUTOR, "bool ExecuteStage::run_batch() {\n")
AFTER_A_BATCH_RAN = (EXECUTOR, "    const bool has_run = run_batch();\n")
AFTER_A_SYNC = (LOG, "  core_->answer_worker->notify();\n  core_->executor_worker->notify();\n")
WHEN_A_REQUEST_COMES = (SUBMIT, "Admission::submit(std::unique_ptr<Request> content) {\n")

# Name: preset, what is put in, and what the report has to say.
PLANTS = {
    "race-of-executor-and-log": ("tsan", {
        MEMBER: "  std::uint64_t planted = 0;\n",
        WHEN_A_BATCH_RUNS: "  core_->planted += 1;\n",
        AFTER_A_SYNC: "  core_->planted += 1;\n"}, ["data race", "ExecuteStage::run_batch", "LogStage::step"]),
    "race-of-grpc-and-executor": ("tsan", {
        MEMBER: "  std::uint64_t planted = 0;\n",
        WHEN_A_REQUEST_COMES: "  core_->planted += 1;\n",
        AFTER_A_BATCH_RAN: "    core_->planted += 1;\n"}, ["data race", "ExecuteStage::step", "Admission::submit"]),
    "use-after-free": ("asan", {
        MEMBER: "  std::uint64_t* planted = new std::uint64_t(0);\n  bool planted_freed = false;\n",
        WHEN_A_BATCH_RUNS: "  *core_->planted += 1;\n",
        AFTER_A_SYNC: "  if (!std::exchange(core_->planted_freed, true)) delete core_->planted;\n"},
        ["heap-use-after-free", "ExecuteStage::run_batch", "LogStage::step"]),
    "leak": ("asan", {
        MEMBER: "  std::uint64_t* planted = nullptr;\n",
        AFTER_A_SYNC: "  core_->planted = new std::uint64_t(count);\n"}, ["detected memory leaks", "LogStage::step"]),
    "overflow-of-a-number": ("asan", {
        MEMBER: "  int planted = 2147483647;\n",
        WHEN_A_BATCH_RUNS: "  core_->planted += 1;\n"}, ["signed integer overflow", "execute_stage.cpp"]),
}


def run(*command, **more):
    return subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, cwd=TREE, **more)


def checkout():
    commit = subprocess.check_output(["git", "rev-parse", "HEAD"], cwd=ROOT, text=True).strip()
    if not TREE.exists():
        TREE.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["git", "worktree", "add", "--detach", TREE, commit], cwd=ROOT, check=True)
    run("git", "checkout", "--quiet", "--force", "--detach", commit, check=True)


def plant(changes):
    for (name, after), text in changes.items():
        path = TREE / name
        code = path.read_text()
        assert code.count(after) == 1, f"{name} has this text {code.count(after)} times, not once: {after}"
        path.write_text(code.replace(after, after + text))


def build(preset, jobs):
    if not (TREE / "build" / preset / "build.ninja").exists():
        run("cmake", "--preset", preset, "-Wno-dev", stdout=subprocess.DEVNULL, check=True)
    done = run("cmake", "--build", f"build/{preset}", "--parallel", jobs, "--target", *PROGRAMS, stdout=subprocess.PIPE,
               stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, done.stdout[-4000:]


def test(preset):
    """Whether it passes, and what it printed."""
    done = run("ctest", "--test-dir", f"build/{preset}", "-R", f"^{TEST}$", "--no-tests=error", "--output-on-failure",
               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    return done.returncode == 0, done.stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="names of errors, as a regular expression")
    parser.add_argument("-j", dest="jobs", type=int, default=os.cpu_count(), help="compilers that run at a time")
    options = parser.parse_args()
    wanted = {name: what for name, what in PLANTS.items() if re.search(options.only, name)}
    wrong = 0 if wanted else 1
    for preset in dict.fromkeys(preset for preset, _, _ in wanted.values()):
        checkout()
        build(preset, options.jobs)
        passed, output = test(preset)
        print(f"{preset}: without an error, {TEST} {'passes' if passed else 'FAILS:'}", flush=True)
        if not passed:
            print(output)
            wrong += 1
            continue
        for name, (_, changes, words) in ((name, what) for name, what in wanted.items() if what[0] == preset):
            checkout()
            plant(changes)
            build(preset, options.jobs)
            passed, output = test(preset)
            missing = [word for word in ("report of a sanitizer", *words) if word not in output]
            print(f"{preset}: {name}: " + ("NOT REPORTED" if passed else f"NOT REPORTED with {missing}" if missing
                                           else "reported"), flush=True)
            if passed or missing:
                print(output)
                wrong += 1
    checkout()
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
