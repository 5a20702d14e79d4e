// KILOKV_HOST_DEVICE marks functions that also run on a CUDA device; empty for every other compiler.
#pragma once

#if defined(__CUDACC__)
#define KILOKV_HOST_DEVICE __host__ __device__
#else
#define KILOKV_HOST_DEVICE
#endif
