"""Builds the package `kilokv`. protoc makes the modules of kilokv/v1 from the protocol of the checkout.

It needs `protoc` and `grpc_python_plugin` (Debian: protobuf-compiler and protobuf-compiler-grpc), or else the Python
package grpcio-tools.
"""

import pathlib
import shutil
import subprocess
import sys

from setuptools import setup
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

HERE = pathlib.Path(__file__).resolve().parent
PROTOS = ("transaction", "columns", "activity", "kilokv")


def proto_folder():
    """The folder with kilokv/v1/*.proto: the copy in a source archive, or that of the checkout."""
    own = HERE / "proto"
    return own if own.is_dir() else HERE.parent.parent / "proto"


def compiler():
    """The command that compiles protocols to Python, as a list."""
    plugin = shutil.which("grpc_python_plugin")
    if shutil.which("protoc") and plugin:
        return ["protoc", f"--plugin=protoc-gen-grpc_python={plugin}"]
    return [sys.executable, "-m", "grpc_tools.protoc"]


def generate(target):
    """Writes the package kilokv.v1 below the folder `target`."""
    protos = proto_folder()
    files = [str(protos / "kilokv" / "v1" / f"{name}.proto") for name in PROTOS]
    command = [*compiler(), f"--proto_path={protos}", f"--python_out={target}"]
    subprocess.run([*command, *files], check=True)
    subprocess.run([*command[:-1], f"--grpc_python_out={target}", files[-1]], check=True)
    (pathlib.Path(target) / "kilokv" / "v1" / "__init__.py").write_text(
        '"""The messages of the protocol, made by protoc. The package kilokv uses them."""\n', encoding="utf-8")


class BuildWithStubs(build_py):
    def run(self):
        shutil.rmtree(self.build_lib, ignore_errors=True)  # an earlier build may have left files that are gone now
        super().run()
        generate(self.build_lib)


class SourcesWithProtocol(sdist):
    def make_release_tree(self, base_dir, files):
        super().make_release_tree(base_dir, files)
        shutil.copytree(proto_folder() / "kilokv" / "v1", pathlib.Path(base_dir) / "proto" / "kilokv" / "v1",
                        dirs_exist_ok=True)


setup(cmdclass={"build_py": BuildWithStubs, "sdist": SourcesWithProtocol})
