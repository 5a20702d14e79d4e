// KILOKV_CHECK checks an invariant of the program itself. A check that fails is a bug. It prints the source file and
// the line, and ends the process at once. So no wrong data becomes durable, and no wrong answer is sent. Input is never
// checked with it.
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
