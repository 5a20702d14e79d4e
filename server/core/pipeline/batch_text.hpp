// A batch and the state before it as text, for the log: one JSON object a line, with which it can be run again.
//
//   {"batch": 7, "batch_time_us": ..., "first_version": ..., "tombstone_floor": ..., "records": 2, "transactions": 3}
//   {"key": "alice", "value": 100, "version": 12}            the records that the batch names, as `kilokv scan` has
//   them
//   {"precedence": 0, "wait_timeout_ms": 0, "guards": [...], "then": [...], "else": [...]}
//
// The last kind is what `kilokv txn --batch` reads (docs/history.md), in the order of the batch. wait_timeout_ms is 0
// of a transaction whose time was up with this batch. The text has at most kBatchTextBytesMax, half of it for records:
// what does not fit is left out, and one more line, the last, says how many of each kind are:
//
//   {"records_left_out": 5, "transactions_left_out": 0}
//
// Thread safety: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "engine/referee/model.hpp"
#include "engine/txn/columns.hpp"
#include "engine/txn/results.hpp"

namespace kilokv::server {

inline constexpr std::size_t kBatchTextBytesMax = std::size_t{8} << 20;  // without the first line and the last

std::string batch_text(const engine::BatchHeader& header, const engine::TransactionColumns& columns,
                       std::span<const std::uint8_t> expires, const engine::ModelState& before);

// As in those lines: a number, {"b64": "..."}, or null where absent.
std::string value_text(const engine::ModelValue& value);

}  // namespace kilokv::server
