#include "client/lib/src/send_window.hpp"

#include <gtest/gtest.h>

namespace kilokv::client {
namespace {

TimePoint after(std::chrono::milliseconds time) { return TimePoint{} + std::chrono::hours(1) + time; }

int fill(SendWindow* window, int most) {
  int taken = 0;
  for (; taken < most && window->has_room(); ++taken) window->take();
  return taken;
}

TEST(SendWindow, IsWideUntilSomethingIsRefused) {
  SendWindow window;
  EXPECT_EQ(fill(&window, 5'000), 5'000);
  for (int i = 0; i < 5'000; ++i) window.leave_answered(after({}));
  EXPECT_EQ(fill(&window, 5'000), 5'000);
}

TEST(SendWindow, ClosesToWhatTheServerHas) {
  SendWindow window;
  fill(&window, 100);
  for (int i = 0; i < 70; ++i) window.leave_refused(after({}));
  EXPECT_FALSE(window.has_room());
  window.leave();
  EXPECT_EQ(fill(&window, 100), 1) << "30 places";
  for (int i = 0; i < 30; ++i) window.leave_refused(after({}));
  EXPECT_EQ(fill(&window, 100), 1) << "there is always one";
}

TEST(SendWindow, OpensByOnePlaceForEachWindowOfAnswers) {
  SendWindow window;
  fill(&window, 41);
  window.leave_refused(after({}));
  for (int i = 0; i < 41; ++i) {
    window.leave_answered(after(std::chrono::milliseconds(i)));
    fill(&window, 100);
  }
  for (int i = 0; i < 41; ++i) window.leave();
  EXPECT_EQ(fill(&window, 100), 41);
}

TEST(SendWindow, OpensWithEachAnswerALongTimeAfterTheRefusal) {
  SendWindow window;
  fill(&window, 11);
  window.leave_refused(after({}));
  for (int i = 0; i < 10; ++i) window.leave_answered(after(std::chrono::milliseconds(1'001)));
  EXPECT_EQ(fill(&window, 100), 20);
}

}  // namespace
}  // namespace kilokv::client
