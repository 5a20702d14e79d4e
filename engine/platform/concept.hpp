// The platform concept: what a strategy is written over. A platform is a grid of threads, their memory, and their
// barriers. One source runs on four platforms: host threads (host.hpp), the simulator (sim/sim_platform.hpp), a CUDA
// device (cuda.cuh), and the emulated device. The emulated device is host threads over a device's memory (host.hpp over
// device_pointer.hpp).
//
// Threads form groups (a warp: kGroupWidth lanes that may run in lockstep), groups form blocks, blocks form the grid. A
// platform object belongs to one thread: it is passed by reference, never shared.
//
// Memory. A pointer is Space::Pointer<T>. It is a plain pointer if the thread can access the memory directly; otherwise
// it is a tagged address that only the space translates. There are three kinds of data:
//   - written before the launch and then only read: through the pointer itself, p[i];
//   - written by one thread and read by others in another phase, with a barrier between: get(), put(). It is a data
//     race if two threads use the same datum in one phase, and one of them writes;
//   - words that threads contend for: load() to fetch_max(), on unsigned words of 32 and 64 bits. Each call has an
//     order and a scope. fetch_min() and fetch_max() must not have the scope of a cluster (cuda.cuh says why).
// Barriers order everything: what was written before a barrier is seen after it, by all threads of the barrier. On the
// host, barriers never spin. Every thread of the group, block or grid must reach the barrier. On a device, a grid
// barrier needs a cooperative launch.
//
// Thread safety: as above. Source: the memory model of C++20, with the scopes of the PTX ISA.
#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <type_traits>

#include "engine/base/host_device.hpp"

namespace kilokv::engine {

enum class Order : std::uint8_t { relaxed, acquire, release, acquire_release, sequential };
constexpr bool acquires(Order order) {
  return order == Order::acquire || order == Order::acquire_release || order == Order::sequential;
}
constexpr bool releases(Order order) {
  return order == Order::release || order == Order::acquire_release || order == Order::sequential;
}
enum class Scope : std::uint8_t { block, cluster, device, system };  // the threads that see the order: at least these

// Memory of this process.
struct HostSpace {
  template <class T>
  using Pointer = T*;
  // What the pointer points to, for a caller that reads it or writes it.
  template <class T>
  KILOKV_HOST_DEVICE static T& to_read(T* pointer) {
    return *pointer;
  }
  template <class T>
  KILOKV_HOST_DEVICE static T& to_write(T* pointer) {
    return *pointer;
  }
};

inline constexpr std::uint32_t kProbes = 32;

template <class Pointer>
using ElementOf = std::remove_cv_t<typename std::pointer_traits<Pointer>::element_type>;

template <class P, class T>
using PointerOf = typename P::Space::template Pointer<T>;

template <class P>
concept Platform = requires(P& p, PointerOf<P, std::uint64_t> word, PointerOf<P, std::uint32_t> half,
                            std::uint64_t value, std::uint32_t lane, Order order, Scope scope) {
  typename P::Space;
  { P::kGroupWidth } -> std::convertible_to<std::uint32_t>;  // lanes of a group: 1 to 32

  // The position of this thread.
  { p.thread() } -> std::same_as<std::uint32_t>;         // of the grid
  { p.threads() } -> std::same_as<std::uint32_t>;        // in the grid
  { p.lane() } -> std::same_as<std::uint32_t>;           // of its group
  { p.group() } -> std::same_as<std::uint32_t>;          // its group's number in the grid
  { p.block() } -> std::same_as<std::uint32_t>;          // its block's number in the grid
  { p.block_thread() } -> std::same_as<std::uint32_t>;   // of its block
  { p.block_threads() } -> std::same_as<std::uint32_t>;  // in its block

  // Words that threads contend for. The same functions exist for 32 bits.
  { p.load(word, order, scope) } -> std::same_as<std::uint64_t>;
  p.store(word, value, order, scope);
  { p.exchange(word, value, order, scope) } -> std::same_as<std::uint64_t>;  // returns the old value, as all below do
  { p.compare_exchange(word, value, value, order, scope) } -> std::same_as<std::uint64_t>;  // expected, desired
  { p.fetch_add(word, value, order, scope) } -> std::same_as<std::uint64_t>;
  { p.fetch_min(word, value, order, scope) } -> std::same_as<std::uint64_t>;
  { p.fetch_max(word, value, order, scope) } -> std::same_as<std::uint64_t>;
  { p.load(half, order, scope) } -> std::same_as<std::uint32_t>;
  p.fence(order, scope);

  // Data with one writer in a phase.
  { p.get(word) } -> std::same_as<std::uint64_t>;
  p.put(word, value);

  // Functions of the whole group: every lane of it must call. Bit i stands for lane i.
  { p.ballot(true) } -> std::same_as<std::uint32_t>;            // the lanes whose argument is true
  { p.match(value) } -> std::same_as<std::uint32_t>;            // the lanes whose value is equal to mine
  { p.broadcast(value, lane) } -> std::same_as<std::uint64_t>;  // that lane's value
  { p.sum(value) } -> std::same_as<std::uint64_t>;              // of all lanes' values

  // Memory that a block's threads share: kSharedWords words, undefined at the start.
  { P::kSharedWords } -> std::convertible_to<std::uint32_t>;
  { p.shared() } -> std::same_as<PointerOf<P, std::uint64_t>>;
  // Whether a block has more such words, as many as the launch asks for. If so, block_words(i) points to the words of
  // the i-th block of its cluster. (A cluster is a set of blocks that use each other's words.) If not, these words are
  // in the grid's memory.
  { P::kHasBlockWords } -> std::convertible_to<bool>;
  // Whether a launch may have clusters of several blocks. If not, each cluster is one block, and i is 0.
  { P::kHasClusters } -> std::convertible_to<bool>;

  p.group_barrier();
  p.block_barrier();
  p.grid_barrier();

  { p.clock() } -> std::same_as<std::uint64_t>;  // ticks, for the difference of two calls by this thread

  p.pause();      // between two tries at something that other threads block: lets them run first
  p.probe(lane);  // this rare place (number below kProbes) was reached; only the simulator counts it
};

}  // namespace kilokv::engine
