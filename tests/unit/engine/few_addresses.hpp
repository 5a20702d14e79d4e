// Leaves a test few addresses, so that the system refuses those that a table reserves. The end of the scope gives them
// back.
#pragma once

#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>

#include "tests/unit/engine/harness.hpp"

namespace kilokv::test {

class FewAddresses {
 public:
  // `more`: bytes of addresses beside those that the process has now.
  explicit FewAddresses(rlim_t more) {
    unsigned long long pages = 0;
    std::FILE* const file = std::fopen("/proc/self/statm", "r");
    ASSERT_TRUE(file != nullptr);
    const int read = std::fscanf(file, "%llu", &pages);
    std::fclose(file);
    ASSERT_EQ(read, 1);
    ASSERT_EQ(::getrlimit(RLIMIT_AS, &before_), 0);
    rlimit few = before_;
    few.rlim_cur = pages * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE)) + more;
    ASSERT_EQ(::setrlimit(RLIMIT_AS, &few), 0);
    is_set_ = true;
  }
  ~FewAddresses() {
    if (is_set_) EXPECT_EQ(::setrlimit(RLIMIT_AS, &before_), 0);
  }
  FewAddresses(const FewAddresses&) = delete;
  FewAddresses& operator=(const FewAddresses&) = delete;

 private:
  rlimit before_{};
  bool is_set_ = false;
};

}  // namespace kilokv::test
