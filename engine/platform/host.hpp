// The platform of host threads: groups and blocks of one lane, and barriers that park. With HostSpace its memory is
// this process's memory. With DeviceSpace (device_pointer.hpp) it runs the kernels of the emulated device.
//
// A ThreadTeam keeps its threads between launches, so a launch allocates nothing. A team of one thread starts no
// thread, and its barriers cost nothing.
//
// Thread safety: a platform object belongs to one thread.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

#include "engine/platform/concept.hpp"
#include "engine/platform/helper_cores.hpp"

namespace kilokv::engine {

// The processor time that the threads of a team have used in one run, without the caller's. `busiest`: of the thread
// that has used most.
struct HelperTime {
  double all = 0, busiest = 0;
};

// Threads that run one function together, any number of times. Thread safety: one caller at a time.
class ThreadTeam {
 public:
  // A team of this many threads, with the caller's; at least 1. It has fewer if the system gives no more.
  explicit ThreadTeam(std::uint32_t threads);
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  std::uint32_t size() const { return size_; }
  // Calls body(thread) on every thread; the caller is thread 0. Returns when all have ended. The body must not throw.
  void run(const std::function<void(std::uint32_t)>& body);
  // The same, but no thread has to come: a thread that does not wake up before the caller's body(0) has ended does not
  // call the body. To wake a parked thread of a virtual machine can take longer than a batch. The body has no barrier.
  void run_beside(const std::function<void(std::uint32_t)>& body);
  // The times of the last run, in seconds. The time that a thread needed to wait for the others, or to come too late,
  // is part of a later run.
  HelperTime helper_time() const { return helper_time_; }
  // Waits for all threads of the team. Called in the body.
  void barrier();
  // Waits until the word is no longer `old`. Looks at it for a short time before it parks: to wake a parked thread can
  // take longer than a stage of a batch. With more threads than cores it parks at once.
  void wait(const std::atomic<std::uint32_t>& word, std::uint32_t old) const;

 private:
  struct alignas(64) ThreadTime {
    std::atomic<double> used{0};  // the processor time of the thread, as of the last launch that it saw
    double counted = 0;           // how much of it was part of a run
  };
  // A bit of gate_. The high half of gate_ is the number of the launch. The bits below this one count the threads that
  // have begun the body.
  static constexpr std::uint64_t kClosed = std::uint64_t{1} << 31;

  // Whether the word has changed, for a short time. False at once if there are more threads than cores.
  bool look(const std::atomic<std::uint32_t>& word, std::uint32_t old) const;
  void launch(const std::function<void(std::uint32_t)>& body);
  // Waits until this number of threads have left the body. Then takes the times of all threads.
  void await_left(std::uint32_t threads);
  // For a thread that has woken up for this launch: false if the launch is closed, or another one has begun.
  bool enter(std::uint32_t launch);
  void work(std::uint32_t thread);

  std::uint32_t size_ = 1;
  std::uint32_t looks_max_ = 0;  // before a thread parks
  alignas(64) std::atomic<std::uint32_t> arrived_{0};
  alignas(64) std::atomic<std::uint32_t> meetings_{0};
  const std::function<void(std::uint32_t)>* body_ = nullptr;
  alignas(64) std::atomic<std::uint32_t> launches_{0};  // a change wakes the threads, for a run or for the end
  alignas(64) std::atomic<std::uint64_t> gate_{kClosed};
  alignas(64) std::atomic<std::uint32_t> left_{0};  // how many have ended the body
  std::atomic<bool> ends_{false};
  std::vector<std::thread> threads_;
  std::vector<ThreadTime> times_;  // [size - 1]
  HelperCores cores_;
  HelperTime helper_time_;
};

constexpr std::memory_order to_memory_order(Order order) {
  switch (order) {
    case Order::relaxed: return std::memory_order_relaxed;
    case Order::acquire: return std::memory_order_acquire;
    case Order::release: return std::memory_order_release;
    case Order::acquire_release: return std::memory_order_acq_rel;
    case Order::sequential: break;
  }
  return std::memory_order_seq_cst;
}
// The order of the load if an exchange with this order fails.
constexpr std::memory_order to_load_order(Order order) {
  if (order == Order::release) return std::memory_order_relaxed;
  return to_memory_order(order == Order::acquire_release ? Order::acquire : order);
}

// ThreadSanitizer knows no fences. Under it, each operation has the order that fences beside it could give it. So a
// race of plain data is found, but not a fence that is missing: the simulator (engine/sim) finds that.
constexpr Order with_fences(Order order, [[maybe_unused]] Order strongest) {
#if defined(__SANITIZE_THREAD__)
  return order == Order::sequential ? order : strongest;
#else
  return order;
#endif
}
constexpr Order order_of_load(Order order) { return with_fences(order, Order::acquire); }
constexpr Order order_of_store(Order order) { return with_fences(order, Order::release); }
constexpr Order order_of_change(Order order) { return with_fences(order, Order::acquire_release); }

template <class MemorySpace>
class HostPlatformOver {
 public:
  using Space = MemorySpace;
  template <class T>
  using Pointer = typename Space::template Pointer<T>;
  static constexpr std::uint32_t kGroupWidth = 1;
  static constexpr std::uint32_t kSharedWords = 64;
  static constexpr bool kHasBlockWords = false, kHasClusters = false;

