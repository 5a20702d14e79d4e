// Must fail: shows that a failing expectation reaches ctest (see tests/CMakeLists.txt).
#include <gtest/gtest.h>

TEST(Canary, Fails) { EXPECT_EQ(1, 2); }
