// Hints to the cache. A hint never faults, whatever the address is. It has no effect if the compiler has no such hint.
#pragma once

namespace kilokv::engine {

// GCC assumes that a function that only prefetches has no effect, and drops the calls. This empty statement prevents
// that.
inline void keep_prefetch() {
#if defined(__GNUC__)
  asm volatile("");
#endif
}

inline void prefetch_for_write(const void* address) {
#if defined(__GNUC__)
  __builtin_prefetch(address, 1, 3);
  keep_prefetch();
#else
  static_cast<void>(address);
#endif
}

inline void prefetch_for_read(const void* address) {
#if defined(__GNUC__)
  __builtin_prefetch(address, 0, 3);
  keep_prefetch();
#else
  static_cast<void>(address);
#endif
}

}  // namespace kilokv::engine
