// Fibers. A fiber is a function with a stack of its own. Several fibers share one thread: only one of them runs, until
// it switches to another one.
//
// A switch is a few instructions on x86-64, and uses ucontext on other processors. The address and thread sanitizers
// are told of every switch. At each arrival, the address sanitizer tells the position of the stack that was left. This
// position is never kept from an earlier switch. So the Fiber object of a thread may be destroyed, and constructed
// again in another stack frame.
//
// A reset drops what is on the fiber's stack: no destructor runs.
// Thread safety: none; a fiber stays on the thread that first ran it.
#pragma once

#include <cstddef>
#include <functional>

#if defined(__x86_64__) && defined(__ELF__) && !defined(KILOKV_FIBER_UCONTEXT)
#define KILOKV_FIBER_ASSEMBLY 1
#else
#define KILOKV_FIBER_ASSEMBLY 0
#include <ucontext.h>
#endif

namespace kilokv::engine {

#if KILOKV_FIBER_ASSEMBLY
using FiberContext = void*;  // its stack pointer; what must be saved is on the stack
#else
using FiberContext = ucontext_t;
#endif

class Fiber {
 public:
  // Makes the fiber of the calling thread, which already runs on the stack of the thread.
  Fiber();
  // A fiber that runs `body` when it is first switched to. The body never returns, but it may switch away forever.
  Fiber(std::size_t stack_bytes, std::function<void()> body);
  ~Fiber();  // Requires: never run, or reset.
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Called on the running fiber: `to` continues. Returns when a fiber switches back.
  void switch_to(Fiber* to);
  // Called on the running fiber: `other` loses its stack, and starts again when it is next switched to.
  void reset(Fiber* other);

 private:
  static void enter(Fiber* fiber);
  void make_context();
  void announce(Fiber* to, void** fake_stack);
  void arrive();

  const std::function<void()> body_;
  std::byte* memory_ = nullptr;  // a guard page, then the stack; null: the fiber has a thread's stack
  std::size_t bytes_ = 0;
  bool runs_ = false;           // it has frames on its stack
  Fiber* came_from_ = nullptr;  // the fiber that switched here last
  Fiber* reset_by_ = nullptr;   // during a reset: the fiber that resets this one. This one then switches to it for good
  FiberContext context_{};

  // For the sanitizers.
  [[maybe_unused]] void* fake_stack_ = nullptr;
  const void* stack_bottom_ = nullptr;
  std::size_t stack_bytes_ = 0;
  [[maybe_unused]] void* thread_state_ = nullptr;
};

}  // namespace kilokv::engine
