#include "server/core/fail_point.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <thread>

namespace kilokv::server {
namespace {

TEST(FailPoint, IsSilentUnlessSet) {
  EXPECT_FALSE(fail_points_set());
  EXPECT_FALSE(fail_point("some.point"));
}

TEST(FailPoint, FailsAtItsPassOrAlways) {
  ASSERT_TRUE(set_fail_points("a.third=error:3;;b.each=always").ok());
  std::string passes;
  for (int i = 0; i < 5; ++i) passes += fail_point("a.third") ? 'x' : '.';
  EXPECT_EQ(passes, "..x..");
  EXPECT_TRUE(fail_point("b.each") && fail_point("b.each"));
  EXPECT_FALSE(fail_point("c.other"));
  ASSERT_TRUE(set_fail_points("").ok());
  EXPECT_FALSE(fail_points_set());
}

TEST(FailPointDeathTest, KillsTheProcessAtItsPass) {
  EXPECT_EXIT(
      {
        if (!set_fail_points("a.point=kill:2").ok()) _exit(1);
        fail_point("a.point");
        fail_point("a.point");
        _exit(2);
      },
      testing::KilledBySignal(SIGKILL), "");
}

TEST(FailPointDeathTest, HangsAtItsPassWhileOtherThreadsPass) {
  EXPECT_EXIT(
      {
        if (!set_fail_points("a.point=hang:2").ok()) _exit(1);
        fail_point("a.point");
        std::thread([] {
          fail_point("a.point");
          _exit(2);  // it returned
        }).detach();
        ::alarm(60);  // for a point that makes all threads hang
        const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(1);
        while (std::chrono::steady_clock::now() < end) fail_point("b.other");
        _exit(0);
      },
      testing::ExitedWithCode(0), "");
}

TEST(FailPoint, RefusesWhatIsMalformed) {
  for (const char* text :
       {"a", "=kill", "a=", "a=die", "a=kill:0", "a=kill:", "a=kill:x", "a=always:2", "a=hang:0", "b=kill;a"}) {
    EXPECT_EQ(set_fail_points(text).code(), StatusCode::invalid_argument) << text;
  }
  EXPECT_FALSE(fail_points_set());
}

}  // namespace
}  // namespace kilokv::server
