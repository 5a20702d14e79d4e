// The kernels of the roofline. Each gets the memory that it works on, and a permutation that says in which order.
#pragma once

#include <cooperative_groups.h>

#include <cstdint>

namespace kilokv::engine::bench {

// It has the size of the engine's records in device memory.
struct alignas(32) RooflineRecord {
  unsigned long long words[4];
};

// A permutation of the numbers below 2^bits. It is one because each step can be undone.
struct Permutation {
  std::uint32_t bits;
  std::uint64_t key;

  __device__ std::uint64_t operator()(std::uint64_t i) const {
    const std::uint64_t mask = (std::uint64_t{1} << bits) - 1;
    const std::uint32_t half = (bits + 1) / 2;
    i = (i ^ key) & mask;
    i = (i * 0x9E37'79B9'7F4A'7C15) & mask;
    i ^= i >> half;
    i = (i * 0xBF58'476D'1CE4'E5B9) & mask;
    i ^= i >> half;
    i = (i * 0x94D0'49BB'1331'11EB) & mask;
    return i ^ (i >> half);
  }
};

// Calls `visit` with each number below 2^bits, spread over the grid.
template <class Visit>
__device__ void visit_all(Permutation order, Visit visit) {
  const std::uint64_t end = std::uint64_t{1} << order.bits;
  const std::uint64_t stride = std::uint64_t{gridDim.x} * blockDim.x;
#pragma unroll 4
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < end; i += stride) visit(order(i));
}

// Keeps the reads: the compiler cannot remove them, because it cannot know that this store never happens.
__device__ inline void keep(unsigned long long read, unsigned long long* sink) {
  if (read == 0x1BAD'5EED'1BAD'5EED) *sink = read;
}

__global__ void read_kernel(const RooflineRecord* table, Permutation order, unsigned long long* sink) {
  unsigned long long read = 0;
  visit_all(order, [&](std::uint64_t i) {
    const auto* const halves = reinterpret_cast<const ulonglong2*>(table + i);
    const ulonglong2 low = halves[0], high = halves[1];
    read ^= low.x ^ low.y ^ high.x ^ high.y;
  });
  keep(read, sink);
}

__global__ void update_kernel(RooflineRecord* table, Permutation order) {
  visit_all(order, [&](std::uint64_t i) {
    auto* const halves = reinterpret_cast<ulonglong2*>(table + i);
    const ulonglong2 low = halves[0], high = halves[1];
    halves[0] = {low.x, low.y + high.x};
    halves[1] = {high.x + 1, high.y + low.x};
  });
}

// `spread` 0: all accesses go to the first record.
__global__ void compare_exchange_kernel(RooflineRecord* table, Permutation order, std::uint64_t spread,
                                        unsigned long long* sink) {
  unsigned long long read = 0;
  visit_all(order, [&](std::uint64_t i) { read ^= atomicCAS(&table[i * spread].words[0], 0ull, i); });
  keep(read, sink);
}
// The old values are not used.
__global__ void minimum_kernel(RooflineRecord* table, Permutation order, std::uint64_t spread) {
  visit_all(order, [&](std::uint64_t i) { atomicMin(&table[i * spread].words[1], i); });
}

__global__ void empty_kernel() {}

__global__ void grid_barrier_kernel(std::uint32_t barriers) {
  for (std::uint32_t i = 0; i < barriers; ++i) cooperative_groups::this_grid().sync();
}

}  // namespace kilokv::engine::bench
