#!/usr/bin/env python3
"""What the compiler makes of the engine's kernels, for each architecture, without a GPU: registers, shared memory,
stack, spills, and the share of a multiprocessor's threads that can run (occupancy). With --library: whether the built
library has machine code of each kernel for each of them.

Compiles the sources of engine/exec once more, as the build does, into a folder that is removed. Exit codes: 0 good; 1 a
kernel spills or has a stack, or machine code is missing; 2 wrong usage, or the sources do not compile.
"""

import argparse
import glob
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
from typing import NamedTuple

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
AGAIN = os.path.join(ROOT, "cmake", "again_after_crash.sh")  # the compiler of kernels crashes at times

WARP_THREADS = 32
REGISTERS, REGISTERS_UNIT = 65536, 256  # of a multiprocessor; a warp's share is rounded up to the unit
THREADS_MAX, BLOCKS_MAX = 2048, 32      # of a multiprocessor
SHARED_UNIT, SHARED_RESERVED = 128, 1024  # bytes; what is reserved is of each block
# Shared memory of a multiprocessor, in bytes, as the CUDA programming guide tells it for each architecture.
SHARED_BYTES = {"sm_80": 164 * 1024, "sm_90": 228 * 1024}


class Kernel(NamedTuple):
    name: str
    architecture: str
    registers: int
    shared_bytes: int
    stack_bytes: int   # of a thread, in slow memory
    spill_stores: int  # bytes
    spill_loads: int   # bytes
    block_threads: int

    def blocks(self):
        """Blocks that a multiprocessor runs at once."""
        warps = -(-self.block_threads // WARP_THREADS)
        warp_registers = -(-self.registers * WARP_THREADS // REGISTERS_UNIT) * REGISTERS_UNIT
        # Each quarter of a multiprocessor has registers of its own.
        warps_by_registers = REGISTERS // 4 // warp_registers * 4
        block_shared = -(-self.shared_bytes // SHARED_UNIT) * SHARED_UNIT + SHARED_RESERVED
        return min(warps_by_registers // warps, THREADS_MAX // (warps * WARP_THREADS), BLOCKS_MAX,
                   SHARED_BYTES[self.architecture] // block_shared)

    def occupancy(self):
        return self.blocks() * self.block_threads / THREADS_MAX


def short_name(symbol):
    """_ZN...14ordered_kernelE... -> ordered_kernel: the last name that has the length that stands before it."""
    found = symbol
    for match in re.finditer(r"\d+", symbol):
        # The digits of a hash may stand before those of the length, and digits within a hash may look like a length.
        for start in range(match.start(), match.end()):
            length = int(symbol[start:match.end()])
            name = symbol[match.end():match.end() + length]
            if len(name) == length and re.fullmatch(r"[A-Za-z]\w*_kernel", name):
                found = name
    return found


def block_threads(ptx):
    """Symbol -> threads of a block, of those kernels that tell them."""
    return {match[1]: int(match[2])
            for match in re.finditer(r"\.entry\s+(\w+)[^{]*?\.maxntid\s+(\d+)", ptx, re.DOTALL)}


def parse_usage(text, threads):
    """The kernels that `ptxas -v` told of."""
    entry = re.compile(
        r"Compiling entry function '(\w+)' for '(sm_\d+)'"
        r".*?(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads"
        r".*?Used (\d+) registers([^\n]*)", re.DOTALL)
    for match in entry.finditer(text):
        shared = re.search(r"(\d+) bytes smem", match[7])
        yield Kernel(short_name(match[1]), match[2], int(match[6]), int(shared[1]) if shared else 0, int(match[3]),
                     int(match[4]), int(match[5]), threads.get(match[1], 1024))


def compile_kernels(nvcc, source, architectures):
    """The kernels of a source. Raises CalledProcessError."""
    with tempfile.TemporaryDirectory() as folder:
        command = [AGAIN, nvcc, "-std=c++20", "-O3", "-DNDEBUG", "--expt-relaxed-constexpr", f"-I{ROOT}", "-Xptxas=-v",
                   "--keep", f"--keep-dir={folder}", "--threads=2", "-c", source, "-o", os.path.join(folder, "out.o")]
        for architecture in architectures:
            command.append(f"-gencode=arch={architecture.replace('sm_', 'compute_')},code={architecture}")
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        threads = {}
        for path in glob.glob(os.path.join(folder, "*.ptx")):
            with open(path, encoding="utf-8") as file:
                threads.update(block_threads(file.read()))
        return sorted(parse_usage(done.stdout + done.stderr, threads))


FATBIN_MAGIC = struct.pack("<IHH", 0xBA55ED50, 1, 16)  # magic, version, bytes of the header
FATBIN_ELF = 2                                         # the kind of an entry that is machine code


def machine_code(data):
    """Yields (architecture, ELF image) of the device code that is embedded in a library, an object or a program. The
    image is None where it is compressed."""
    begin = data.find(FATBIN_MAGIC)
    while begin >= 0:
        entry = begin + 16
        end = entry + struct.unpack_from("<Q", data, begin + 8)[0]
        while entry + 64 <= min(end, len(data)):
            kind, _, header_bytes, payload_bytes = struct.unpack_from("<HHIQ", data, entry)
            if header_bytes < 64:
                break
            if kind == FATBIN_ELF:
                image = data[entry + header_bytes:entry + header_bytes + payload_bytes]
                architecture = struct.unpack_from("<I", data, entry + 28)[0]
                yield f"sm_{architecture}", image if image.startswith(b"\x7fELF") else None
            entry += header_bytes + payload_bytes
        begin = data.find(FATBIN_MAGIC, begin + 1)


def missing_code(data, kernels):
    """A line for each kernel that the library has no machine code of."""
    images = list(machine_code(data))
    for kernel in kernels:
        of_architecture = [image for architecture, image in images if architecture == kernel.architecture]
        if None in of_architecture:
            yield f"code for {kernel.architecture} is compressed: whether {kernel.name} is in it cannot be seen"
        elif not any(kernel.name.encode() in image for image in of_architecture):
            yield f"{kernel.name}: no machine code for {kernel.architecture}"


def spilling(kernels):
    """A line for each kernel that spills, or whose variables are not in registers."""
    for kernel in kernels:
        if kernel.spill_stores or kernel.spill_loads:
            yield (f"{kernel.name}: spills on {kernel.architecture}: {kernel.spill_stores} bytes of stores, "
                   f"{kernel.spill_loads} of loads")
        elif kernel.stack_bytes:
            yield f"{kernel.name}: {kernel.stack_bytes} bytes of stack on {kernel.architecture}"


def table(kernels):
    columns = ["kernel", "arch", "registers", "shared", "stack", "spill stores", "spill loads", "threads a block",
               "blocks per SM", "occupancy"]
    rows = [columns, ["---"] + ["---:"] * (len(columns) - 1)]
    for kernel in kernels:
        rows.append([kernel.name, *map(str, kernel[1:]), str(kernel.blocks()), f"{kernel.occupancy():.1%}"])
    widths = [max(len(row[i]) for row in rows) for i in range(len(columns))]
    return "\n".join("| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths)) + " |" for row in rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--nvcc", default=shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc", help="the compiler")
    parser.add_argument("--architectures", default=",".join(SHARED_BYTES), help="comma-separated (default %(default)s)")
    parser.add_argument("--library", help="built library, object or program that must have code of all kernels")
    parser.add_argument("sources", nargs="*", default=sorted(glob.glob(os.path.join(ROOT, "engine/exec/**/*.cu"), recursive=True)),
                        help="default: those of engine/exec")
    options = parser.parse_args()
    kernels = []
    for source in options.sources:
        try:
            kernels += compile_kernels(options.nvcc, source, options.architectures.split(","))
        except (OSError, subprocess.CalledProcessError) as error:
            print(f"{source}: {error}\n{getattr(error, 'stderr', '')}", file=sys.stderr)
            return 2
    print(table(kernels))
    problems = list(spilling(kernels)) if kernels else ["no kernel was found"]
    if options.library:
        with open(options.library, "rb") as file:
            problems += missing_code(file.read(), kernels)
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
