// Shared parts of the tests of SessionTable: a sink that checks how it is called, and slices to deliver. Thread safety:
// a sink takes one call at a time, and checks that; the rest: none.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/core/sessions/session_table.hpp"
#include "server/core/sessions/stored_results.hpp"
#include "tests/unit/core/sessions/recorded_results.hpp"

namespace kilokv::server {

// Keeps the indices that it was shown. Fails the test if calls overlap, come after the end, or repeat an index.
class CheckingSink : public ResponseSink {
 public:
  void results(const ResultSlice& slice, bool last) override {
    const bool overlapping = busy_.exchange(true);
    EXPECT_FALSE(overlapping);
    EXPECT_FALSE(ended());
    struct IndexVisitor : ResultVisitor {
      void transaction(const TransactionResult& result) override {
        EXPECT_EQ(std::count(indices->begin(), indices->end(), result.index), 0) << "index " << result.index;
        indices->push_back(result.index);
      }
      void guard_value(const ReadValue& /*value*/) override {}
      void read(std::uint32_t /*operation*/, const ReadValue& /*value*/) override {}
      std::vector<std::uint32_t>* indices = nullptr;
    } visitor;
    visitor.indices = &indices_;
    slice.visit(&visitor);
    last_ = last;
    busy_ = false;
    if (then_) {
      then_();
    }
  }

  void fail(const Status& status) override {
    EXPECT_FALSE(busy_);
    EXPECT_FALSE(ended());
    failure_ = status;
  }

  bool gone() const override { return gone_; }
  void go() { gone_ = true; }

  void then(std::function<void()> then) { then_ = std::move(then); }

  // The indices in the order in which they were shown.
  const std::vector<std::uint32_t>& indices() const { return indices_; }
  bool last() const { return last_; }
  const Status& failure() const { return failure_; }
  bool ended() const { return last_ || !failure_.ok(); }

 private:
  std::atomic<bool> busy_{false}, gone_{false};
  std::vector<std::uint32_t> indices_;
  bool last_ = false;
  Status failure_;
  std::function<void()> then_;
};

inline RecordedSlice slice_of(const std::vector<std::uint32_t>& indices, BatchNumber batch = 1) {
  std::vector<RecordedResult> results;
  for (const std::uint32_t index : indices) {
    RecordedResult recorded;
    recorded.result.index = index;
    recorded.result.outcome = engine::Outcome::committed;
    recorded.result.batch = recorded.result.admitted_batch = batch;
    results.push_back(recorded);
  }
  return RecordedSlice(std::move(results));
}

inline std::string encoded(const ResultSlice& slice) {
  std::string bytes;
  std::uint64_t read_bytes = ~std::uint64_t{0};
  encode_results(slice, ~std::uint64_t{0}, &read_bytes, &bytes);
  return bytes;
}

// Returns all sessions, as one walk shows them.
inline std::vector<StoredSession> snapshot_of(const SessionTable& table) {
  std::vector<StoredSession> sessions;
  EXPECT_TRUE(table
                  .walk([&](const StoredSession& session) {
                    sessions.push_back(session);
                    return Status();
                  })
                  .ok());
  return sessions;
}

inline SessionId session_id(unsigned char n) {
  SessionId id;
  id.bytes.fill(n);
  return id;
}

inline constexpr SessionLimits kTestLimits{.sessions_max = 100,
                                           .session_lease_us_min = 1000,
                                           .session_lease_us_max = 1'000'000'000,
                                           .session_requests_max = 1000,
                                           .session_bytes_max = 1'000'000,
                                           .session_bytes_total_max = 1'500'000};

inline constexpr DurationUs kLeaseUs = 10'000'000;
inline constexpr Hash128 kDigest{1, 2};
inline Hash128 digest_of_number(std::uint64_t number) { return {number * 31, number}; }

// A table with one session.
class SessionTableTest : public testing::Test {
 protected:
  SessionTableTest() { EXPECT_TRUE(table_.open(kId, kLeaseUs, now_us_).ok()); }

  RequestHeader header(std::uint64_t number, std::uint32_t transactions, std::shared_ptr<CheckingSink> sink) const {
    return {{kId, number, 0, kDigest}, transactions, std::move(sink)};
  }

  SessionAdmission begin(std::uint64_t number, std::uint32_t transactions, const std::shared_ptr<CheckingSink>& sink) {
    return table_.begin(header(number, transactions, sink), now_us_);
  }

  Status refusal(const RequestHeader& header) {
    const SessionAdmission admission = table_.begin(header, now_us_);
    EXPECT_EQ(admission.kind, SessionAdmission::Kind::refused);
    return admission.status;
  }

  void deliver(std::uint64_t number, const std::vector<std::uint32_t>& indices, BatchNumber batch = 1) {
    const RecordedSlice slice = slice_of(indices, batch);
    table_.deliver(kId, number, slice, encoded(slice));
  }

  static std::shared_ptr<CheckingSink> sink() { return std::make_shared<CheckingSink>(); }

  const SessionId kId = session_id(7);
  TimeUs now_us_ = 1'000'000;
  SessionTable table_{kTestLimits};
};

}  // namespace kilokv::server
