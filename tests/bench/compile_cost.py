#!/usr/bin/env python3
"""What compiling costs: compile seconds of a clean build, and of what an edit of a file compiles again.

The times are those of the last compile of each object, from the build folder's .ninja_log. So build it before with
CCACHE_DISABLE=1, on a machine that does nothing else. Compile seconds are summed over the objects: on several cores a
build takes less time. Objects of tests are counted apart from those of the product.
"""

import argparse
import os
import re
import subprocess
import sys

OBJECT = (".o", ".obj", ".gch")  # .gch: a precompiled header
TEST = re.compile(r"(^|/)tests/|_test\.dir/|/kilokv_sim\.dir/|/kilokv_test_harness\.dir/")


def read_log(build):
    """Object -> seconds of its last compile."""
    seconds = {}
    with open(os.path.join(build, ".ninja_log"), encoding="utf-8") as lines:
        for line in lines:
            if line.startswith("#"):
                continue
            begin, end, _, output, _ = line.rstrip("\n").split("\t")
            if output.endswith(OBJECT):
                seconds[output] = (int(end) - int(begin)) / 1000
    return seconds


def read_dependencies(build):
    """Object -> the files that it was compiled from, as real paths."""
    text = subprocess.run(["ninja", "-C", build, "-t", "deps"], capture_output=True, text=True, check=True).stdout
    dependencies, target = {}, None
    for line in text.splitlines():
        if line.startswith("    "):
            dependencies[target].add(os.path.realpath(os.path.join(build, line.strip())))
        elif ": #deps" in line:
            target = line.split(": #deps")[0]
            dependencies[target] = set()
    return dependencies


def report(name, objects, seconds, per_object):
    of_product = [one for one in objects if not TEST.search(one)]
    of_tests = [one for one in objects if TEST.search(one)]
    parts = [f"{sum(seconds[one] for one in some):.1f} s in {len(some)} objects of the {kind}"
             for kind, some in (("product", of_product), ("tests", of_tests))]
    print(f"{name}: {', '.join(parts)}")
    if per_object:
        for one in sorted(objects, key=lambda each: -seconds[each]):
            print(f"  {seconds[one]:7.1f} {one}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/dev", help="build folder of Ninja (default %(default)s)")
    parser.add_argument("--objects", action="store_true", help="print each object, too")
    parser.add_argument("files", nargs="*", help="edited files; none: a clean build alone")
    options = parser.parse_args()
    try:
        seconds = read_log(options.build)
        dependencies = read_dependencies(options.build)
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"compile_cost: {options.build}: {error}", file=sys.stderr)
        return 2
    there = [one for one in seconds if one in dependencies]  # others are of an earlier configuration
    report("clean build", there, seconds, options.objects and not options.files)
    for file in options.files:
        path = os.path.realpath(file)
        users = [one for one in there if path in dependencies[one]]
        if not users:
            print(f"compile_cost: nothing in {options.build} is compiled from {file}", file=sys.stderr)
            return 2
        report(file, users, seconds, options.objects)
    return 0


if __name__ == "__main__":
    sys.exit(main())
