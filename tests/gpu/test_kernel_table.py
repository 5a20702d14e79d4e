#!/usr/bin/env python3
"""The table of kernels: what the compiler says is read right, and a kernel that spills, or whose machine code is
missing for one architecture, is found."""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest

import kernel_table
from kernel_table import Kernel, compile_kernels, missing_code, spilling

NVCC = os.environ.get("KILOKV_NVCC") or shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"

FITS = "__global__ __launch_bounds__(256) void fits_kernel(int* out) { out[threadIdx.x] = 1; }\n"
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


class KernelTableTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def source(self, text):
        path = os.path.join(self.folder.name, "planted.cu")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def built(self, text, *architectures):
        """An object with code for these architectures."""
        path = os.path.join(self.folder.name, "planted.o")
        codes = [f"-gencode=arch=compute_{number},code=sm_{number}" for number in architectures]
        subprocess.run([NVCC, *codes, "-c", self.source(text), "-o", path], check=True, capture_output=True)
        return path

    def run_table(self, *arguments):
        return subprocess.run([sys.executable, kernel_table.__file__, "--nvcc", NVCC, *arguments],
                              capture_output=True, text=True, check=False)

    def test_reads_what_the_compiler_says(self):
        text = ("ptxas info    : Compiling entry function '_ZN3one14ordered_kernelE' for 'sm_90'\n"
                "ptxas info    : Function properties for _ZN3one14ordered_kernelE\n"
                "    8 bytes stack frame, 12 bytes spill stores, 16 bytes spill loads\n"
                "ptxas info    : Used 88 registers, used 1 barriers, 512 bytes smem, 400 bytes cmem[0]\n")
        self.assertEqual(list(kernel_table.parse_usage(text, {"_ZN3one14ordered_kernelE": 128})),
                         [Kernel("ordered_kernel", "sm_90", 88, 512, 8, 12, 16, 128)])

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
            return Kernel("a_kernel", architecture, registers, shared, 0, 0, 0, threads).blocks()
        self.assertEqual(blocks(32, 0, 256), 8)     # threads: 2048
        self.assertEqual(blocks(88, 0, 128), 5)     # registers: 88 * 32 = 2816, five warps of them in each quarter
        self.assertEqual(blocks(65, 0, 128), 7)     # 2080 are rounded up to 2304
        self.assertEqual(blocks(16, 0, 32), 32)     # blocks
        self.assertEqual(blocks(16, 40_000, 64), 4)             # shared memory: 164 KiB
        self.assertEqual(blocks(16, 40_000, 64, "sm_90"), 5)    # 228 KiB

    def test_finds_a_kernel_that_spills(self):
        kernels = compile_kernels(NVCC, self.source(FITS + SPILLS), ["sm_90"])
        self.assertEqual([kernel.name for kernel in kernels], ["fits_kernel", "spills_kernel"])
        self.assertEqual([kernel.block_threads for kernel in kernels], [256, 1024])
        self.assertEqual([line.split(":")[0] for line in spilling(kernels)], ["spills_kernel"])

    def test_finds_a_kernel_with_a_stack(self):
        stacks = FITS.replace("out[threadIdx.x] = 1;",
                              "int all[64] = {}; for (int i = 0; i < 64; ++i) all[out[i] & 63] += i; "
                              "out[0] = all[out[64] & 63];")
        done = self.run_table("--architectures", "sm_90", self.source(stacks))
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout, r"fits_kernel: \d+ bytes of stack on sm_90")

    def test_program_fails_on_a_spill(self):
        done = self.run_table("--architectures", "sm_90", self.source(SPILLS))
        self.assertEqual(done.returncode, 1)
        self.assertIn("spills_kernel: spills on sm_90", done.stdout)

    def test_program_fails_where_one_architecture_is_missing(self):
        library = self.built(FITS, 90)
        done = self.run_table("--library", library, self.source(FITS))
        self.assertEqual(done.returncode, 1)
        self.assertIn("fits_kernel: no machine code for sm_80", done.stdout)
        self.assertNotIn("for sm_90", done.stdout)

    def test_program_passes_where_both_are_there(self):
        done = self.run_table("--library", self.built(FITS, 80, 90), self.source(FITS))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_code_of_another_kernel_does_not_count(self):
        with open(self.built(FITS, 80, 90), "rb") as file:
            data = file.read()
        other = Kernel("other_kernel", "sm_80", 16, 0, 0, 0, 0, 128)
        self.assertEqual(list(missing_code(data, [other])), ["other_kernel: no machine code for sm_80"])


if __name__ == "__main__":
    unittest.main()
