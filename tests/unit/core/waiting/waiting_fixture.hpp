// A table, and transactions that wait for its keys. Thread safety: none.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/core/waiting/waiting.hpp"
#include "tests/unit/core/table_fixture.hpp"

namespace kilokv::server {

using Ids = std::vector<std::uint64_t>;

constexpr std::size_t kPart = 1000;  // of a cancel, at most

class WaitingTest : public ::testing::Test {
 protected:
  // Waits until the key holds `amount`.
  std::uint64_t park(const std::string& key, std::uint64_t arrival, TimeUs deadline_us = 1000000,
                     std::int64_t amount = 1, std::optional<SessionId> session = {}, std::uint64_t request = 0,
                     std::uint32_t index = 0) {
    Parked parked;
    parked.arrival = arrival;
    parked.deadline_us = deadline_us;
    parked.session = session;
    parked.request = request;
    parked.index = index;
    const Result<std::uint64_t> id = waiting.park(withdrawal(key, amount), 0, std::move(parked));
    EXPECT_TRUE(id.ok());
    waiting.end_batch({});
    return id.ok() ? *id : 0;
  }
  static engine::TransactionColumns withdrawal(const std::string& key, std::int64_t amount) {
    engine::TransactionColumns columns;
    engine::ColumnsBuilder b(&columns, WrittenTable::kSecret);
    b.begin(0, 1000);
    const std::uint32_t k = b.key(key);
    b.guard(engine::GuardKind::greater_equal, engine::OnFalse::wait, k, amount);
    b.op(engine::OpKind::add, k, engine::Operand::integer, -amount);
    b.end();
    return columns;
  }
  // A batch that adds to the key, and what follows from it.
  void deposit(const std::string& key, std::int64_t amount) {
    table.add(key, amount);
    waiting.end_batch(table.engine()->before_images());
    wake();
  }
  void wake(bool idle = false) { waiting.wake_candidates(*table.engine(), table.now().batch, idle); }

  // Takes at most `max`, and no more than `taken_max` of those that are offered.
  Ids hand_out(TimeUs stamp_us = 0, std::size_t max = 100, std::size_t taken_max = 100) {
    Ids ids;
    std::size_t offered = 0;
    const std::size_t taken = waiting.hand_out(
        stamp_us, max,
        [&](const Parked&) { return ++offered > taken_max ? Waiting::Answer::full : Waiting::Answer::taken; },
        [&](const Parked& parked) { ids.push_back(parked.id); });
    EXPECT_EQ(taken, ids.size());
    return ids;
  }
  static Waiting::Answer take_all_offered(const Parked&) { return Waiting::Answer::taken; }
  void forget(const Ids& ids) {
    std::size_t looks = kLooksPerStep;
    EXPECT_EQ(waiting.forget(ids, &looks), ids.size());
  }
  static bool nothing_is_queued(const RequestName&) { return false; }
  // How many a cancel ends.
  std::optional<std::size_t> cancel(const CancelTarget& target, TimeUs now_us = 0) {
    waiting.cancel(target, now_us, [](const Result<std::uint64_t>&) {});
    const auto cancelled = waiting.take_cancelled(nothing_is_queued, kPart);
    return cancelled ? std::optional(cancelled->parked.size()) : std::nullopt;
  }

  DatabaseOptions options;
  WrittenTable table;
  Waiting waiting{options};
};

}  // namespace kilokv::server
