// Hints to the cache. Never faults, whatever the address; without effect where the compiler knows no such hint.
#pragma once

namespace kilokv::engine {

// GCC takes a function that only prefetches for one without effect, and drops calls of it.
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
