// A session of a backup as of an earlier batch or time: it has no results of later batches.
#include "server/offline/as_of.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "server/core/sessions/stored_results.hpp"
#include "tests/unit/core/sessions/recorded_results.hpp"

namespace kilokv::server::offline {
namespace {

constexpr TimeUs kTimeOfBatch = 1000;  // batch n has the stamp n times this

std::string results_of(BatchNumber batch, const std::vector<std::uint32_t>& indices) {
  std::vector<RecordedResult> results;
  for (const std::uint32_t index : indices) {
    RecordedResult recorded;
    recorded.result.index = index;
    recorded.result.outcome = engine::Outcome::committed;
    recorded.result.batch = recorded.result.admitted_batch = batch;
    recorded.result.batch_time_us = static_cast<TimeUs>(batch) * kTimeOfBatch;
    results.push_back(recorded);
  }
  std::string encoded;
  std::uint64_t read_bytes = std::numeric_limits<std::uint64_t>::max();
  encode_results(RecordedSlice(std::move(results)), read_bytes, &read_bytes, &encoded);
  return encoded;
}

// Request 1 was decided in batch 5, request 2 in batches 5 and 7, request 3 in batch 7.
StoredSession session() {
  StoredSession session;
  session.acknowledged_through = 0;
  session.holder = 2;
  session.requests = {
      {.number = 1, .digest = {}, .transactions = 2, .results = {results_of(5, {0, 1})}},
      {.number = 2, .digest = {}, .transactions = 2, .results = {results_of(5, {1}), results_of(7, {0})}},
      {.number = 3, .digest = {}, .transactions = 1, .results = {results_of(7, {0})}}};
  return session;
}

// How many results each request has, by its number.
std::vector<std::pair<std::uint64_t, std::size_t>> counts(const StoredSession& session) {
  std::vector<std::pair<std::uint64_t, std::size_t>> counts;
  for (const StoredSession::Request& request : session.requests) {
    counts.emplace_back(request.number, request.results.size());
  }
  return counts;
}

using Counts = std::vector<std::pair<std::uint64_t, std::size_t>>;

Counts as_of(const storage::BackupUntil& until) {
  StoredSession earlier = session();
  EXPECT_TRUE(drop_later_results(until, &earlier).ok());
  EXPECT_EQ(earlier.holder, 2u);
  return counts(earlier);
}

TEST(AsOf, KeepsTheResultsUpToTheBatch) {
  EXPECT_EQ(as_of({.batch = 4, .time_us = {}}), Counts());
  for (const BatchNumber batch : {5, 6}) {
    EXPECT_EQ(as_of({.batch = batch, .time_us = {}}), (Counts{{1, 1}, {2, 1}})) << batch;
  }
  EXPECT_EQ(as_of({.batch = 7, .time_us = {}}), (Counts{{1, 1}, {2, 2}, {3, 1}}));
}

TEST(AsOf, KeepsTheResultsUpToTheTime) {
  for (const TimeUs time_us : {5 * kTimeOfBatch, 7 * kTimeOfBatch - 1}) {
    EXPECT_EQ(as_of({.batch = {}, .time_us = time_us}), (Counts{{1, 1}, {2, 1}})) << time_us;
  }
  EXPECT_EQ(as_of({.batch = {}, .time_us = 7 * kTimeOfBatch}), (Counts{{1, 1}, {2, 2}, {3, 1}}));
}

TEST(AsOf, MalformedResultsAreDamage) {
  StoredSession damaged = session();
  damaged.requests[0].results[0] = "no results";
  EXPECT_EQ(drop_later_results({.batch = 5, .time_us = {}}, &damaged).code(), StatusCode::data_loss);
}

// What reaches the next target.
class Sessions final : public storage::BackupTarget {
 public:
  Status header(const storage::BackupHeader&) override { return {}; }
  Status state(const StoredRecord&, std::string_view) override { return {}; }
  Status session(const StoredSession& session, std::string_view) override {
    seen.push_back(counts(session));
    return {};
  }
  Status log(const storage::RecordView&, std::string_view) override { return {}; }
  std::vector<Counts> seen;
};

TEST(AsOf, PassesEverythingOnWithoutALimit) {
  Sessions next;
  ASSERT_TRUE(AsOf({}, &next).session(session(), "key").ok());
  ASSERT_TRUE(AsOf({.batch = 6, .time_us = {}}, &next).session(session(), "key").ok());
  EXPECT_EQ(next.seen, (std::vector<Counts>{counts(session()), {{1, 1}, {2, 1}}}));
}

}  // namespace
}  // namespace kilokv::server::offline
