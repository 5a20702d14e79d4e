#include "client/lib/src/send_window.hpp"

#include <gtest/gtest.h>

namespace kilokv::client {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::microseconds kDelay = 10ms;

TimePoint after(std::chrono::milliseconds time) { return TimePoint{} + 1h + time; }

int fill(SendWindow* window, int most, TimePoint now = after(0ms)) {
  int taken = 0;
  for (; taken < most && window->has_room(now); ++taken) window->take();
  return taken;
}

// `places` are taken, and the window is full.
SendWindow full_window(int places) {
  SendWindow window;
  fill(&window, places + 1);
  window.leave_refused(after(0ms), kDelay);
  return window;
}

TEST(SendWindow, IsWideUntilSomethingIsRefused) {
  SendWindow window;
  EXPECT_EQ(fill(&window, 100'000), 100'000);
  for (int i = 0; i < 100'000; ++i) window.leave_answered(after(0ms));
  EXPECT_EQ(fill(&window, 100'000), 100'000);
}

TEST(SendWindow, ClosesToWhatIsInFlight) {
  SendWindow window;
  fill(&window, 100);
  for (int i = 0; i < 70; ++i) EXPECT_FALSE(window.leave_refused(after(0ms), kDelay));
  EXPECT_FALSE(window.has_room(after(0ms)));
  window.leave();
  EXPECT_EQ(fill(&window, 100), 1) << "30 places";
}

TEST(SendWindow, RestsAsLongAsTheServerAsksIfNothingIsInFlight) {
  SendWindow window;
  fill(&window, 2);
  EXPECT_FALSE(window.leave_refused(after(0ms), kDelay));
  EXPECT_TRUE(window.leave_refused(after(5ms), kDelay));
  EXPECT_FALSE(window.has_room(after(14ms)));
  EXPECT_EQ(fill(&window, 100, after(15ms)), 1) << "there is always one place";
  window.leave_answered(after(15ms));
  EXPECT_EQ(fill(&window, 100, after(15ms)), 2);
}

// Returns how many places there are after `answers` answers, each followed by a request, `time` after a refusal
// left 40.
int places_after(int answers, std::chrono::milliseconds time) {
  SendWindow window = full_window(40);
  int held = 40;
  for (int i = 0; i < answers; ++i) {
    window.leave_answered(after(time));
    held += fill(&window, 100, after(time)) - 1;
  }
  return held;
}

TEST(SendWindow, OpensByOnePlaceForEachWindowOfAnswers) {
  EXPECT_EQ(places_after(20, 999ms), 40);
  EXPECT_EQ(places_after(39, 999ms), 40);
  EXPECT_EQ(places_after(41, 999ms), 41);
  EXPECT_EQ(places_after(41 + 42, 999ms), 42);
}

TEST(SendWindow, OpensWithEachAnswerASecondAfterTheRefusal) { EXPECT_EQ(places_after(10, 1'001ms), 50); }

// Otherwise a session with little to do would open its window without bound.
TEST(SendWindow, OpensOnlyWhileItIsFull) {
  SendWindow window = full_window(40);
  for (int i = 0; i < 30; ++i) window.leave();
  for (int i = 0; i < 1'000; ++i) {
    window.leave_answered(after(2s));
    window.take();
  }
  EXPECT_EQ(fill(&window, 100), 30);
}

// A server that always has room for 40: the window finds out about once per 40 answers, not with each.
TEST(SendWindow, TriesOnePlaceForEachWindowOfAnswers) {
  SendWindow window = full_window(40);
  int held = 40, refusals = 0;
  for (int i = 0; i < 400; ++i) {
    window.leave_answered(after(1ms));
    --held;
    held += fill(&window, 100);
    for (; held > 40; --held, ++refusals) window.leave_refused(after(1ms), kDelay);
  }
  EXPECT_GE(refusals, 8);
  EXPECT_LE(refusals, 10);
}

}  // namespace
}  // namespace kilokv::client
