#!/usr/bin/env python3
"""What `cmake --install` makes: other projects find the libraries there and build the examples with them, wherever the tree
is moved to, and the programs run there.

  tree_test.py --build BUILD_FOLDER
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "crash"))
from programs import Server, temporary_folder  # noqa: E402

PROGRAMS = {"kilokvd", "kilokv", "kilokv-bank", "kilokv-bench", "kilokv-engine-bench"}
USES = """cmake_minimum_required(VERSION 3.25)
project(uses LANGUAGES CXX)
find_package(kilokv {asks})
message(STATUS "found: ${{kilokv_FOUND}} ${{kilokv_VERSION}}")
foreach(target client engine)
  if(TARGET kilokv::${{target}})
    message(STATUS "target ${{target}}")
  endif()
endforeach()
{more}
"""


def run(*command, code=0, **how):
    done = subprocess.run([str(part) for part in command], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=120, check=False, **how)
    if code is not None and done.returncode != code:
        raise AssertionError(f"{command}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


class Tree(unittest.TestCase):
    build = None  # the folder of the build

    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory(prefix="kilokv-install-")))
        first = cls.folder / "first"
        run("cmake", "--install", cls.build, "--prefix", first, "--strip")
        cls.tree = cls.folder / "moved" / "kilokv"  # everything works where the tree is now
        cls.tree.parent.mkdir()
        first.rename(cls.tree)

    def configure(self, source, *flags, code=0):
        folder = self.folder / "build" / source.name
        output = run("cmake", "-S", source, "-B", folder, f"-DCMAKE_PREFIX_PATH={self.tree}", *flags, code=code)
        return folder, output

    def build_example(self, path):
        source = self.folder / "examples" / path.name  # not in the checkout, so that nothing of it is found
        shutil.copytree(path, source)
        folder, _ = self.configure(source, "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Werror")
        run("cmake", "--build", folder)
        return folder / path.name

    def uses(self, name, asks, more="", code=0):
        source = self.folder / "uses" / name
        source.mkdir(parents=True)
        (source / "CMakeLists.txt").write_text(USES.format(asks=asks, more=more))
        return self.configure(source, code=code)

    def test_the_programs_run(self):
        found = {path.name for path in (self.tree / "bin").iterdir()}
        self.assertEqual(found, PROGRAMS)
        for program in sorted(found):
            self.assertRegex(run(self.tree / "bin" / program, "--version"), rf"^{program} \d+\.\d+\.\d+ \(commit ")

    def test_each_component_can_be_installed_alone(self):
        whole = {path.relative_to(self.tree) for path in self.tree.rglob("*") if path.is_file()}
        parts = []
        for component in ("programs", "development"):
            folder = self.folder / component
            run("cmake", "--install", self.build, "--prefix", folder, "--component", component)
            parts.append({path.relative_to(folder) for path in folder.rglob("*") if path.is_file()})
            shutil.rmtree(folder)
        self.assertEqual(parts[0] | parts[1], whole)
        self.assertFalse(parts[0] & parts[1])
        self.assertEqual({path.parts[0] for path in parts[0]}, {"bin", "share"})
        self.assertEqual({path.parts[0] for path in parts[1]}, {"include", "lib", "share"})

    def test_a_project_uses_the_client_library(self):
        example = self.build_example(ROOT / "client" / "examples" / "tickets")
        with temporary_folder() as folder, Server(folder, programs=self.tree / "bin") as server:
            lines = run(example, server.endpoint).splitlines()
            self.assertEqual(lines[-1], "tickets, sold and left: 10")
            outcomes = {line.split()[0]: line.split()[-1] for line in lines[:-1]}
            self.assertEqual(set(outcomes), {"alice", "bob", "carol"})
            # Any two of the purchases of 4, 5 and 3 tickets fit into 10, and all three do not.
            self.assertEqual(sorted(outcomes.values()), ["COMMITTED", "COMMITTED", "GUARD_FAILED"])
            run(example, server.endpoint)  # again, over the data of the first run
        self.assertIn("no server", run(example, "127.0.0.1:1", code=1))

    def test_a_project_builds_the_recipes(self):
        source = self.folder / "recipes" / "client" / "examples"  # the programs include client/examples/example.hpp
        shutil.copytree(ROOT / "client" / "examples", source, ignore=shutil.ignore_patterns("node_modules", "__pycache__"))
        folder, _ = self.configure(source, "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Werror")
        run("cmake", "--build", folder, "--parallel", "2")
        for recipe in ("seats", "payments", "limiter", "inventory", "ids", "jobs"):
            self.assertTrue(run(folder / recipe, "--help").startswith(f"{recipe} [--endpoint HOST:PORT] VERB"))

    def test_a_project_embeds_the_engine(self):
        example = self.build_example(ROOT / "engine" / "examples" / "embedded")
        lines = run(example).splitlines()
        self.assertEqual(lines[-1], "alice 20, bob 20, carol 60")
        self.assertEqual([line.split(": ")[1] for line in lines[-4:-1]], ["committed", "committed", "refused"])

    def test_every_installed_header_can_be_included(self):
        include = self.tree / "include"
        for base, others in ((include, {"kilokv-engine"}), (include / "kilokv-engine", set())):
            headers = sorted(path.relative_to(base) for path in base.rglob("*.hpp")
                             if not others & set(path.relative_to(base).parts))
            self.assertGreaterEqual(len(headers), 7, base)
            text = "".join(f'#include "{header}"\n' for header in headers)
            done = subprocess.run(["c++", "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-I", base, "-x", "c++",
                                   "-"], input=text, capture_output=True, text=True, timeout=60, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)

    def test_nothing_names_the_folders_of_the_build(self):
        texts = [*self.tree.rglob("*.cmake"), *self.tree.rglob("*.hpp")]
        self.assertGreater(len(texts), 10)
        for path in texts:
            text = path.read_text()
            for folder in (ROOT, self.build, self.folder):
                self.assertNotIn(str(folder), text, path)

    def test_the_protocol_is_there(self):
        protocol = self.tree / "share" / "kilokv" / "proto"
        files = sorted(str(path.relative_to(protocol)) for path in protocol.rglob("*") if path.is_file())
        self.assertEqual(files, ["kilokv/v1/activity.proto", "kilokv/v1/columns.proto", "kilokv/v1/kilokv.proto", "kilokv/v1/transaction.proto"])
        out = self.folder / "descriptor"
        run("protoc", f"--proto_path={protocol}", f"--descriptor_set_out={out}", *files)
        self.assertGreater(out.stat().st_size, 0)

    def test_components_and_versions(self):
        _, both = self.uses("both", "REQUIRED")
        self.assertIn("target client", both)
        self.assertIn("target engine", both)
        _, one = self.uses("one", "0.1 REQUIRED COMPONENTS engine")
        self.assertNotIn("target client", one)
        self.assertNotIn("gRPC", (self.folder / "build" / "one" / "CMakeCache.txt").read_text())
        _, unknown = self.uses("unknown", "REQUIRED COMPONENTS engine nonsense", code=1)
        self.assertIn('kilokv has no component "nonsense"', " ".join(unknown.split()))
        _, optional = self.uses("optional", "REQUIRED COMPONENTS engine OPTIONAL_COMPONENTS nonsense")
        self.assertIn("found: TRUE", optional.replace("found: 1", "found: TRUE"))
        _, newer = self.uses("newer", "0.2 REQUIRED", code=1)
        self.assertIn('compatible with requested version "0.2"', " ".join(newer.split()))  # CMake breaks lines


def main():
    parser = argparse.ArgumentParser(description="Tests the tree that cmake --install makes.")
    parser.add_argument("--build", type=pathlib.Path, required=True, help="folder of the build")
    arguments, rest = parser.parse_known_args()
    Tree.build = arguments.build.resolve()
    os.environ.pop("KILOKV_ENDPOINT", None)
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
