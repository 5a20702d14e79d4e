// The account of one connection, without a network: what belongs to no whole message, and what open calls hold of it.
#include "server/edge/connection_account.hpp"

#include <gtest/gtest.h>

#include <cstdint>

namespace kilokv::server {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::uint64_t kMessage = 4 * kMiB;
constexpr std::int64_t kStepMs = 100;

class ConnectionAccountTest : public testing::Test {
 protected:
  // Time passes, and these bytes come.
  void look(std::uint64_t received = 0) {
    now_ms += kStepMs;
    bytes.received += received;
    forgiven += account.look(use, bytes, forgivable, now_ms);
  }
  // The same, until what was there for a while is known.
  void look_for_long(std::uint64_t received_each = 0) {
    for (int i = 0; i < 60; ++i) look(received_each);
  }

  const ConnectionLimits limits{.message_bytes_max = kMessage,
                                .messages_more = 4,
                                .unread_bytes_max = 32 * kMiB,
                                .calls_max = 100,
                                .cancels_max = 1000};
  std::int64_t now_ms = 1000000;
  PeerUse use;
  SocketBytes bytes;
  std::uint64_t forgivable = 0, forgiven = 0;
  ConnectionAccount account{&limits, use, now_ms};
};

TEST_F(ConnectionAccountTest, WholeMessagesAndHeadersAreNotUnread) {
  look(10 * kMiB);
  EXPECT_GT(account.unread(), 9 * kMiB);
  use.accounted_bytes = 10 * kMiB;
  look();
  EXPECT_EQ(account.unread(), 0u);
  look(2 * kMiB);
  use.accounted_bytes = kMiB;  // counted from the begin again
  look();
  EXPECT_NEAR(static_cast<double>(account.unread()), 1.0 * kMiB, 10000);
}

TEST_F(ConnectionAccountTest, AQuietConnectionIsForgivenItsPings) {
  look_for_long(1000);
  EXPECT_EQ(account.unread(), 0u);
  bytes.taken = 160 * kMiB;  // a client that takes long answers opens its windows
  look(9 * kMiB);
  EXPECT_EQ(account.unread(), 0u);
}

TEST_F(ConnectionAccountTest, TheMessagesOfSeveralCallsMayBeManyBytesForAMoment) {
  account.inspect({.started = 5}, now_ms);
  look(20 * kMiB);
  EXPECT_EQ(account.unread(), 0u) << "nothing has lasted";
  look_for_long();
  EXPECT_GT(account.unread(), 19 * kMiB);
  EXPECT_EQ(account.unread(), account.held());
  account.inspect({.started = 5, .answered = 5}, now_ms);
  EXPECT_EQ(account.held(), 0u) << "no call is open";
  EXPECT_TRUE(account.has_lost_calls());
  EXPECT_GT(account.lose(), 19 * kMiB);
  EXPECT_EQ(account.unread(), 0u);
}

TEST_F(ConnectionAccountTest, WhatWasThereFor300MsHasLasted) {
  look(kMiB);
  for (int i = 0; i < 2; ++i) look();
  EXPECT_EQ(account.lasting(), 0u);
  look();
  EXPECT_GT(account.lasting(), kMiB / 2);
}

TEST_F(ConnectionAccountTest, MoreThanAllMayHaveIsTooMuchAtOnce) {
  account.inspect({.started = 5}, now_ms);
  look(100 * kMiB);
  EXPECT_GT(account.unread(), account.unread_bytes_max());
}

TEST_F(ConnectionAccountTest, ManyShortCallsDoNotHideAMessageThatIsLate) {
  use.late_since_ms = now_ms;
  for (int i = 0; i < 60; ++i) {
    use.accounted_bytes += kMiB;  // far more than their headers have
    look(100000);
  }
  EXPECT_EQ(account.held_by_late(), 6000000u);
  EXPECT_EQ(account.held(), 0u) << "nobody is cut off for it";
  EXPECT_EQ(account.unread(), 0u);
  use.message_bytes += 1000000;
  look();
  EXPECT_EQ(account.held_by_late(), 5000000u) << "less what was a whole message";
  EXPECT_EQ(account.late_for_ms(now_ms), 61 * kStepMs);
}

TEST_F(ConnectionAccountTest, WhatCameBeforeTheCallBeganIsNoPartOfItsMessage) {
  look_for_long(10000);  // headers of short calls
  use.late_since_ms = now_ms;
  look(1000);
  EXPECT_LE(account.held_by_late(), 20 * 10000 + 1000u) << "what came since the last sample";
  EXPECT_GE(account.held_by_late(), 10 * 10000 + 1000u) << "it may have begun at any time since then";
}

TEST_F(ConnectionAccountTest, LateCallsThatHaveEndedHoldNothing) {
  use.late_since_ms = now_ms;
  look_for_long(100000);
  EXPECT_EQ(account.tell_late(now_ms), 0);
  look(100000);
  EXPECT_EQ(account.tell_late(now_ms), kStepMs) << "they have not ended yet";
  EXPECT_EQ(account.held_by_late(), 6100000u);
  use.late_since_ms = PeerUse::kNever;
  look();
  EXPECT_EQ(account.held_by_late(), 0u);
  use.late_since_ms = now_ms;
  look(5000);
  EXPECT_LE(account.held_by_late(), 21 * 100000 + 5000u) << "what came after all that were told had begun";
  EXPECT_GE(account.held_by_late(), 105000u);
  EXPECT_EQ(account.tell_late(now_ms), 0);
}

// Many streams that are late one after the other: there is no moment in which none is.
TEST_F(ConnectionAccountTest, CallsThatAreLateLaterWereNotTold) {
  use.late_since_ms = now_ms;
  look_for_long(100000);
  EXPECT_EQ(account.tell_late(now_ms), 0);
  use.late_since_ms = now_ms - 500;  // the others have ended
  look(3000);
  EXPECT_GE(account.held_by_late(), 5 * 100000u + 3000) << "what came since this one began";
  EXPECT_LE(account.held_by_late(), 21 * 100000u + 3000) << "without what came before";
  EXPECT_EQ(account.tell_late(now_ms), 0) << "now they are told";
}

TEST_F(ConnectionAccountTest, WhatLateCallsHeldIsGoneWhenTheyHaveEnded) {
  account.inspect({.started = 5}, now_ms);
  use.late_since_ms = now_ms;
  look_for_long(100000);
  account.tell_late(now_ms);
  EXPECT_GT(account.held(), 5000000u - 60 * kStepMs * 16);
  use.late_since_ms = PeerUse::kNever;
  look(50000);
  look_for_long();
  EXPECT_LE(account.held(), 20 * 100000u + 50000) << "what came after the last sample, and for others";
}

TEST_F(ConnectionAccountTest, WhatRefusedCallsMayHaveBroughtIsForgivenAsFarAsItMay) {
  forgivable = kMiB;
  use.forgiven_bytes = 4 * kMiB;
  look(100000);
  EXPECT_EQ(account.unused(), 0u);
  EXPECT_GT(forgiven, 100000u - 2000) << "only what came is forgiven";
  EXPECT_LE(forgiven, 100000u);
  forgiven = 0;
  use.forgiven_bytes += 8 * kMiB;
  look(3 * kMiB);
  EXPECT_EQ(forgiven, kMiB) << "the address may be forgiven no more now";
  EXPECT_GT(account.unused(), 2 * kMiB - 2000);
  forgiven = 0;
  look(3 * kMiB);
  EXPECT_EQ(forgiven, 0u) << "no call was refused meanwhile";
}

TEST_F(ConnectionAccountTest, BytesThatAreCountedFromTheBeginAgainHideNothingAndAddNothing) {
  use.message_bytes = 50 * kMiB;
  look(50 * kMiB);
  look_for_long();
  account.tell_late(now_ms);
  use.message_bytes = 0;
  use.late_since_ms = now_ms;
  look(3000);
  EXPECT_EQ(account.held_by_late(), 3000u);
}

TEST_F(ConnectionAccountTest, CancelledCallsHaveARate) {
  look();
  EXPECT_EQ(account.inspect({.started = 900, .failed = 900}, now_ms), 900);
  EXPECT_FALSE(account.cancels_too_much());
  EXPECT_EQ(account.inspect({.started = 1100, .failed = 1100}, now_ms), 200);
  EXPECT_TRUE(account.cancels_too_much()) << "1,100 at once";
  now_ms += 200;
  account.inspect({.started = 1150, .failed = 1150}, now_ms);
  EXPECT_FALSE(account.cancels_too_much()) << "the rate has given back 200, of which 150 are used";
  EXPECT_EQ(account.inspect({.started = 1350, .failed = 1150}, now_ms), 100) << "more are open than may be";
  EXPECT_EQ(account.inspect({.started = 1350, .answered = 200, .failed = 1150}, now_ms), -100) << "they were answered";
}

TEST_F(ConnectionAccountTest, CallsWithoutAValidLoginCountAsEightCancelledOnes) {
  use.calls_without_login = 110;
  look();
  EXPECT_EQ(account.without_login(), 110u);
  EXPECT_EQ(account.inspect({.started = 1000, .answered = 1000}, now_ms), 0) << "none was cancelled";
  EXPECT_FALSE(account.cancels_too_much());
  use.calls_without_login = 12;  // the service has begun to count again
  look();
  account.inspect({.started = 1100, .answered = 1100}, now_ms);
  EXPECT_FALSE(account.cancels_too_much());
  use.calls_without_login = 72;
  look();
  account.inspect({.started = 1600, .answered = 1600}, now_ms);
  EXPECT_TRUE(account.cancels_too_much()) << "182 at once, where 125 may be";
}

// Who sends little is inspected seldom: what counts is the rate.
TEST_F(ConnectionAccountTest, AFewCallsInALongTimeAreNotTooMany) {
  use.calls_without_login = 300;
  now_ms += 300'000;
  look();
  account.inspect({.started = 300, .answered = 300}, now_ms);
  EXPECT_FALSE(account.cancels_too_much()) << "one in a second";
  use.calls_without_login += 126;
  look();
  account.inspect({.started = 426, .answered = 426}, now_ms);
  EXPECT_TRUE(account.cancels_too_much()) << "the long time gives no more than one second does";
}

}  // namespace
}  // namespace kilokv::server
