// A transaction that took long, with the times of its way through the pipeline, and why it took long as far as the
// pipeline knows it (core/pipeline/slow_log.hpp).
//
// Thread safety: plain data and pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "engine/base/types.hpp"
#include "engine/txn/program.hpp"
#include "server/core/request_identity.hpp"
#include "server/core/trace_parent.hpp"

namespace kilokv::server {

// The stage that took longest. The first two are about the transaction itself. The others are about its batch, which it
// shares with others.
enum class SlowReason : std::uint8_t {
  waiting,     // parked: its guard was false
  queued,      // before its batch: others had their turns, or earlier batches were in flight
  large_read,  // the execution of its batch, and it reads a large part of what a batch may read
  execution,   // the execution of its batch
  sync,        // the log: the append and the sync of its batch, and of those before it
  answer,      // the answers of its batch
};
inline constexpr std::size_t kSlowReasons = 6;
constexpr const char* to_string(SlowReason reason) {
  switch (reason) {
    case SlowReason::waiting: return "waiting";
    case SlowReason::queued: return "queued";
    case SlowReason::large_read: return "large_read";
    case SlowReason::execution: return "execution";
    case SlowReason::sync: return "sync";
    case SlowReason::answer: return "answer";
  }
  return "";
}

struct SlowTransaction {
  SlowReason reason = SlowReason::queued;
  TimeUs answered_us = 0;  // the wall clock, when it was answered
  // From its admission to its answer, and the parts of this time. What a client sends is decoded before the admission.
  DurationUs total_us = 0;
  DurationUs queued_us = 0, waited_us = 0, execution_us = 0, sync_us = 0, answer_us = 0;
  std::string client;  // its name (clients/client.hpp)
  std::optional<SessionId> session;
  std::uint64_t request = 0;  // number in the session
  std::uint32_t index = 0;    // in the request, of the first transaction that this is about
  // So many transactions of the request ended with the same batch, and so took as long.
  std::uint32_t transactions = 1;
  engine::Outcome outcome = engine::Outcome::undecided;  // of the first
  BatchNumber batch = 0, admitted_batch = 0;
  std::uint32_t batch_transactions = 0;
  std::uint64_t reads = 0;  // the most keys that a transaction of the request may look at
  // waiting: the guard for which it was parked last, and its key; for a guard on a range, the begin of the range; empty
  // for a guard without a key.
  std::uint32_t guard = engine::kNone;
  bool guards_range = false;
  std::string guard_key;
  TraceParent trace;
};

}  // namespace kilokv::server
