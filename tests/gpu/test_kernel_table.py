#!/usr/bin/env python3
"""The table of kernels: what is read of machine code is what the compiler says, and a kernel that spills, or whose
machine code is missing for one architecture, is found."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import kernel_table
from kernel_table import Kernel

NVCC = os.environ.get("KILOKV_NVCC") or shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
AGAIN = os.path.join(kernel_table.ROOT, "cmake", "again_after_crash.sh")  # the compiler of kernels crashes at times

FITS = "__global__ __launch_bounds__(256) void fits_kernel(int* out) { out[threadIdx.x] = 1; }\n"
SHARES = """
__global__ void shares_kernel(int* out) {
  __shared__ int all[100];
  all[threadIdx.x] = out[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = all[99 - threadIdx.x];
}
"""
# 1024 threads that each keep 128 words in registers, of which there are 64 a thread.
SPILLS = """
__global__ __launch_bounds__(1024) void spills_kernel(float* data) {
  float kept[128];
#pragma unroll
  for (int i = 0; i < 128; ++i) kept[i] = data[i * 1024 + threadIdx.x];
  __syncthreads();
#pragma unroll
  for (int i = 0; i < 128; ++i) data[((i * 37) % 128) * 1024 + threadIdx.x] = kept[i] * kept[127 - i];
}
"""
STACKS = """
__device__ __noinline__ int called(const int* from) {
  int all[64] = {};
  for (int i = 0; i < 64; ++i) all[from[i] & 63] += i;
  return all[from[64] & 63];
}
__global__ void stacks_kernel(int* out) { out[0] = called(out); }
"""
BOTH = "80", "90"


def what_the_compiler_says(text):
    """(kernel, architecture) -> (registers, bytes of shared memory, bytes of stack, whether it spills)"""
    entries = re.finditer(r"entry function '(\w+)' for '(sm_\d+)'.*?(\d+) bytes stack frame, (\d+) bytes spill stores"
                          r".*?Used (\d+) registers([^\n]*)", text, re.DOTALL)
    return {(kernel_table.short_name(entry[1]), entry[2]): (
        int(entry[5]), int((re.findall(r"(\d+) bytes smem", entry[6]) or [0])[0]), int(entry[3]), entry[4] != "0")
        for entry in entries}


class KernelTableTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name
        cls.bad, cls.says_of_bad = cls.built("bad", SHARES + SPILLS + STACKS, *BOTH)
        cls.good, _ = cls.built("good", FITS, *BOTH)

    @classmethod
    def built(cls, name, text, *architectures, flags=()):
        """(an object with code for these architectures, what the compiler says); its source is in a folder alone"""
        folder = os.path.join(cls.folder, name)
        os.mkdir(folder)
        source, path = os.path.join(folder, "planted.cu"), os.path.join(folder, "planted.o")
        with open(source, "w", encoding="utf-8") as file:
            file.write(text)
        codes = [f"-gencode=arch=compute_{number},code=sm_{number}" for number in architectures]
        done = subprocess.run([AGAIN, NVCC, "-Xptxas=-v", *flags, *codes, "-c", source, "-o", path], check=True,
                              capture_output=True, text=True)
        return path, done.stdout + done.stderr

    def table(self, library, *arguments, sources=None):
        """(exit code, the rows, the problems)"""
        done = subprocess.run([sys.executable, kernel_table.__file__, "--sources", sources or os.path.dirname(library),
                               *arguments, library], capture_output=True, text=True, check=False)
        self.assertEqual(done.stderr, "")
        lines = done.stdout.splitlines()
        rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines if line.startswith("|")]
        return done.returncode, rows[2:], [line for line in lines if not line.startswith("|")]

    def test_short_name_behind_a_hash_that_ends_in_digits(self):
        self.assertEqual(kernel_table.short_name("_ZN6kilokv48_GLOBAL__N__9f_cu_9e32922014ordered_kernelENS0_E"),
                         "ordered_kernel")

    def test_short_name_where_more_than_one_length_fits(self):
        # The hash ends in 1, and 18 characters from there end in _kernel, too.
        self.assertEqual(kernel_table.short_name("_ZN6kilokv21_GLOBAL__N__9f_cu_9e18a_kernelE_a_kernelS0_E"), "a_kernel")
        # The first hash ends in 16a, and 16 characters from there end within the name of the file.
        self.assertEqual(
            kernel_table.short_name("_ZN6kilokv45_GLOBAL__N__0f9e416a_15_cuda_kernels_cu_9e32922014ordered_kernelENS0_E"),
            "ordered_kernel")

    def test_short_name_of_another_symbol(self):
        self.assertEqual(kernel_table.short_name("_ZN6kilokv3oneE"), "_ZN6kilokv3oneE")

    def test_occupancy(self):
        def blocks(registers, shared, threads, architecture="sm_80"):
            return Kernel("a_kernel", architecture, registers, shared, 0, threads).blocks()
        self.assertEqual(blocks(32, 0, 256), 8)     # threads: 2048
        self.assertEqual(blocks(88, 0, 128), 5)     # registers: 88 * 32 = 2816, five warps of them in each quarter
        self.assertEqual(blocks(65, 0, 128), 7)     # 2080 are rounded up to 2304
        self.assertEqual(blocks(16, 0, 32), 32)     # blocks
        self.assertEqual(blocks(16, 40_000, 64), 4)             # shared memory: 164 KiB
        self.assertEqual(blocks(16, 40_000, 64, "sm_90"), 5)    # 228 KiB

    def test_reads_what_the_compiler_says(self):
        says = what_the_compiler_says(self.says_of_bad)
        self.assertEqual(len(says), 6, self.says_of_bad)
        _, rows, _ = self.table(self.bad)
        self.assertEqual({(row[0], row[1]): (*map(int, row[2:5]), row[0] == "spills_kernel") for row in rows}, says)
        for architecture in "sm_80", "sm_90":
            self.assertEqual(says["shares_kernel", architecture][1], 400)
        self.assertEqual({row[0]: row[5] for row in rows},
                         {"shares_kernel": "1024", "spills_kernel": "1024", "stacks_kernel": "1024"})

    def test_finds_a_kernel_that_spills_and_one_with_a_stack(self):
        code, _, problems = self.table(self.bad)
        self.assertEqual(code, 1)
        self.assertEqual([re.sub(r"[1-9]\d* bytes", "N bytes", line) for line in problems],
                         [f"{name}: N bytes of stack on {architecture}" for name in ("spills_kernel", "stacks_kernel")
                          for architecture in ("sm_80", "sm_90")])

    def test_passes_where_both_are_there(self):
        code, rows, problems = self.table(self.good)
        self.assertEqual((code, problems), (0, []))
        self.assertEqual([(row[0], row[1], row[5]) for row in rows],
                         [("fits_kernel", "sm_80", "256"), ("fits_kernel", "sm_90", "256")])

    def test_finds_a_kernel_without_code_for_one_architecture(self):
        one, _ = self.built("one", FITS.replace("fits", "one"), "90")
        self.assertEqual(self.table(one)[::2], (1, ["one_kernel: no machine code for sm_80"]))
        # A library, with a kernel that the sources do not name.
        library = os.path.join(self.folder, "both.a")
        with open(library, "wb") as file:
            for path in one, self.good:
                with open(path, "rb") as part:
                    file.write(part.read())
        self.assertEqual(self.table(library, sources=os.path.dirname(self.good))[::2],
                         (1, ["one_kernel: no machine code for sm_80"]))
        code, rows, _ = self.table(library, "--architectures", "sm_90", sources=os.path.dirname(self.good))
        self.assertEqual((code, [row[:2] for row in rows]), (0, [["fits_kernel", "sm_90"], ["one_kernel", "sm_90"]]))

    def test_finds_a_kernel_that_the_library_lacks(self):
        code, _, problems = self.table(self.good, sources=os.path.dirname(self.bad))
        self.assertEqual(code, 1)
        self.assertEqual(problems, [f"{name}: no machine code for {architecture}"
                                    for name in ("shares_kernel", "spills_kernel", "stacks_kernel")
                                    for architecture in ("sm_80", "sm_90")])

    def test_sources_without_a_kernel_are_a_problem(self):
        empty = os.path.join(self.folder, "empty")
        os.mkdir(empty)
        self.assertEqual(self.table(self.good, sources=empty)[::2], (1, [f"no kernel is in the sources of {empty}"]))

    def test_compressed_code_is_a_problem(self):
        packed, _ = self.built("packed", FITS + SHARES + SPILLS, "90", flags=["-Xfatbin=-compress-all"])
        self.assertEqual(self.table(packed), (1, [], ["the machine code for sm_90 is compressed, so it cannot be read"]))

    def test_names_of_the_kernels_in_the_sources(self):
        names = set(kernel_table.declared(kernel_table.SOURCES))
        self.assertLessEqual({"ordered_kernel", "local_cluster_kernel", "bulk_kernel"}, names)
        self.assertEqual({name for name in names if not name.endswith("_kernel")}, set())


if __name__ == "__main__":
    unittest.main()
