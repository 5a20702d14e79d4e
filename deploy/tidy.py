#!/usr/bin/env python3
"""Runs clang-tidy over the .cpp files that a build compiles, with no finding allowed (.clang-tidy).

  deploy/tidy.py [--product] BUILD_FOLDER

Without a flag, it reads each source alone, so it also finds a source that does not include what it needs. With
--product, it leaves out the tests, and reads the sources in groups: one file includes up to GROUP_MAX sources of a
folder that are compiled with the same flags. The headers of libraries take most of the time, and a group reads them once. If a group has
findings, each of its sources is read alone, and only what is found then counts: two sources may use one name for two
things. Groups find no using-declaration that nobody uses (misc-unused-using-decls) and no argument that is better passed
by reference (performance-unnecessary-value-param).

The precompiled headers of GCC are left out of the flags, and its flags of memory: clang knows neither. The exit code is 1
if something is found, or if there is nothing to read.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
GROUP_MAX = 12
# Sources include no sources, but groups do. The other check takes as long as all the rest where headers are large.
NOT_FOR_GROUPS = "--checks=-bugprone-suspicious-include,-performance-unnecessary-value-param"
# What a source defines for itself, at the begin of a line: a function, a value, a type or an alias; and a second value.
NAMES = (re.compile(r"^(?:using (?:\w+::)*|\w[\w:<>*& ]*[ *&])(\w+)[\[({=; ]", re.MULTILINE),
         re.compile(r"^constexpr .*, (k\w+) =", re.MULTILINE))
FLAGS_OF_GCC = re.compile(r" -Winvalid-pch -include \S*/cmake_pch\.hxx| --param=ggc-\S*")


def commands_of(build):
    """The command that compiles each source, without its output. A source that is compiled twice counts once."""
    commands = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        source = pathlib.Path(entry["file"])
        if source.suffix == ".cpp" and source.is_relative_to(ROOT):
            source = source.relative_to(ROOT)
            if source.parts[0] != "build":
                commands.setdefault(source, FLAGS_OF_GCC.sub("", entry["command"]).split(" -o ")[0])
    return commands


def write_commands(folder, build, commands):
    folder.mkdir(parents=True, exist_ok=True)
    entries = [{"directory": str(build), "file": str(file), "command": f"{command} -o tidy.o -c {file}"}
               for file, command in commands.items()]
    (folder / "compile_commands.json").write_text(json.dumps(entries, indent=1))


def groups_of(commands):
    """Lists of sources of one folder with equal flags, which define no name twice."""
    groups = []
    for source in sorted(commands):
        kind = (commands[source], source.parent)
        text = (ROOT / source).read_text()
        names = {name for pattern in NAMES for name in pattern.findall(text)}
        for group in groups:
            if group["kind"] == kind and len(group["sources"]) < GROUP_MAX and not names & group["names"]:
                break
        else:
            group = {"kind": kind, "sources": [], "names": set()}
            groups.append(group)
        group["sources"].append(source)
        group["names"] |= names
    return [group["sources"] for group in groups]


def tidy(folder, file, *flags):
    """What clang-tidy finds in a file: nothing, or its output."""
    done = subprocess.run(["clang-tidy", "-p", folder, "--quiet", "--warnings-as-errors=*", *flags, file], cwd=ROOT, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    if done.returncode == 0:
        return ""
    errors = [line for line in done.stderr.splitlines() if not re.search(r"warnings? generated\.$", line)]
    return done.stdout + "\n".join(errors) or f"clang-tidy ended with {done.returncode} at {file}\n"


def make_group(folder, number, sources):
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"group{number}.cpp"
    file.write_text("".join(f'#include "{ROOT / source}"\n' for source in sources))
    return file


def tidy_group(folder, file, sources):
    if not tidy(folder, file, f"--config-file={ROOT / '.clang-tidy'}", NOT_FOR_GROUPS):
        return "", 0
    return "".join(tidy(folder, ROOT / source, NOT_FOR_GROUPS) for source in sources), len(sources)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--product", action="store_true", help="not the tests, and in groups")
    parser.add_argument("build", type=pathlib.Path, help="a build folder with compile_commands.json")
    arguments = parser.parse_args()
    build = arguments.build.resolve()
    folder = build / "tidy"
    commands = commands_of(build)
    if arguments.product:
        commands = {source: command for source, command in commands.items() if source.parts[0] != "tests"}
    if not commands:
        print(f"clang-tidy: {build / 'compile_commands.json'} names no source below {ROOT}", file=sys.stderr)
        return 1
    absolute = {ROOT / source: command for source, command in commands.items()}
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        if arguments.product:
            groups = groups_of(commands)
            files = [make_group(folder, number, sources) for number, sources in enumerate(groups)]
            write_commands(folder, build, absolute | {file: commands[sources[0]] for file, sources in zip(files, groups)})
            results = pool.map(lambda group: tidy_group(folder, *group), list(zip(files, groups)))
        else:
            write_commands(folder, build, absolute)
            results = pool.map(lambda source: (tidy(folder, source), 1), absolute)
        alone, clean = 0, True
        for findings, read_alone in results:
            alone += read_alone
            clean = clean and not findings
            sys.stdout.write(findings)
    if clean:
        print(f"clang-tidy: {len(commands)} sources are clean ({alone} of them read alone)")
    return 0 if clean else 1


if __name__ == "__main__":
    sys.exit(main())
