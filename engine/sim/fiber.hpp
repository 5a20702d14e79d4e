// Fibers: bodies with stacks of their own that hand one thread to each other.
//
// A switch is a few instructions on x86-64, and ucontext elsewhere. The address and thread sanitizers are told of every
// switch, and of where the stack lies that is left: that is learned at each arrival, never kept from an earlier switch,
// so that a fiber of a thread may be made again in another frame.
//
// What a reset fiber has on its stack is forgotten: no destructor runs.
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
using FiberContext = void*;  // its stack pointer; what must be kept lies on the stack
#else
using FiberContext = ucontext_t;
#endif

class Fiber {
 public:
  // The calling thread itself, as it runs.
  Fiber();
  // One that runs `body` when it is first switched to. The body never returns: it may switch away for good.
  Fiber(std::size_t stack_bytes, std::function<void()> body);
  ~Fiber();  // Requires: never run, or reset.
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Called on the fiber that runs: `to` goes on; returns when somebody switches back.
  void switch_to(Fiber* to);
  // Called on the fiber that runs: `other` loses its stack, and starts anew when it is next switched to.
  void reset(Fiber* other);

 private:
  static void enter(Fiber* fiber);
  void make_context();
  void announce(Fiber* to, void** fake_stack);
  void arrive();

  const std::function<void()> body_;
  std::byte* memory_ = nullptr;  // a guard page, then the stack; null: of a thread
  std::size_t bytes_ = 0;
  bool runs_ = false;           // is on its stack
  Fiber* came_from_ = nullptr;  // who switched here last
  Fiber* reset_by_ = nullptr;   // to whom to go for good
  FiberContext context_{};

  // For the sanitizers.
  [[maybe_unused]] void* fake_stack_ = nullptr;
  const void* stack_bottom_ = nullptr;
  std::size_t stack_bytes_ = 0;
  [[maybe_unused]] void* thread_state_ = nullptr;
};

}  // namespace kilokv::engine
