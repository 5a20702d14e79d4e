// Fibers: bodies with their own stacks that pass one thread to each other.
//
// A switch is a few instructions on x86-64, and ucontext on other processors. The address and thread sanitizers learn
// of every switch, and of the position of the stack that is left. That position is read at each arrival, never kept
// from an earlier switch, so that a fiber of a thread may be created again in another frame.
//
// A reset forgets what is on the fiber's stack: no destructor runs.
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
  // The calling thread, as it runs.
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
  std::byte* memory_ = nullptr;  // a guard page, then the stack; null: the fiber is a thread's
  std::size_t bytes_ = 0;
  bool runs_ = false;           // it has frames on its stack
  Fiber* came_from_ = nullptr;  // the fiber that switched here last
  Fiber* reset_by_ = nullptr;   // the fiber to switch to, without coming back
  FiberContext context_{};

  // For the sanitizers.
  [[maybe_unused]] void* fake_stack_ = nullptr;
  const void* stack_bottom_ = nullptr;
  std::size_t stack_bytes_ = 0;
  [[maybe_unused]] void* thread_state_ = nullptr;
};

}  // namespace kilokv::engine
