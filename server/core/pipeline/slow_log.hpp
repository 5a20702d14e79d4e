// Notes the transactions that took longer than --slow-transaction, with the reason: keeps the latest of them, and tells
// the program about some, for its log.
//
// Cost: a fast transaction costs one comparison for its part of a batch. A slow one costs about a microsecond, and of
// each reason at most kRecordsPerSecond a second are noted. The others are counted. So a server that is late with
// everything is not made later. Transactions that wait for a guard are often slow by intention, so each reason has a
// room of its own: those that wait push out no others.
//
// A request of many transactions is one record for each batch in which some of them end.
//
// Thread safety: only the answer worker calls look(); any thread may call the rest.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <vector>

#include "server/core/options.hpp"
#include "server/core/pipeline/batch.hpp"
#include "server/core/slow_transaction.hpp"

namespace kilokv::server {

class SlowLog {
 public:
  static constexpr std::size_t kKept = 64;  // of each reason; with its key, a record has at most about 1.5 KiB
  static constexpr std::uint32_t kRecordsPerSecond = 50, kLinesPerSecond = 5;  // of each reason

  // DatabaseEvents::transaction_slow.
  using Tell = std::function<void(const SlowTransaction&, std::uint64_t left_out)>;

  explicit SlowLog(const DatabaseOptions& options)
      : threshold_us_(options.slow_transaction_us), large_reads_(options.batch_max_reads / kLargeShare) {}

  // The batch was answered now: `now_us` on the monotonic clock, `wall_us` on the other one.
  void look(const Batch& batch, TimeUs now_us, TimeUs wall_us, const Tell& tell);

  // What is kept, the latest first.
  std::vector<SlowTransaction> latest() const;
  // How many were slow since the start, by SlowReason.
  std::array<std::uint64_t, kSlowReasons> counts() const;

 private:
  // A transaction that reads this part of a whole batch makes its batch slow by itself.
  static constexpr std::uint64_t kLargeShare = 4;

  struct OfReason {
    std::uint64_t count = 0;
    std::deque<SlowTransaction> kept;  // the latest is the last
    TimeUs second_us = 0;              // since then:
    std::uint32_t records = 0, lines = 0;
    std::uint64_t untold = 0;  // since the last line
  };

  SlowTransaction times_of(const Batch& batch, const BatchPart& part, TimeUs now_us) const;
  static void describe(const Batch& batch, const BatchPart& part, SlowTransaction* slow);
  void note(const Batch& batch, const BatchPart& part, SlowTransaction slow, TimeUs now_us, const Tell& tell);

  const DurationUs threshold_us_;  // 0: nothing is slow
  const std::uint64_t large_reads_;
  mutable std::mutex mutex_;
  std::array<OfReason, kSlowReasons> reasons_;
};

}  // namespace kilokv::server
