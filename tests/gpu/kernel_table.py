#!/usr/bin/env python3
"""What the compiler made of the engine's kernels, without a GPU: registers, shared memory, stack, and the share of a
multiprocessor's threads that can run (occupancy), for each architecture. It reads the machine code in the built library.

Exit codes: 0 good; 1 a kernel has a stack, or machine code is missing; 2 wrong usage, or there is no such library. What
spills is on the stack, too.
"""

import argparse
import glob
import os
import re
import struct
import sys
from typing import NamedTuple

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
LIBRARY = os.path.join(ROOT, "build/release/engine/libkilokv_engine.a")
SOURCES = os.path.join(ROOT, "engine/exec")

WARP_THREADS = 32
REGISTERS, REGISTERS_UNIT = 65536, 256  # of a multiprocessor; a warp's share is rounded up to the unit
THREADS_MAX, BLOCKS_MAX = 2048, 32      # of a multiprocessor
BLOCK_THREADS_MAX = 1024
SHARED_UNIT, SHARED_RESERVED = 128, 1024  # bytes; what is reserved is of each block
# Shared memory of a multiprocessor, in bytes, as the CUDA programming guide tells it for each architecture.
SHARED_BYTES = {"sm_80": 164 * 1024, "sm_90": 228 * 1024}


class Kernel(NamedTuple):
    name: str
    architecture: str
    registers: int
    shared_bytes: int
    stack_bytes: int  # of a thread, in slow memory
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


# Attributes in the sections .nv.info and .nv.info.KERNEL.
MAX_THREADS, FRAME_BYTES, STACK_BYTES, REGISTER_COUNT = 0x05, 0x11, 0x12, 0x2F
SIZED = 4             # the form of an attribute with a size and a value; all others have 4 bytes
NO_BYTES_IN_FILE = 8  # the type of a section
IS_KERNEL = 0x10      # of a symbol


def text_at(data, begin):
    return data[begin:data.index(b"\0", begin)].decode()


def sections(image):
    """Name -> (bytes in the file, size) of the sections of an ELF image."""
    headers_begin, = struct.unpack_from("<Q", image, 40)
    count, names = struct.unpack_from("<HH", image, 60)
    headers = [struct.unpack_from("<IIQQQQ", image, headers_begin + 64 * i) for i in range(count)]
    return {text_at(image, headers[names][4] + name):
            (b"" if kind == NO_BYTES_IN_FILE else image[begin:begin + size], size)
            for name, kind, _, _, begin, size in headers}


def attributes(info):
    """Yields (number, value): the value is of 32-bit words."""
    at = 0
    while at < len(info):
        form, number, size = struct.unpack_from("<BBH", info, at)
        at += 4
        if form == SIZED:
            yield number, struct.unpack_from(f"<{size // 4}I", info, at)
            at += size


def kernels_of(architecture, image):
    """Yields the kernels of an ELF image."""
    found = sections(image)
    # (attribute, index of a symbol) -> number
    told = {(number, value[0]): value[1] for number, value in attributes(found[".nv.info"][0])}
    # Where there is such a section, the size of each block's shared memory contains what is reserved.
    reserved = SHARED_RESERVED if ".nv.shared.reserved.0" in found else 0
    for index, (name, _, other) in enumerate(struct.iter_unpack("<IBB18x", found[".symtab"][0])):
        if other & IS_KERNEL:
            symbol = text_at(found[".strtab"][0], name)
            _, shared = found.get(f".nv.shared.{symbol}", (b"", 0))
            limits = dict(attributes(found[f".nv.info.{symbol}"][0]))
            yield Kernel(short_name(symbol), architecture, told[REGISTER_COUNT, index], max(shared - reserved, 0),
                         max(told[FRAME_BYTES, index], told[STACK_BYTES, index]),
                         limits.get(MAX_THREADS, (BLOCK_THREADS_MAX,))[0])


def declared(folder):
    """The names of the kernels in the sources below a folder."""
    for path in glob.glob(os.path.join(folder, "**/*.cu"), recursive=True):
        with open(path, encoding="utf-8") as file:
            yield from re.findall(r"__global__[^;{]*?\bvoid\s+(\w+)\s*\(", file.read())


def missing(kernels, names, architectures):
    """A line for each kernel and architecture without machine code: a kernel of these names, or one that another
    architecture has."""
    there = {(kernel.name, kernel.architecture) for kernel in kernels}
    for name in sorted({*names, *(kernel.name for kernel in kernels)}):
        for architecture in architectures:
            if (name, architecture) not in there:
                yield f"{name}: no machine code for {architecture}"


def table(kernels):
    columns = ["kernel", "arch", "registers", "shared", "stack", "threads a block", "blocks per SM", "occupancy"]
    rows = [columns, ["---"] + ["---:"] * (len(columns) - 1)]
    for kernel in kernels:
        rows.append([kernel.name, *map(str, kernel[1:]), str(kernel.blocks()), f"{kernel.occupancy():.1%}"])
    widths = [max(len(row[i]) for row in rows) for i in range(len(columns))]
    return "\n".join("| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths)) + " |" for row in rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--architectures", default=",".join(SHARED_BYTES), help="comma-separated (default %(default)s)")
    parser.add_argument("--sources", default=SOURCES, help="folder of the kernels that must be there (default: engine/exec)")
    parser.add_argument("library", nargs="?", default=LIBRARY,
                        help="library, object or program (default: the engine's in build/release)")
    options = parser.parse_args()
    try:
        with open(options.library, "rb") as file:
            data = file.read()
    except OSError as error:
        print(error, file=sys.stderr)
        return 2
    architectures = options.architectures.split(",")
    kernels, problems = [], []
    for architecture, image in machine_code(data):
        if architecture not in architectures:
            continue
        if image is None:
            print(f"the machine code for {architecture} is compressed, so it cannot be read")
            return 1
        kernels += kernels_of(architecture, image)
    kernels.sort()
    print(table(kernels))
    names = set(declared(options.sources))
    if not names:
        problems.append(f"no kernel is in the sources of {options.sources}")
    problems += missing(kernels, names, architectures)
    problems += [f"{kernel.name}: {kernel.stack_bytes} bytes of stack on {kernel.architecture}"
                 for kernel in kernels if kernel.stack_bytes]
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
