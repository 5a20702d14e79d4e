#!/usr/bin/env python3
"""Measures what building costs, and compares it with the limits of the project:

  a clean build of everything                at most 10 minutes of wall time, on 2 cores
  an edit of a strategy, the product         at most 60 compile seconds
  an edit of a strategy, product and tests   at most 90 seconds of wall time, on 2 cores

It builds in a folder of its own, without ccache, as deploy/build.sh builds: programs, tests, and device code where
there is nvcc. For an edit it changes the modification time of the file, builds, and gives the file its time back.
Compile seconds are summed over the objects. Run it on a machine that does nothing else. For the objects that take long,
see compile_cost.py. Exit codes: 0 all limits hold; 1 a limit is exceeded; 2 a build failed.
"""

import argparse
import os
import platform
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time

from compile_cost import OBJECT, TEST

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
EDITED = ["engine/stm/ordered.hpp", "engine/stm/papers/prstm.hpp", "engine/stm/papers/kilo.hpp",
          "engine/stm/papers/local.hpp"]
CLEAN_MINUTES, PRODUCT_SECONDS, EDIT_SECONDS = 10, 60, 90


def read_edges(text):
    """Output -> (its line, seconds) of the last run of each command, from the text of a .ninja_log."""
    edges = {}
    for line in text.splitlines():
        if line and not line.startswith("#"):
            begin, end, _, output, _ = line.split("\t")
            edges[output] = (line, (int(end) - int(begin)) / 1000)
    return edges


def compile_seconds(before, after):
    """Compile seconds of the product and of the tests, and the number of their objects: what ran between the logs."""
    ran = {output: seconds for output, (line, seconds) in read_edges(after).items()
           if output.endswith(OBJECT) and read_edges(before).get(output, ("",))[0] != line}
    of_tests = [seconds for output, seconds in ran.items() if TEST.search(output)]
    of_product = [seconds for output, seconds in ran.items() if not TEST.search(output)]
    return sum(of_product), len(of_product), sum(of_tests), len(of_tests)


def cpu_model(text):
    found = re.search(r"^model name\s*:\s*(.*)$", text, re.MULTILINE)
    return found[1].strip() if found else "unknown CPU"


def judge(value, limit, unit):
    return f"{value:.1f} {unit} (limit {limit}: {'holds' if value <= limit else 'EXCEEDED'})"


def said_by(*command):
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def machine():
    commit = said_by("git", "rev-parse", "--short=12", "HEAD") or "no commit"
    changed = " with changes" if said_by("git", "status", "--porcelain", "--untracked-files=no") else ""
    compiler = (said_by("c++", "--version") or "no c++").splitlines()[0]
    with open("/proc/cpuinfo", encoding="utf-8") as info:
        cpu = cpu_model(info.read())
    return f"commit {commit}{changed}; {cpu}, {len(os.sched_getaffinity(0))} cores, {platform.system()}; {compiler}"


class Build:
    """A build folder, and what its commands cost."""

    def __init__(self, folder, jobs):
        self.folder, self.jobs = folder, jobs

    def run(self, *command):
        """Wall and CPU seconds."""
        environment = {**os.environ, "CCACHE_DISABLE": "1"}
        began, used = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
        ran = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
        if ran.returncode != 0:
            raise RuntimeError(f"{' '.join(command)}: exit {ran.returncode}:\n{(ran.stdout + ran.stderr)[-4000:]}")
        ended = resource.getrusage(resource.RUSAGE_CHILDREN)
        return time.monotonic() - began, ended.ru_utime + ended.ru_stime - used.ru_utime - used.ru_stime

    def configure(self, options):
        return self.run("cmake", "--preset", "release", "-B", self.folder, "-Wno-dev", *options)

    def build(self):
        return self.run("cmake", "--build", self.folder, "--parallel", str(self.jobs))

    def log(self):
        try:
            with open(os.path.join(self.folder, ".ninja_log"), encoding="utf-8") as log:
                return log.read()
        except FileNotFoundError:
            return ""

    def edit(self, file):
        """Wall seconds, and compile_seconds(), of what an edit of the file builds again."""
        path, before = os.path.join(ROOT, file), self.log()
        times = os.stat(path)
        os.utime(path)
        try:
            wall, _ = self.build()
        finally:
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
        return wall, compile_seconds(before, self.log())


def measure(build, options):
    """Prints each measure as it is there. Whether all limits hold."""
    configured = build.configure(options.configure)
    built = build.build()
    wall, cpu = configured[0] + built[0], configured[1] + built[1]
    product, products, tests, test_objects = compile_seconds("", build.log())
    print(f"clean build: {judge(wall / 60, CLEAN_MINUTES, 'min wall')}; {cpu:.0f} s CPU with {build.jobs} jobs; "
          f"compile seconds: {product:.0f} in {products} objects of the product, {tests:.0f} in {test_objects} of the "
          "tests", flush=True)
    holds = wall / 60 <= CLEAN_MINUTES
    for file in options.files:
        wall, (product, products, tests, test_objects) = build.edit(file)
        print(f"edit of {file}: product {judge(product, PRODUCT_SECONDS, 'compile s')} in {products} objects; with "
              f"{test_objects} objects of tests ({tests:.1f} compile s) {judge(wall, EDIT_SECONDS, 's wall')}",
              flush=True)
        holds = holds and product <= PRODUCT_SECONDS and wall <= EDIT_SECONDS
    return holds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)),
                        help="compilers at a time (default: one for each core, %(default)s here)")
    parser.add_argument("--folder", help="build folder, which must not exist, and is kept (default: a temporary one)")
    parser.add_argument("--configure", action="append", default=[], metavar="-DNAME=VALUE",
                        help="an argument for cmake, such as --configure=-DKILOKV_CUDA=OFF; may be repeated")
    parser.add_argument("files", nargs="*", default=EDITED, help=f"edited files (default: {' '.join(EDITED)})")
    options = parser.parse_args()
    if options.folder and os.path.exists(options.folder):
        parser.error(f"--folder: {options.folder} exists: give one that does not, so that the build is clean")
    folder = os.path.abspath(options.folder) if options.folder else tempfile.mkdtemp(prefix="kilokv-clean-build-")
    print(machine(), flush=True)
    try:
        return 0 if measure(Build(folder, options.jobs), options) else 1
    except (OSError, RuntimeError) as error:
        print(f"clean_build: {error}", file=sys.stderr)
        return 2
    finally:
        if not options.folder:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
