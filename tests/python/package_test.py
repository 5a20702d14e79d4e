#!/usr/bin/env python3
"""The package as a user installs it: a wheel without network, in an environment of its own, with its types.

  package_test.py --install FOLDER   installs the package there, for the other tests, and ends
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "client" / "python"
PIP = ["-m", "pip", "--disable-pip-version-check", "--quiet"]
PROGRAM = """
import kilokv
def total(db: kilokv.Client) -> int:
    read = db.get("a")
    try:
        db.execute(kilokv.Transaction().add("a", 1))
    except kilokv.QueueFullError as error:
        print(error.retry_after + 1)
    print(len(kilokv.Columns.add(["a"], [1])))
    return read if isinstance(read, int) else 0
"""
WRONG = "import kilokv\nkilokv.Transaction().add('a', 1.5)\nkilokv.Client(5)\n"


def run(*command, **options):
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, timeout=300, **options)
    assert done.returncode == 0, f"{command}: exit {done.returncode}: {done.stdout}{done.stderr}"
    return done.stdout


def copy_sources(folder):
    """A copy, because a build writes beside its sources, and takes old files from there."""
    copy = pathlib.Path(folder) / "sources"
    made = shutil.ignore_patterns("build", "dist", "*.egg-info", "__pycache__", ".mypy_cache")
    shutil.copytree(PACKAGE, copy, ignore=made)
    shutil.copytree(ROOT / "proto", copy / "proto")
    return copy


def build_wheel(folder, sources):
    run(sys.executable, *PIP, "wheel", "--no-index", "--no-build-isolation", "--no-deps", "--wheel-dir", folder,
        sources)
    return next(pathlib.Path(folder).glob("*.whl"))


def install(folder):
    """For tests: the package in this folder, in place of what is there."""
    with tempfile.TemporaryDirectory() as wheels:
        wheel = build_wheel(wheels, copy_sources(wheels))
        shutil.rmtree(folder, ignore_errors=True)
        run(sys.executable, *PIP, "install", "--no-index", "--no-deps", "--target", folder, wheel)


class PackageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        cls.sources = copy_sources(cls.folder)
        cls.wheel = build_wheel(cls.folder, cls.sources)
        run(sys.executable, "-m", "venv", "--system-site-packages", cls.folder / "venv")
        cls.python = cls.folder / "venv" / "bin" / "python"
        run(cls.python, *PIP, "install", "--no-index", cls.wheel)

    def test_the_wheel_has_stubs_and_types_and_no_tests(self):
        names = set(zipfile.ZipFile(self.wheel).namelist())
        for name in ("py.typed", "v1/kilokv_pb2.py", "v1/kilokv_pb2_grpc.py", "aio/client.py"):
            self.assertIn(f"kilokv/{name}", names)
        self.assertFalse([name for name in names if "test" in name])

    def test_it_is_found_without_the_checkout(self):
        printed = run(self.python, "-c", "import kilokv, kilokv.aio; print(kilokv.__file__)", cwd=self.folder)
        self.assertTrue(pathlib.Path(printed.strip()).is_relative_to(self.folder), printed)

    def test_numpy_is_loaded_only_for_columns(self):
        run(self.python, "-c", "import sys, kilokv, kilokv.aio; assert 'numpy' not in sys.modules; kilokv.Columns; "
            "assert 'numpy' in sys.modules", cwd=self.folder)

    def test_every_public_name_is_there(self):
        run(self.python, "-c", "from kilokv import *; from kilokv.aio import *; import kilokv; "
            "assert all(hasattr(kilokv, name) for name in kilokv.__all__)", cwd=self.folder)

    def test_a_source_archive_has_the_protocol(self):
        run(sys.executable, "setup.py", "--quiet", "sdist", "--dist-dir", self.folder / "archive", cwd=self.sources)
        archive = next((self.folder / "archive").glob("*.tar.gz"))
        wheel = build_wheel(self.folder / "second", archive)
        self.assertIn("kilokv/v1/kilokv_pb2.py", zipfile.ZipFile(wheel).namelist())

    def test_the_package_is_typed(self):
        run(sys.executable, "-m", "mypy", "--cache-dir", self.folder / "cache", cwd=PACKAGE)

    def test_programs_get_its_types(self):
        (self.folder / "program.py").write_text(PROGRAM, encoding="utf-8")
        mypy = [sys.executable, "-m", "mypy", "--strict", "--python-executable", self.python, "--cache-dir",
                self.folder / "users_cache"]
        run(*mypy, "program.py", cwd=self.folder)
        (self.folder / "wrong.py").write_text(WRONG, encoding="utf-8")
        found = subprocess.run([*mypy, "wrong.py"], capture_output=True, text=True, check=False, cwd=self.folder)
        self.assertEqual(found.stdout.count("[arg-type]"), 2, found.stdout + found.stderr)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--install")
    options, rest = parser.parse_known_args()
    if options.install:
        install(options.install)
    else:
        unittest.main(argv=[sys.argv[0], *rest])
