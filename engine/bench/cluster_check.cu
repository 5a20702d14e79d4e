// kilokv-cluster-check: checks whether the memory that the blocks of a cluster share works on this device as `local`
// expects (engine/platform/cuda.cuh, CudaClusterPlatform). It checks stores, atomics and plain data in the memory of
// another block, grid barriers in a cooperative launch of clusters, a lock, and the order of a claim and the look at
// the claims of others. It knows nothing of strategies. If it fails, the platform is wrong. If it passes, and `local`
// with a stage in several blocks fails, then the cause is most likely elsewhere.
//
// As `local` does, it runs one cluster, two, and as many as run at once, with little shared memory and with the most
// that a block can have. All clusters check their own memory at the same time. In a further run, only the first one
// does, and the others only come to the grid barriers.
//
// It prints one line for each run. Exit codes: 0: everything is right, or the device has no clusters. 1: something is
// wrong.
#include <cuda_runtime.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>

#include "engine/platform/cuda.cuh"

namespace kilokv::engine {
namespace {

constexpr std::uint32_t kBlockThreads = 256, kWordsMin = 4096, kRows = 64, kRounds = 20;
// Where the words of each check begin, in each block. The rows come first.
constexpr std::uint32_t kLockWord = 2000, kGuardedWord = 2001, kClaimWords = 2100, kSeenWords = 2400;
constexpr std::uint32_t kClaims = 64, kClaimRounds = 50;  // claims are the bits of a word
constexpr std::uint64_t kSpinsMax = 50'000'000;

// Each counts how often something was wrong, except `counted` and `expected`: these are the increments that the lock
// guarded.
enum Finding : std::uint32_t {
  kNotZero,
  kNotPut,
  kBitMissing,
  kBitLeft,
  kStuck,
  kNotSeen,
  kCounted,
  kExpected,
  kFindings
};

using P = CudaClusterPlatform;

struct Shape {
  std::uint32_t blocks = 1;    // of a cluster
  std::uint32_t clusters = 1;  // of the launch
  std::uint32_t words = kWordsMin;
  bool first_only = false;  // only the first cluster uses its memory
};

// A thread among those of its cluster.
struct Place {
  std::uint32_t thread, threads, group;
  bool is_active;  // else it only comes to the barriers

