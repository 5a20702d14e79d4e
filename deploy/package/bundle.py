#!/usr/bin/env python3
"""Copies the libraries that programs need, and their licences, so that the programs run where these libraries are not
installed (cmake/KilokvInstall.cmake says how the programs find them).

  bundle.py --libraries FOLDER --licences FOLDER [--with PACKAGE ...] PROGRAM ...

The C library is not copied: every system has its own, and the dynamic linker belongs to it. It must not be older than the
one of this machine. The libraries are those of Debian packages. Debian's copyright file of each package is copied, and the
file LIBRARIES lists the files with package and version. --with names packages whose code is compiled into the programs.
"""

import argparse
import pathlib
import re
import shutil
import subprocess
import sys

# What belongs to the C library (Debian: libc6), and the kernel's part.
OF_THE_SYSTEM = re.compile(r"^(ld-linux.*|lib(c|m|mvec|pthread|dl|rt|resolv|util|anl|nsl|nss_.*|BrokenLocale|thread_db))\.so|"
                           r"^linux-vdso\.so")
# Debian's copyright files only name the licences that every Debian system has.
FOLDER = pathlib.Path("/usr/share/common-licenses")
COMMON = re.compile(rf"{FOLDER}/([\w+-]+(?:\.\d+)*)")
NEEDED = re.compile(r"^\s*(\S+) => (\S+) \(0x", re.MULTILINE)


def output_of(*command):
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True, timeout=60).stdout


def libraries_of(programs):
    """Name -> path of all libraries that the programs load, the system's left out."""
    found = {}
    for program in programs:
        text = output_of("ldd", str(program))
        missing = re.findall(r"^\s*(\S+) => not found", text, re.MULTILINE)
        if missing:
            raise SystemExit(f"bundle.py: {program} needs libraries that are not here: {', '.join(missing)}")
        found.update({name: pathlib.Path(path) for name, path in NEEDED.findall(text) if not OF_THE_SYSTEM.match(name)})
    return found


def packages_of(paths):
    """Path -> the Debian package that has it. A file may be recorded as below /lib or /usr/lib, which are the same."""
    names = {}
    for path in paths:
        for name in (str(path), str(path.resolve())):
            bare = re.sub(r"^/usr", "", name)
            names.update({bare: path, f"/usr{bare}": path})
    # It fails if one of the names is in no package, and prints the others.
    found = subprocess.run(["dpkg-query", "--search", *names], capture_output=True, text=True, check=False).stdout
    packages = {names[name]: package for package, name in re.findall(r"(?m)^([^\s:,]+).*?: (/.*)$", found) if name in names}
    if unknown := [str(path) for path in paths if path not in packages]:
        raise SystemExit(f"bundle.py: no package has {', '.join(unknown)}, so the licence is not known")
    return packages


def versions_of(packages):
    shown = output_of("dpkg-query", "--show", "--showformat=${Package} ${Version}\n", *packages)
    return dict(line.split() for line in shown.splitlines())


def main():
    parser = argparse.ArgumentParser(description="Copies the libraries that programs need, and their licences.")
    parser.add_argument("--libraries", type=pathlib.Path, required=True, help="folder for the libraries")
    parser.add_argument("--licences", type=pathlib.Path, required=True, help="folder for the licences")
    parser.add_argument("--with", dest="compiled_in", nargs="*", default=[], metavar="PACKAGE",
                        help="Debian packages whose code is compiled into the programs")
    parser.add_argument("--notice", nargs="*", default=[], help="other code that is compiled in, and its licence")
    parser.add_argument("programs", nargs="+", metavar="PROGRAM")
    arguments = parser.parse_args()
    arguments.libraries.mkdir(parents=True, exist_ok=True)
    arguments.licences.mkdir(parents=True, exist_ok=True)

    libraries = libraries_of(arguments.programs)
    package_of = packages_of(libraries.values())
    version_of = versions_of({*package_of.values(), *arguments.compiled_in})
    lines = []
    for name, path in sorted(libraries.items()):
        target = arguments.libraries / name
        shutil.copyfile(path.resolve(), target)
        target.chmod(0o644)
        lines.append(f"{name:45} {package_of[path]} {version_of[package_of[path]]}")
    lines += [f"{'(compiled in)':45} {package} {version_of[package]}" for package in sorted(arguments.compiled_in)]
    lines += [f"{'(compiled in)':45} {notice}" for notice in arguments.notice]
    common = set()
    for package in version_of:
        text = pathlib.Path(f"/usr/share/doc/{package}/copyright").read_text(encoding="utf-8", errors="replace")
        (arguments.licences / f"{package}.txt").write_text(text, encoding="utf-8")
        common |= {name for name in COMMON.findall(text) if (FOLDER / name).is_file()}
    for name in common:
        shutil.copyfile(FOLDER / name, arguments.licences / name)
    (arguments.licences / "LIBRARIES").write_text(
        "The libraries that come with KiloKV: file, Debian package, version. The file PACKAGE.txt has the licences of each.\n"
        "Where it names a file in /usr/share/common-licenses, that file is here, too.\n"
        "The sources of each package are in Debian's archive, under this name and version.\n\n"
        + "\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
