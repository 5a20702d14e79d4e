#include "client/lib/src/send_queue.hpp"

#include <gtest/gtest.h>

namespace kilokv::client {
namespace {

TEST(SendQueue, GivesTheLowestNumber) {
  SendQueue queue;
  EXPECT_EQ(queue.next(true), 0u);
  EXPECT_TRUE(queue.empty());
  queue.insert(7, false);
  queue.insert(5, true);
  queue.insert(3, false);
  EXPECT_EQ(queue.next(true), 3u);
  queue.erase(3);
  EXPECT_EQ(queue.next(true), 5u);
  queue.erase(5);
  EXPECT_EQ(queue.next(true), 7u);
  EXPECT_FALSE(queue.empty());
  queue.erase(7);
  EXPECT_EQ(queue.next(true), 0u);
  EXPECT_TRUE(queue.empty());
}

TEST(SendQueue, WithoutRoomOnlyThoseThatMayWaitGo) {
  SendQueue queue;
  queue.insert(1, false);
  EXPECT_EQ(queue.next(false), 0u);
  EXPECT_FALSE(queue.empty());
  queue.insert(9, true);
  EXPECT_EQ(queue.next(false), 9u);
  queue.clear();
  EXPECT_TRUE(queue.empty());
  EXPECT_EQ(queue.next(false), 0u);
}

TEST(SendQueue, KeepsANumberOnce) {
  SendQueue queue;
  queue.insert(4, false);
  queue.insert(4, false);
  queue.erase(4);
  EXPECT_TRUE(queue.empty());
}

}  // namespace
}  // namespace kilokv::client
