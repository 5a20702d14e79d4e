// KILOKV_HOST_DEVICE marks functions that also run on a CUDA device. For every compiler but nvcc it is empty.
#pragma once

#if defined(__CUDACC__)
#define KILOKV_HOST_DEVICE __host__ __device__
#else
#define KILOKV_HOST_DEVICE
#endif