  __device__ Place(const P& p, const Shape& shape)
      : thread(p.thread() % (shape.blocks * kBlockThreads)),
        threads(shape.blocks * kBlockThreads),
        group(thread / P::kGroupWidth),
        is_active(!shape.first_only || p.thread() < threads) {}
  // Where this thread's part of `count` items begins.
  __device__ std::uint32_t begin(std::uint32_t count) const { return is_active ? thread : count; }
};

__device__ void find(std::uint64_t* findings, Finding finding, std::uint64_t count = 1) {
  atomicAdd(reinterpret_cast<unsigned long long*>(findings + finding), static_cast<unsigned long long>(count));
}

// Word i of the cluster. Words are spread over the blocks.
__device__ std::uint64_t* word_of(P& p, const Shape& shape, std::uint32_t i) {
  return p.block_words(i % shape.blocks) + i / shape.blocks;
}

// The word of a row that belongs to a group. Rows are spread over the blocks, as those of the stage are.
__device__ std::uint64_t* row_word(P& p, const Shape& shape, std::uint32_t row, const Place& at) {
  return p.block_words(row % shape.blocks) + 1 + (row / shape.blocks) * (at.threads / P::kGroupWidth) + at.group;
}

__device__ void check_words(P& p, std::uint64_t* findings, const Shape& shape, const Place& at) {
  const std::uint32_t count = shape.blocks * shape.words;
  for (std::uint32_t i = at.begin(count); i < count; i += at.threads) {
    p.store(word_of(p, shape, i), 0, Order::relaxed, Scope::cluster);
  }
  p.grid_barrier();
  for (std::uint32_t i = at.begin(count); i < count; i += at.threads) {
    if (p.load(word_of(p, shape, count - 1 - i), Order::relaxed, Scope::cluster) != 0) find(findings, kNotZero);
  }
  p.grid_barrier();
  for (std::uint32_t i = at.begin(count); i < count; i += at.threads) p.put(word_of(p, shape, i), 1 + i);
  p.grid_barrier();
  for (std::uint32_t i = at.begin(count); i < count; i += at.threads) {
    const std::uint32_t other = count - 1 - i;
    if (p.get(word_of(p, shape, other)) != 1 + other) find(findings, kNotPut);
  }
  p.grid_barrier();
  for (std::uint32_t i = at.begin(count); i < count; i += at.threads) p.put(word_of(p, shape, i), 0);
  p.grid_barrier();
}

// Each thread adds its bit to each row, and takes it back, as claims of the stage do.
__device__ void check_bits(P& p, std::uint64_t* findings, const Shape& shape, const Place& at) {
  const std::uint64_t mine = std::uint64_t{1} << p.lane();
  for (std::uint32_t row = at.is_active ? 0 : kRows; row < kRows; ++row) {
    const std::uint64_t before = p.fetch_add(row_word(p, shape, row, at), mine, Order::relaxed, Scope::cluster);
    // One lane came after the other: each saw another number of bits, and did not see its own.
    const bool each_saw_others = p.sum(std::uint64_t{1} << __popcll(before)) == 0xFFFF'FFFF;
    if (!each_saw_others || (before & mine) != 0) find(findings, kBitMissing);
  }
  p.grid_barrier();
  for (std::uint32_t row = at.is_active ? 0 : kRows; row < kRows; ++row) {
    const std::uint64_t seen = p.load(row_word(p, shape, row, at), Order::acquire, Scope::cluster);
    if (seen != 0xFFFF'FFFF) find(findings, kBitMissing);
  }
  p.grid_barrier();
  for (std::uint32_t row = at.is_active ? 0 : kRows; row < kRows; ++row) {
    p.fetch_add(row_word(p, shape, row, at), ~mine + 1, Order::release, Scope::cluster);
  }
  p.grid_barrier();
  for (std::uint32_t row = at.is_active ? 0 : kRows; row < kRows; ++row) {
    if (p.load(row_word(p, shape, row, at), Order::acquire, Scope::cluster) != 0) find(findings, kBitLeft);
  }
  p.grid_barrier();
}

// The word of a thread in the check of claims. Those of two partners are in different blocks of a cluster.
__device__ std::uint64_t* claim_word(P& p, const Shape& shape, std::uint32_t first, std::uint32_t thread,
                                     const Place& at) {
  const std::uint32_t shift = thread < at.threads / 2 ? 0 : 1;
  return p.block_words((thread + shift) % shape.blocks) + first + thread / shape.blocks;
}

// Two threads of different groups, and of different blocks of a larger cluster, claim at the same time, and each looks
// for the claim of the other. At least one of them must see it ("store buffering"). A claim is a bit, which is set by
// fetch_add(). A sequential fence and a load follow, as in the stage. There are no barriers between claims: a thread
// waits only for the claim before.
__device__ void check_claims(P& p, std::uint64_t* findings, const Shape& shape, const Place& at) {
  const std::uint32_t partner = (at.thread + at.threads / 2) % at.threads;
  std::uint64_t* const mine = claim_word(p, shape, kClaimWords, at.thread, at);
  std::uint64_t* const others = claim_word(p, shape, kClaimWords, partner, at);
  std::uint64_t* const seen_by_me = claim_word(p, shape, kSeenWords, at.thread, at);
  std::uint64_t* const seen_by_other = claim_word(p, shape, kSeenWords, partner, at);
  std::uint64_t spins = 0;
  for (std::uint32_t round = 0; round < kClaimRounds; ++round) {
    if (at.is_active) p.store(mine, 0, Order::relaxed, Scope::cluster);
    p.grid_barrier();
    std::uint64_t seen = 0;
    for (std::uint32_t claim = at.is_active ? 0 : kClaims; claim < kClaims; ++claim) {
      const std::uint64_t bit = std::uint64_t{1} << claim;
      while (claim > 0 && (p.load(others, Order::relaxed, Scope::cluster) & (bit >> 1)) == 0 && ++spins < kSpinsMax) {
      }
      p.fetch_add(mine, bit, Order::relaxed, Scope::cluster);
      p.fence(Order::sequential, Scope::cluster);
      seen |= p.load(others, Order::relaxed, Scope::cluster) & bit;
    }
    if (at.is_active) p.put(seen_by_me, seen);
    p.grid_barrier();
    if (at.is_active && (p.get(seen_by_me) | p.get(seen_by_other)) != ~std::uint64_t{0}) find(findings, kNotSeen);
    p.grid_barrier();
  }
  if (spins >= kSpinsMax) find(findings, kStuck);
}

// A lock in the memory of the last block guards plain data in that of the first.
__device__ void check_lock(P& p, std::uint64_t* findings, const Shape& shape, const Place& at) {
  std::uint64_t* const lock = p.block_words(shape.blocks - 1) + kLockWord;
  std::uint64_t* const guarded = p.block_words(0) + kGuardedWord;
  const std::uint32_t turns = at.is_active ? kRounds * P::kGroupWidth : 0;
  std::uint64_t spins = 0;
  for (std::uint32_t turn = 0; turn < turns && spins < kSpinsMax; ++turn) {
    if (p.lane() == turn % P::kGroupWidth) {
      while (p.compare_exchange(lock, 0, at.thread + 1, Order::acquire, Scope::cluster) != 0 && ++spins < kSpinsMax) {
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
  if (at.is_active && at.thread == 0) {
    find(findings, kCounted, p.get(guarded));
    find(findings, kExpected, std::uint64_t{at.threads} * kRounds);
  }
}

__global__ __launch_bounds__(kBlockThreads, 1) void cluster_check_kernel(std::uint64_t* findings, Shape shape) {
  if constexpr (P::kIsThere) {
    P p;
    const Place at(p, shape);
    p.cluster_barrier();
    check_words(p, findings, shape, at);
    check_bits(p, findings, shape, at);
    check_claims(p, findings, shape, at);
    check_lock(p, findings, shape, at);
    p.cluster_barrier();
  }
}

// `attributes`: two, which must outlive the configuration.
cudaLaunchConfig_t configuration(const Shape& shape, cudaLaunchAttribute* attributes) {
  attributes[0].id = cudaLaunchAttributeClusterDimension;
  attributes[0].val.clusterDim.x = shape.blocks;
  attributes[0].val.clusterDim.y = attributes[0].val.clusterDim.z = 1;
  attributes[1].id = cudaLaunchAttributeCooperative;
  attributes[1].val.cooperative = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(shape.blocks * shape.clusters);
  config.blockDim = dim3(kBlockThreads);
  config.dynamicSmemBytes = shape.words * sizeof(std::uint64_t);
  config.attrs = attributes;
  config.numAttrs = 2;
  return config;
}

// How many clusters of this shape run at once. A cooperative launch takes no more.
std::uint32_t clusters_at_once(Shape shape) {
  shape.clusters = 1;
  cudaLaunchAttribute attributes[2]{};
  const cudaLaunchConfig_t config = configuration(shape, attributes);
  int clusters = 0;
  if (cudaOccupancyMaxActiveClusters(&clusters, cluster_check_kernel, &config) != cudaSuccess) clusters = 0;
  static_cast<void>(cudaGetLastError());
  return static_cast<std::uint32_t>(std::max(clusters, 0));
}

// Whether everything is right in a launch of this shape.
bool check(const Shape& shape) {
  std::printf("clusters of %u blocks with %u words each, %u at once%s: ", shape.blocks, shape.words, shape.clusters,
              shape.first_only ? ", of which the first uses its memory" : "");
  std::array<std::uint64_t, kFindings> found{};
  std::uint64_t* findings = nullptr;
  cudaLaunchAttribute attributes[2]{};
  const cudaLaunchConfig_t config = configuration(shape, attributes);
  cudaError_t error = cudaMalloc(&findings, sizeof found);
  if (error == cudaSuccess) error = cudaMemset(findings, 0, sizeof found);
  if (error == cudaSuccess) error = cudaLaunchKernelEx(&config, cluster_check_kernel, findings, shape);
  if (error == cudaSuccess) error = cudaDeviceSynchronize();
  if (error == cudaSuccess) error = cudaMemcpy(found.data(), findings, sizeof found, cudaMemcpyDeviceToHost);
  static_cast<void>(cudaFree(findings));
  if (error != cudaSuccess) {
    std::printf("%s\n", cudaGetErrorString(error));
    return false;
  }
  const bool is_right =
      found[kNotZero] + found[kNotPut] + found[kBitMissing] + found[kBitLeft] + found[kStuck] + found[kNotSeen] == 0 &&
      found[kExpected] != 0 && found[kCounted] == found[kExpected];
  std::printf(
      "%s; words not zero %llu, with another value than was put %llu; bits missing %llu, left over %llu; claims that "
      "neither side saw %llu; additions under the lock %llu of %llu, threads stuck %llu\n",
      is_right ? "right" : "WRONG", static_cast<unsigned long long>(found[kNotZero]),
      static_cast<unsigned long long>(found[kNotPut]), static_cast<unsigned long long>(found[kBitMissing]),
      static_cast<unsigned long long>(found[kBitLeft]), static_cast<unsigned long long>(found[kNotSeen]),
      static_cast<unsigned long long>(found[kCounted]), static_cast<unsigned long long>(found[kExpected]),
      static_cast<unsigned long long>(found[kStuck]));
  return is_right;
}

// All runs with clusters of this many blocks, which have `words` words each.
bool check_all(std::uint32_t blocks, std::uint32_t words) {
  Shape shape{.blocks = blocks, .clusters = 1, .words = words, .first_only = false};
  const std::uint32_t most = clusters_at_once(shape);
  if (most == 0) {
    std::printf("clusters of %u blocks with %u words each: the device cannot run any\n", blocks, words);
    return true;  // `local` then takes fewer blocks
  }
  bool is_right = check(shape);
  if (most > 2) {
    shape.clusters = 2;
    is_right &= check(shape);
  }
  if (most > 1) {
    shape.clusters = most;
    is_right &= check(shape);
    shape.first_only = true;
    is_right &= check(shape);
  }
  return is_right;
}

int run() {
  int has_clusters = 0, shared_bytes = 0;
  cudaError_t error = cudaDeviceGetAttribute(&has_clusters, cudaDevAttrClusterLaunch, 0);
  if (error == cudaSuccess) {
    error = cudaDeviceGetAttribute(&shared_bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0);
  }
  if (error == cudaSuccess) {
    error = cudaFuncSetAttribute(cluster_check_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes);
  }
  if (error != cudaSuccess) {
    std::printf("no CUDA device that can be checked: %s\n", cudaGetErrorString(error));
    return 1;
  }
  if (has_clusters == 0) {
    std::printf("the device has no clusters of blocks\n");
    return 0;
  }
  bool is_right = true;
  const auto words_max = static_cast<std::uint32_t>(static_cast<std::size_t>(shared_bytes) / sizeof(std::uint64_t));
  for (const std::uint32_t blocks : {1u, 2u, 4u, 8u}) {
    for (const std::uint32_t words : {kWordsMin, words_max}) is_right &= check_all(blocks, words);
  }
  return is_right ? 0 : 1;
}

}  // namespace
}  // namespace kilokv::engine

int main() { return kilokv::engine::run(); }
