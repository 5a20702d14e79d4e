// kilokv-cluster-check: checks whether the memory that the blocks of a cluster share works on this device as `local`
// expects (engine/platform/cuda.cuh, CudaClusterPlatform). It checks stores, atomics and plain data in the memory of
// another block, grid barriers in a cooperative launch of clusters, and a lock. It knows nothing of strategies. If it
// passes, and `local` with a stage in several blocks fails, the strategy is wrong. If it fails, the platform is wrong.
//
// It prints one line for each size of a cluster. Exit codes: 0: everything is right, or the device has no clusters. 1:
// something is wrong.
#include <cuda_runtime.h>

#include <array>
#include <cstdint>
#include <cstdio>

#include "engine/platform/cuda.cuh"

namespace kilokv::engine {
namespace {

constexpr std::uint32_t kBlockThreads = 256, kWords = 4096, kRows = 64, kRounds = 20;
constexpr std::uint32_t kLockWord = 2000, kGuardedWord = 2001;
constexpr std::uint64_t kSpinsMax = 50'000'000;

// Each counts how often something was wrong, except `counted` and `expected`: these are the increments that the lock
// guarded.
enum Finding : std::uint32_t { kNotZero, kNotPut, kBitMissing, kBitLeft, kStuck, kCounted, kExpected, kFindings };

using P = CudaClusterPlatform;

__device__ void find(std::uint64_t* findings, Finding finding, std::uint64_t count = 1) {
  atomicAdd(reinterpret_cast<unsigned long long*>(findings + finding), static_cast<unsigned long long>(count));
}

// The word of a row that belongs to a group. Rows are spread over the blocks, as those of the stage are.
__device__ std::uint64_t* row_word(P& p, std::uint32_t row, std::uint32_t blocks, std::uint32_t group) {
  return p.block_words(row % blocks) + 1 + (row / blocks) * (p.threads() / P::kGroupWidth) + group;
}

__device__ void check_words(P& p, std::uint64_t* findings, std::uint32_t blocks) {
  for (std::uint32_t i = p.thread(); i < blocks * kWords; i += p.threads()) {
    p.store(p.block_words(i % blocks) + i / blocks, 0, Order::relaxed, Scope::cluster);
  }
  p.grid_barrier();
  for (std::uint32_t i = p.thread(); i < blocks * kWords; i += p.threads()) {
    const std::uint32_t other = blocks * kWords - 1 - i;
    if (p.load(p.block_words(other % blocks) + other / blocks, Order::relaxed, Scope::cluster) != 0) {
      find(findings, kNotZero);
    }
  }
  p.grid_barrier();
  for (std::uint32_t i = p.thread(); i < kWords; i += p.threads()) p.put(p.block_words(i % blocks) + i / blocks, 1 + i);
  p.grid_barrier();
  for (std::uint32_t i = p.thread(); i < kWords; i += p.threads()) {
    const std::uint32_t other = kWords - 1 - i;
    if (p.get(p.block_words(other % blocks) + other / blocks) != 1 + other) find(findings, kNotPut);
  }
  p.grid_barrier();
  for (std::uint32_t i = p.thread(); i < kWords; i += p.threads()) p.put(p.block_words(i % blocks) + i / blocks, 0);
  p.grid_barrier();
}

// Each thread sets its bit in each row, and takes it back, as claims of the stage do.
__device__ void check_bits(P& p, std::uint64_t* findings, std::uint32_t blocks) {
  const std::uint64_t mine = std::uint64_t{1} << p.lane();
  for (std::uint32_t row = 0; row < kRows; ++row) {
    p.fetch_or(row_word(p, row, blocks, p.group()), mine, Order::relaxed, Scope::cluster);
  }
  p.grid_barrier();
  for (std::uint32_t row = 0; row < kRows; ++row) {
    const std::uint64_t seen = p.load(row_word(p, row, blocks, p.group()), Order::acquire, Scope::cluster);
    if (seen != 0xFFFF'FFFF) find(findings, kBitMissing);
  }
  p.grid_barrier();
  for (std::uint32_t row = 0; row < kRows; ++row) {
    p.fetch_add(row_word(p, row, blocks, p.group()), ~mine + 1, Order::release, Scope::cluster);
  }
  p.grid_barrier();
  for (std::uint32_t row = 0; row < kRows; ++row) {
    if (p.load(row_word(p, row, blocks, p.group()), Order::acquire, Scope::cluster) != 0) find(findings, kBitLeft);
  }
  p.grid_barrier();
}

// A lock in the memory of the last block guards plain data in that of the first.
__device__ void check_lock(P& p, std::uint64_t* findings, std::uint32_t blocks) {
  std::uint64_t* const lock = p.block_words(blocks - 1) + kLockWord;
  std::uint64_t* const guarded = p.block_words(0) + kGuardedWord;
  std::uint64_t spins = 0;
  for (std::uint32_t turn = 0; turn < kRounds * P::kGroupWidth && spins < kSpinsMax; ++turn) {
    if (p.lane() == turn % P::kGroupWidth) {
      while (p.compare_exchange(lock, 0, p.thread() + 1, Order::acquire, Scope::cluster) != 0 && ++spins < kSpinsMax) {
        p.pause();
      }
      if (spins < kSpinsMax) {
        p.put(guarded, p.get(guarded) + 1);
        p.store(lock, 0, Order::release, Scope::cluster);
      }
    }
    p.group_barrier();
  }
  if (spins >= kSpinsMax) find(findings, kStuck);
  p.grid_barrier();
  if (p.thread() == 0) {
    find(findings, kCounted, p.get(guarded));
    find(findings, kExpected, std::uint64_t{p.threads()} * kRounds);
  }
}

__global__ __launch_bounds__(kBlockThreads, 1) void cluster_check_kernel(std::uint64_t* findings,
                                                                         std::uint32_t blocks) {
  if constexpr (P::kIsThere) {
    P p;
    p.cluster_barrier();
    check_words(p, findings, blocks);
    check_bits(p, findings, blocks);
    check_lock(p, findings, blocks);
    p.cluster_barrier();
  }
}

cudaError_t launch(std::uint64_t* findings, std::uint32_t blocks) {
  constexpr std::size_t kSharedBytes = kWords * sizeof(std::uint64_t);
  cudaLaunchAttribute attributes[2]{};
  attributes[0].id = cudaLaunchAttributeClusterDimension;
  attributes[0].val.clusterDim.x = blocks;
  attributes[0].val.clusterDim.y = attributes[0].val.clusterDim.z = 1;
  attributes[1].id = cudaLaunchAttributeCooperative;
  attributes[1].val.cooperative = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(blocks);
  config.blockDim = dim3(kBlockThreads);
  config.dynamicSmemBytes = kSharedBytes;
  config.attrs = attributes;
  config.numAttrs = 2;
  return cudaLaunchKernelEx(&config, cluster_check_kernel, findings, blocks);
}

// Whether everything is right in clusters of this many blocks.
bool check(std::uint32_t blocks) {
  std::array<std::uint64_t, kFindings> found{};
  std::uint64_t* findings = nullptr;
  cudaError_t error = cudaMalloc(&findings, sizeof found);
  if (error == cudaSuccess) error = cudaMemset(findings, 0, sizeof found);
  if (error == cudaSuccess) error = launch(findings, blocks);
  if (error == cudaSuccess) error = cudaDeviceSynchronize();
  if (error == cudaSuccess) error = cudaMemcpy(found.data(), findings, sizeof found, cudaMemcpyDeviceToHost);
  static_cast<void>(cudaFree(findings));
  if (error != cudaSuccess) {
    std::printf("clusters of %u blocks: %s\n", blocks, cudaGetErrorString(error));
    return false;
  }
  const bool is_right = found[kNotZero] + found[kNotPut] + found[kBitMissing] + found[kBitLeft] + found[kStuck] == 0 &&
                        found[kExpected] != 0 && found[kCounted] == found[kExpected];
  std::printf(
      "clusters of %u blocks: %s; words not zero %llu, with another value than was put %llu; bits missing %llu, left "
      "over %llu; additions under the lock %llu of %llu, threads stuck %llu\n",
      blocks, is_right ? "right" : "WRONG", static_cast<unsigned long long>(found[kNotZero]),
      static_cast<unsigned long long>(found[kNotPut]), static_cast<unsigned long long>(found[kBitMissing]),
      static_cast<unsigned long long>(found[kBitLeft]), static_cast<unsigned long long>(found[kCounted]),
      static_cast<unsigned long long>(found[kExpected]), static_cast<unsigned long long>(found[kStuck]));
  return is_right;
}

int run() {
  int has_clusters = 0;
  const cudaError_t error = cudaDeviceGetAttribute(&has_clusters, cudaDevAttrClusterLaunch, 0);
  if (error != cudaSuccess) {
    std::printf("no CUDA device: %s\n", cudaGetErrorString(error));
    return 1;
  }
  if (has_clusters == 0) {
    std::printf("the device has no clusters of blocks\n");
    return 0;
  }
  bool is_right = true;
  for (const std::uint32_t blocks : {1u, 2u, 4u, 8u}) is_right &= check(blocks);
  return is_right ? 0 : 1;
}

}  // namespace
}  // namespace kilokv::engine

int main() { return kilokv::engine::run(); }
