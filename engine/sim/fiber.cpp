#include "engine/sim/fiber.hpp"

#include <sys/mman.h>

#include <cstdint>
#include <utility>

#include "engine/base/check.hpp"

#if defined(__has_feature)
#define KILOKV_HAS_FEATURE(name) __has_feature(name)
#else
#define KILOKV_HAS_FEATURE(name) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || KILOKV_HAS_FEATURE(address_sanitizer)
#define KILOKV_ADDRESS_SANITIZER 1
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#else
#define KILOKV_ADDRESS_SANITIZER 0
#endif
#if defined(__SANITIZE_THREAD__) || KILOKV_HAS_FEATURE(thread_sanitizer)
#define KILOKV_THREAD_SANITIZER 1
#include <sanitizer/tsan_interface.h>
#else
#define KILOKV_THREAD_SANITIZER 0
#endif

namespace kilokv::engine {
namespace {

constexpr std::size_t kGuardBytes = 4096;

#if KILOKV_FIBER_ASSEMBLY

// Pushes what a callee must preserve, stores the stack pointer in *from, takes `to`, and pops. A new stack looks as if
// this function had left it. `argument` becomes the argument of the function that a new stack enters.
extern "C" void kilokv_switch_stack(void** from, void* to, void* argument);
asm(R"(
.text
.p2align 4
.hidden kilokv_switch_stack
.globl kilokv_switch_stack
.type kilokv_switch_stack, @function
kilokv_switch_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  movq %rdx, %rdi
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size kilokv_switch_stack, .-kilokv_switch_stack
)");

void switch_context(FiberContext* from, FiberContext* to, Fiber* argument) { kilokv_switch_stack(from, *to, argument); }

void start_context(FiberContext* context, std::byte* stack, std::size_t bytes, void (*enter)(Fiber*), Fiber*) {
  constexpr std::size_t kKept = 6;
  auto** const top = reinterpret_cast<void**>(stack + bytes);
  top[-1] = nullptr;  // no return address: a debugger's stack walk ends here
  top[-2] = reinterpret_cast<void*>(enter);
  for (std::size_t i = 0; i < kKept; ++i) top[-3 - static_cast<std::ptrdiff_t>(i)] = nullptr;
  *context = top - 2 - kKept;
}

#else

void switch_context(FiberContext* from, FiberContext* to, Fiber*) { ::swapcontext(from, to); }

void start_context(FiberContext* context, std::byte* stack, std::size_t bytes, void (*enter)(Fiber*), Fiber* fiber) {
  KILOKV_CHECK(::getcontext(context) == 0);
  context->uc_stack.ss_sp = stack;
  context->uc_stack.ss_size = bytes;
  context->uc_link = nullptr;
  // makecontext() passes integers. They are 64 bits wide where glibc has 64-bit pointers.
  ::makecontext(context, reinterpret_cast<void (*)()>(enter), 1, fiber);
}

#endif

}  // namespace

Fiber::Fiber() : runs_(true) {
#if KILOKV_THREAD_SANITIZER
  thread_state_ = __tsan_get_current_fiber();
#endif
}

Fiber::Fiber(std::size_t stack_bytes, std::function<void()> body)
    : body_(std::move(body)), bytes_(kGuardBytes + stack_bytes) {
  void* memory = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  KILOKV_CHECK(memory != MAP_FAILED);
  memory_ = static_cast<std::byte*>(memory);
  KILOKV_CHECK(::mprotect(memory_, kGuardBytes, PROT_NONE) == 0);
  make_context();
}

Fiber::~Fiber() {
  if (memory_ == nullptr) return;
  KILOKV_CHECK(!runs_);
#if KILOKV_THREAD_SANITIZER
  __tsan_destroy_fiber(thread_state_);
#endif
  ::munmap(memory_, bytes_);
}

void Fiber::make_context() {
  stack_bottom_ = memory_ + kGuardBytes;
  stack_bytes_ = bytes_ - kGuardBytes;
#if KILOKV_ADDRESS_SANITIZER
  __asan_unpoison_memory_region(stack_bottom_, stack_bytes_);
#endif
#if KILOKV_THREAD_SANITIZER
  thread_state_ = __tsan_create_fiber(0);
#endif
  start_context(&context_, memory_ + kGuardBytes, stack_bytes_, enter, this);
}

void Fiber::enter(Fiber* fiber) {
  fiber->arrive();
  fiber->body_();
  KILOKV_CHECK(false);
}

void Fiber::switch_to(Fiber* to) {
  to->runs_ = true;
  announce(to, &fake_stack_);
  switch_context(&context_, &to->context_, to);
  arrive();
  if (reset_by_ == nullptr) return;
  announce(reset_by_, nullptr);  // it never comes back, so its fake stack is freed
  switch_context(&context_, &reset_by_->context_, reset_by_);
}

void Fiber::reset(Fiber* other) {
  if (!other->runs_) return;
  other->reset_by_ = this;
  switch_to(other);
  other->reset_by_ = nullptr;
  other->runs_ = false;
  other->fake_stack_ = nullptr;
#if KILOKV_THREAD_SANITIZER
  __tsan_destroy_fiber(other->thread_state_);
#endif
  other->make_context();
}

void Fiber::announce(Fiber* to, [[maybe_unused]] void** fake_stack) {
  to->came_from_ = this;
#if KILOKV_ADDRESS_SANITIZER
  __sanitizer_start_switch_fiber(fake_stack, to->stack_bottom_, to->stack_bytes_);
#endif
#if KILOKV_THREAD_SANITIZER
  __tsan_switch_to_fiber(to->thread_state_, 0);
#endif
}

void Fiber::arrive() {
#if KILOKV_ADDRESS_SANITIZER
  __sanitizer_finish_switch_fiber(fake_stack_, &came_from_->stack_bottom_, &came_from_->stack_bytes_);
#endif
}

}  // namespace kilokv::engine
