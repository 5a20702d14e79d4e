// A batch and the state before it as text, for the log: one JSON object in each line. With this text the batch can be
// run again.
//
//   {"batch": 7, "batch_time_us": ..., "first_version": ..., "tombstone_floor": ..., "records": 2, "transactions": 3}
//   {"key": "alice", "value": 100, "version": 12}
//   {"precedence": 0, "wait_timeout_ms": 0, "guards": [...], "then": [...], "else": [...]}
//
// The first line describes the batch. Each line of the second kind is a record that the batch names, in the form of
// `kilokv scan`. Each line of the third kind is a transaction, in the order of the batch. `kilokv txn --batch` reads
// these lines (docs/history.md).
// wait_timeout_ms is 0 for a transaction whose time was up with this batch. The text has at most kBatchTextBytesMax
// bytes, half of them for records. Lines that do not fit are left out. Then one more line, the last, says how many of
// each kind:
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

// A value as in those lines: a number, {"b64": "..."}, or null if absent.
std::string value_text(const engine::ModelValue& value);

}  // namespace kilokv::server
