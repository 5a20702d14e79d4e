#include "tests/unit/engine/harness.hpp"

#include <cstdio>
#include <vector>

namespace kilokv::test {
namespace {

struct Test {
  std::string_view name;
  TestFunction function;
};

std::vector<Test>& tests() {
  static std::vector<Test> list;
  return list;
}

std::size_t failures = 0;  // of the running test
constexpr std::size_t kShownMax = 20;

}  // namespace

bool register_test(const char* name, TestFunction function) {
  tests().push_back({name, function});
  return true;
}

void report_failure(const char* file, int line, const std::string& text) {
  if (++failures <= kShownMax) std::printf("%s:%d: expected %s\n", file, line, text.c_str());
}

bool has_failed() { return failures > 0; }

}  // namespace kilokv::test

int main(int argc, char** argv) {
  using namespace kilokv::test;
  std::size_t run = 0, failed = 0;
  for (const Test& test : tests()) {
    bool wanted = argc == 1;
    for (int i = 1; i < argc; ++i) wanted |= test.name == argv[i];
    if (!wanted) continue;
    failures = 0;
    test.function();
    ++run;
    failed += failures > 0 ? 1 : 0;
    std::printf("%s %.*s\n", failures > 0 ? "FAILED" : "ok    ", static_cast<int>(test.name.size()), test.name.data());
    std::fflush(stdout);
  }
  std::printf("%zu tests, %zu failed\n", run, failed);
  return run > 0 && failed == 0 ? 0 : 1;
}
