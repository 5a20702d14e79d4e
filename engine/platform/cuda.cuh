// The platform of a CUDA device: groups are warps, memory is the device's, pointers are plain.
//
// A launch must have one dimension, and blocks of a multiple of 32 threads. All threads of a group or block must call
// its functions together. grid_barrier() also needs a cooperative launch. Orders and scopes are passed as constants, so
// that each call compiles to one instruction.
//
// CudaClusterPlatform is the same for blocks that are launched in clusters, on devices of compute capability 9.0 and
// higher. A block can access the words of the other blocks of its cluster, which are distributed shared memory.
// Each thread must call cluster_barrier() before the first use of these words and after the last one, because a block's
// words exist only while it runs. The language has no scope between block and device, so a cluster uses the device's
// scope. Its words have no fetch_min() and fetch_max(), because both trap in the scope of a cluster. The reason was
// seen on an H100 (driver 580.159.04). The lanes of a warp applied one 64-bit instruction to one word of another block.
// With `min`, `max`, `or`, `and` and `xor` only one lane's operation took effect. With `add` and `cas` all of them did.
//
// Thread safety: an object belongs to one thread.
#pragma once

#include <cooperative_groups.h>

#include <cstdint>
#include <cuda/atomic>

#include "engine/platform/concept.hpp"

namespace kilokv::engine {

__device__ constexpr cuda::std::memory_order to_cuda_order(Order order) {
  switch (order) {
    case Order::relaxed: return cuda::std::memory_order_relaxed;
    case Order::acquire: return cuda::std::memory_order_acquire;
    case Order::release: return cuda::std::memory_order_release;
    case Order::acquire_release: return cuda::std::memory_order_acq_rel;
    case Order::sequential: break;
  }
  return cuda::std::memory_order_seq_cst;
}
// The order of the load if an exchange with this order fails.
__device__ constexpr cuda::std::memory_order to_cuda_load_order(Order order) {
  if (order == Order::release) return cuda::std::memory_order_relaxed;
  return to_cuda_order(order == Order::acquire_release ? Order::acquire : order);
}

class CudaPlatform {
 public:
  using Space = HostSpace;
  static constexpr std::uint32_t kGroupWidth = 32;
  static constexpr std::uint32_t kSharedWords = 64;
  static constexpr bool kHasBlockWords = true, kHasClusters = false;

  __device__ std::uint32_t thread() const { return blockIdx.x * blockDim.x + threadIdx.x; }
  __device__ std::uint32_t threads() const { return gridDim.x * blockDim.x; }
  __device__ std::uint32_t lane() const { return threadIdx.x % kGroupWidth; }
  __device__ std::uint32_t group() const { return thread() / kGroupWidth; }
  __device__ std::uint32_t block() const { return blockIdx.x; }
  __device__ std::uint32_t block_thread() const { return threadIdx.x; }
  __device__ std::uint32_t block_threads() const { return blockDim.x; }

  template <class T>
  __device__ T load(T* word, Order order, Scope scope) const {
    return within(word, scope, [&](auto shared) { return shared.load(to_cuda_order(order)); });
  }
  template <class T>
  __device__ void store(T* word, std::type_identity_t<T> value, Order order, Scope scope) const {
    within(word, scope, [&](auto shared) { shared.store(value, to_cuda_order(order)); });
  }
  template <class T>
  __device__ T exchange(T* word, std::type_identity_t<T> value, Order order, Scope scope) const {
    return within(word, scope, [&](auto shared) { return shared.exchange(value, to_cuda_order(order)); });
  }
  template <class T>
  __device__ T compare_exchange(T* word, std::type_identity_t<T> expected, std::type_identity_t<T> desired, Order order,
                                Scope scope) const {
    within(word, scope, [&](auto shared) {
      shared.compare_exchange_strong(expected, desired, to_cuda_order(order), to_cuda_load_order(order));
    });
    return expected;
  }
  template <class T>
  __device__ T fetch_add(T* word, std::type_identity_t<T> value, Order order, Scope scope) const {
    return within(word, scope, [&](auto shared) { return shared.fetch_add(value, to_cuda_order(order)); });
  }
  template <class T>
  __device__ T fetch_min(T* word, std::type_identity_t<T> value, Order order, Scope scope) const {
    if (scope == Scope::cluster) __trap();
    return within(word, scope, [&](auto shared) { return shared.fetch_min(value, to_cuda_order(order)); });
  }
  template <class T>
  __device__ T fetch_max(T* word, std::type_identity_t<T> value, Order order, Scope scope) const {
    if (scope == Scope::cluster) __trap();
    return within(word, scope, [&](auto shared) { return shared.fetch_max(value, to_cuda_order(order)); });
  }
  __device__ void fence(Order order, Scope scope) const {
    switch (scope) {
      case Scope::block: cuda::atomic_thread_fence(to_cuda_order(order), cuda::thread_scope_block); break;
      case Scope::cluster:
      case Scope::device: cuda::atomic_thread_fence(to_cuda_order(order), cuda::thread_scope_device); break;
      case Scope::system: cuda::atomic_thread_fence(to_cuda_order(order), cuda::thread_scope_system); break;
    }
  }