  // `shared`: kSharedWords words of this thread's block.
  HostPlatformOver(ThreadTeam* team, std::uint32_t thread, Pointer<std::uint64_t> shared)
      : team_(team), thread_(thread), shared_(shared) {}

  std::uint32_t thread() const { return thread_; }
  std::uint32_t threads() const { return team_->size(); }
  std::uint32_t lane() const { return 0; }
  std::uint32_t group() const { return thread_; }
  std::uint32_t block() const { return thread_; }
  std::uint32_t block_thread() const { return 0; }
  std::uint32_t block_threads() const { return 1; }

  template <class P>
  ElementOf<P> load(P word, Order order, Scope) const {
    return std::atomic_ref(Space::to_read(word)).load(to_memory_order(order_of_load(order)));
  }
  template <class P>
  void store(P word, ElementOf<P> value, Order order, Scope) const {
    std::atomic_ref(Space::to_write(word)).store(value, to_memory_order(order_of_store(order)));
  }
  template <class P>
  ElementOf<P> exchange(P word, ElementOf<P> value, Order order, Scope) const {
    return to_change(word).exchange(value, to_memory_order(order_of_change(order)));
  }
  template <class P>
  ElementOf<P> compare_exchange(P word, ElementOf<P> expected, ElementOf<P> desired, Order order, Scope) const {
    order = order_of_change(order);
    to_change(word).compare_exchange_strong(expected, desired, to_memory_order(order), to_load_order(order));
    return expected;
  }
  template <class P>
  ElementOf<P> fetch_add(P word, ElementOf<P> value, Order order, Scope) const {
    return to_change(word).fetch_add(value, to_memory_order(order_of_change(order)));
  }
  template <class P>
  ElementOf<P> fetch_min(P word, ElementOf<P> value, Order order, Scope) const {
    return change_until(word, value, order, [](auto old, auto wanted) { return old <= wanted; });
  }
  template <class P>
  ElementOf<P> fetch_max(P word, ElementOf<P> value, Order order, Scope) const {
    return change_until(word, value, order, [](auto old, auto wanted) { return old >= wanted; });
  }
  void fence(Order order, Scope) const { std::atomic_thread_fence(to_memory_order(order)); }

  template <class P>
  ElementOf<P> get(P datum) const {
    return Space::to_read(datum);
  }
  template <class P>
  void put(P datum, ElementOf<P> value) const {
    Space::to_write(datum) = value;
  }

  std::uint32_t ballot(bool mine) const { return mine ? 1 : 0; }
  std::uint32_t match(std::uint64_t) const { return 1; }
  std::uint64_t broadcast(std::uint64_t value, std::uint32_t) const { return value; }
  std::uint64_t sum(std::uint64_t value) const { return value; }
  Pointer<std::uint64_t> shared() const { return shared_; }

  void group_barrier() const {}
  void block_barrier() const {}
  void grid_barrier() const { team_->barrier(); }

  std::uint64_t clock() const {
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();  // three times as fast as steady_clock, so it disturbs less what it measures
#else
    return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
#endif
  }

  void pause() const { std::this_thread::yield(); }
  void probe(std::uint32_t) const {}

 private:
  template <class P>
  static std::atomic_ref<ElementOf<P>> to_change(P word) {
    static_cast<void>(Space::to_read(word));  // the change also reads the value
    return std::atomic_ref(Space::to_write(word));
  }
  template <class P, class Done>
  static ElementOf<P> change_until(P word, ElementOf<P> value, Order order, Done is_done) {
    const auto shared = to_change(word);
    order = order_of_change(order);
    ElementOf<P> old = shared.load(to_load_order(order));
    while (!is_done(old, value) &&
           !shared.compare_exchange_weak(old, value, to_memory_order(order), to_load_order(order))) {
    }
    return old;
  }

  ThreadTeam* team_;
  std::uint32_t thread_;
  Pointer<std::uint64_t> shared_;
};

using HostPlatform = HostPlatformOver<HostSpace>;
static_assert(Platform<HostPlatform>);

}  // namespace kilokv::engine
