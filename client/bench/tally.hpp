// The counts of a run. Thread safety: none. Each driver has its own under its lock; the runner merges them.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "client/measure/histogram.hpp"
#include "kilokv/client.hpp"
#include "kilokv/results.hpp"

namespace kilokv::bench {

inline constexpr std::size_t kOutcomes = 7;  // client::Outcome

struct Counts {
  std::array<std::uint64_t, kOutcomes> outcomes{};  // transactions, by outcome
  std::uint64_t errors = 0;                         // transactions that never ran: the server refused them
  std::uint64_t unknown = 0;                        // transactions whose outcome stayed unknown
  std::uint64_t requests = 0;
  std::uint64_t retries = 0;  // requests sent again
  std::uint64_t sent = 0;     // transactions that were sent at least once
  // Open loop: transactions that were due before the end, and those of them for which no request was free.
  std::uint64_t due = 0, not_sent = 0;
  // Open loop: the time in which a request was due, and all were in flight. Sum over the connections.
  std::int64_t full_us = 0;
  client::Refusals refusals;  // of requests, in sessions

  std::uint64_t of(client::Outcome outcome) const { return outcomes[static_cast<std::size_t>(outcome)]; }
  std::uint64_t answered() const {
    std::uint64_t sum = 0;
    for (const std::uint64_t count : outcomes) sum += count;
    return sum;
  }
  void merge(const Counts& other) {
    for (std::size_t i = 0; i < kOutcomes; ++i) outcomes[i] += other.outcomes[i];
    errors += other.errors;
    unknown += other.unknown;
    requests += other.requests;
    retries += other.retries;
    sent += other.sent;
    due += other.due;
    not_sent += other.not_sent;
    full_us += other.full_us;
    refusals.count += other.refusals.count;
    refusals.early += other.refusals.early;
    refusals.asked_us += other.refusals.asked_us;
    refusals.waited_us += other.refusals.waited_us;
  }
};

struct Tally {
  Counts counts;
  Histogram latency_us;             // of each transaction, from the time at which it should have started
  std::int64_t longest_gap_us = 0;  // time without any answer on a connection

  void merge(const Tally& other) {
    counts.merge(other.counts);
    latency_us.merge(other.latency_us);
    longest_gap_us = std::max(longest_gap_us, other.longest_gap_us);
  }
};

}  // namespace kilokv::bench
