#include "client/lib/src/timers.hpp"

#include <gtest/gtest.h>

#include <future>
#include <vector>

namespace kilokv::client {
namespace {

TEST(Timers, CallsInOrderOfTime) {
  Timers timers;
  std::vector<int> called;
  std::promise<void> last;
  const TimePoint now = Clock::now();
  timers.at(now + std::chrono::milliseconds(300), [&] { last.set_value(); });
  timers.at(now + std::chrono::milliseconds(200), [&] { called.push_back(2); });
  const auto dropped = timers.at(now + std::chrono::milliseconds(150), [&] { called.push_back(9); });
  timers.at(now + std::chrono::milliseconds(100), [&] { called.push_back(1); });
  timers.cancel(dropped);
  timers.cancel(dropped);
  last.get_future().wait();
  EXPECT_EQ(called, (std::vector<int>{1, 2}));
}

TEST(Timers, MayBeDestroyedByItsOwnFunction) {
  auto timers = std::make_shared<Timers>();
  std::promise<void> done;
  Timers* raw = timers.get();
  raw->at(Clock::now(), [holder = std::move(timers), &done]() mutable {
    holder.reset();
    done.set_value();
  });
  done.get_future().wait();
}

}  // namespace
}  // namespace kilokv::client
