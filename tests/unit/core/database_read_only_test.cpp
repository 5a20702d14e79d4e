// A server with --read-only: reads are answered, and nothing changes the state.
#include <gtest/gtest.h>

#include <optional>
#include <utility>

#include "tests/unit/core/core_fixture.hpp"

namespace kilokv::server {
namespace {

class ReadOnlyTest : public CoreFixture {
 protected:
  void start_read_only() {
    options.read_only = true;
    reopen();
  }
  static Build remove(const std::string& key) {
    return [=](engine::ColumnsBuilder& b) {
      b.begin();
      b.op(engine::OpKind::del, b.key(key));
      b.end();
    };
  }
};

TEST_F(ReadOnlyTest, ReadsAreAnsweredAndWritesRefused) {
  run(add("a", 5));
  const Hash128 hash = database->status().state_hash;
  start_read_only();
  EXPECT_EQ(integer("a"), 5);
  for (const Build& write : {add("a", 1), remove("a"), both(add("b", 0), remove("c"))}) {
    const auto sink = run(write);
    ASSERT_TRUE(sink->failure);
    EXPECT_EQ(sink->failure->code(), StatusCode::failed_precondition);
    EXPECT_EQ(sink->failure->reason(), ErrorReason::read_only);
    EXPECT_TRUE(sink->failure->not_run());
    EXPECT_NE(sink->failure->message().find("--read-only"), std::string::npos) << sink->failure->message();
  }
  EXPECT_EQ(integer("a"), 5);
  EXPECT_EQ(database->status().state_hash, hash);
}

TEST_F(ReadOnlyTest, ASessionReturnsWhatItStoredAndDoesNotEnd) {
  const SessionId session = open_session(options.session_lease_us_min);
  run(add("a", 5), session, 1);
  start_read_only();
  sim.clock.advance(10 * options.session_lease_us_min);
  settle();
  EXPECT_EQ(database->status().sessions, 1u);
  const auto again = run(add("a", 5), session, 1);
  EXPECT_EQ(again->outcome(0), engine::Outcome::committed);
  EXPECT_TRUE(run(add("a", 5), session, 2)->failure);
  EXPECT_EQ(integer("a"), 5);
  Status opened;
  database->open_session({}, nullptr, 0,
                         [&](const Result<SessionId>& result, DurationUs) { opened = result.status(); });
  settle();
  EXPECT_EQ(opened.code(), StatusCode::failed_precondition);
}

// An attach changes the session, and is in the log. What a holder has stored can still be listed.
TEST_F(ReadOnlyTest, NobodyAttachesAndAHolderMayList) {
  const SessionId session = open_session(options.session_lease_us_max);
  AttachTarget target{.session = session, .bytes_max = std::uint64_t{1} << 20};
  std::optional<Result<SessionList>> answer;
  const auto attach = [&] {
    answer.reset();
    database->attach_session({}, nullptr, target, [&](Result<SessionList> list) { answer = std::move(list); }, {});
    settle();
  };
  attach();
  ASSERT_TRUE(answer && answer->ok());
  EXPECT_FALSE((*answer)->frozen);
  start_read_only();
  attach();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status().reason(), ErrorReason::read_only);
  EXPECT_TRUE(answer->status().not_run());
  target.holder = 1;
  attach();
  EXPECT_TRUE(answer && answer->ok());
}

TEST_F(ReadOnlyTest, KeepsTombstones) {
  options.tombstone_retention_us = 1000;
  options.snapshot_age_us_max = 1000;
  options.checkpoint_interval_us = 1000;
  reopen();
  run(add("a", 5));
  run(remove("a"));
  start_read_only();
  const Hash128 hash = database->status().state_hash;
  for (int i = 0; i < 20; ++i) {
    sim.clock.advance(1000000);
    integer("b");
  }
  EXPECT_EQ(database->status().state_hash, hash);
}

}  // namespace
}  // namespace kilokv::server
