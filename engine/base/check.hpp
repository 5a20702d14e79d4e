// KILOKV_CHECK: invariants of the program itself. A failed one is a bug: it prints where and ends the process at once,
// so that nothing wrong becomes durable or is answered. Input is never checked with it.
#pragma once

#include <cstdio>
#include <cstdlib>

#define KILOKV_CHECK(condition)                                                          \
  do {                                                                                   \
    if (!(condition)) [[unlikely]] {                                                     \
      std::fprintf(stderr, "%s:%d: check failed: %s\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                      \
    }                                                                                    \
  } while (false)
