// A test harness for a machine that has only a compiler and CMake. Each *_test.cpp is one program; harness.cpp has
// main.
//   TEST(name) { EXPECT_EQ(a, b); EXPECT_TRUE(c); ASSERT_TRUE(d); ... }
// After a failure, EXPECT_... continues, and ASSERT_... ends the test. A program's arguments are names of tests;
// without arguments it runs all tests. Thread safety: none; one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <sstream>
#include <string>
#include <string_view>
#include <type_traits>

namespace kilokv::test {

using TestFunction = void (*)();

// A sanitizer makes each step take several times as long. Then a test of many runs makes fewer of them.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif
// The number of runs of a random test that makes this many runs without a sanitizer.
constexpr std::uint64_t runs_to_make(std::uint64_t runs) { return kSanitized ? runs / 5 : runs; }

// Adds a test to the program's list. Returns true, so that it can initialise a constant.
bool register_test(const char* name, TestFunction function);
void report_failure(const char* file, int line, const std::string& text);
// Whether the running test has failed so far.
bool has_failed();

template <class T>
std::string show(const T& value) {
  std::ostringstream out;
  if constexpr (std::is_enum_v<T>) {
    out << static_cast<long long>(value);
  } else if constexpr (std::is_same_v<T, unsigned char>) {
    out << static_cast<int>(value);
  } else if constexpr (requires { out << value; }) {
    out << value;
  } else {
    out << "(" << sizeof(T) << " bytes)";
  }
  return out.str();
}

template <class A, class B>
bool expect_equal(const A& a, const B& b, const char* a_text, const char* b_text, const char* file, int line) {
  bool equal = false;
  if constexpr (std::is_integral_v<A> && std::is_integral_v<B> && !std::is_same_v<A, bool> &&
                !std::is_same_v<B, bool>) {
    equal = std::is_signed_v<A> == std::is_signed_v<B> ? a == static_cast<std::common_type_t<A, B>>(b)
                                                       : static_cast<long long>(a) == static_cast<long long>(b);
  } else {
    equal = a == b;
  }
  if (!equal) report_failure(file, line, std::string(a_text) + " == " + b_text + "\n  " + show(a) + "\n  " + show(b));
  return equal;
}

}  // namespace kilokv::test

#define TEST(name)                                                                       \
  static void test_##name();                                                             \
  static const bool registered_##name = kilokv::test::register_test(#name, test_##name); \
  static void test_##name()

#define EXPECT_EQ(a, b) static_cast<void>(kilokv::test::expect_equal((a), (b), #a, #b, __FILE__, __LINE__))
#define EXPECT_TRUE(condition) \
  static_cast<void>((condition) || (kilokv::test::report_failure(__FILE__, __LINE__, #condition), false))
#define EXPECT_FALSE(condition) EXPECT_TRUE(!(condition))
#define ASSERT_EQ(a, b)                                                            \
  do {                                                                             \
    if (!kilokv::test::expect_equal((a), (b), #a, #b, __FILE__, __LINE__)) return; \
  } while (false)
#define ASSERT_TRUE(condition)                                      \
  do {                                                              \
    if (!(condition)) {                                             \
      kilokv::test::report_failure(__FILE__, __LINE__, #condition); \
      return;                                                       \
    }                                                               \
  } while (false)
#define FAIL(text) kilokv::test::report_failure(__FILE__, __LINE__, (text))