  template <class T>
  __device__ std::remove_cv_t<T> get(T* datum) const {
    return *datum;
  }
  template <class T>
  __device__ void put(T* datum, std::type_identity_t<T> value) const {
    *datum = value;
  }

  __device__ std::uint32_t ballot(bool mine) const { return __ballot_sync(kAllLanes, mine); }
  __device__ std::uint32_t match(std::uint64_t value) const { return __match_any_sync(kAllLanes, value); }
  __device__ std::uint64_t broadcast(std::uint64_t value, std::uint32_t lane) const {
    return __shfl_sync(kAllLanes, value, static_cast<int>(lane));
  }
  __device__ std::uint64_t sum(std::uint64_t value) const {
    for (int other = static_cast<int>(kGroupWidth) / 2; other > 0; other /= 2) {
      value += __shfl_xor_sync(kAllLanes, value, other);
    }
    return value;
  }
  __device__ std::uint64_t* shared() const {
    __shared__ std::uint64_t words[kSharedWords];
    return words;
  }

  __device__ std::uint64_t* block_words(std::uint32_t) const {
    extern __shared__ std::uint64_t launched_words[];
    return launched_words;
  }

  __device__ void group_barrier() const { __syncwarp(kAllLanes); }
  __device__ void block_barrier() const { __syncthreads(); }
  __device__ void grid_barrier() const { cooperative_groups::this_grid().sync(); }

  __device__ std::uint64_t clock() const { return static_cast<std::uint64_t>(clock64()); }

  __device__ void pause() const { __nanosleep(kPauseNanoseconds); }
  __device__ void probe(std::uint32_t) const {}

 private:
  static constexpr std::uint32_t kAllLanes = 0xFFFF'FFFF;
  static constexpr unsigned kPauseNanoseconds = 64;

  template <class T, class Use>
  __device__ static auto within(T* word, Scope scope, Use use) {
    static_assert(sizeof(T) == 4 || sizeof(T) == 8);
    switch (scope) {
      case Scope::block: return use(cuda::atomic_ref<T, cuda::thread_scope_block>(*word));
      case Scope::cluster:
      case Scope::device: return use(cuda::atomic_ref<T, cuda::thread_scope_device>(*word));
      case Scope::system: break;
    }
    return use(cuda::atomic_ref<T, cuda::thread_scope_system>(*word));
  }
};

class CudaClusterPlatform : public CudaPlatform {
 public:
  static constexpr bool kHasClusters = true;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  static constexpr bool kIsThere = true;

  __device__ std::uint64_t* block_words(std::uint32_t block) const {
    return cooperative_groups::this_cluster().map_shared_rank(CudaPlatform::block_words(0), static_cast<int>(block));
  }
  __device__ void cluster_barrier() const { cooperative_groups::this_cluster().sync(); }
#else
  static constexpr bool kIsThere = false;  // this code is for devices without clusters: callers ask before they use it

  __device__ std::uint64_t* block_words(std::uint32_t block) const { return CudaPlatform::block_words(block); }
  __device__ void cluster_barrier() const { block_barrier(); }
#endif
};

static_assert(Platform<CudaPlatform> && Platform<CudaClusterPlatform>);

}  // namespace kilokv::engine
