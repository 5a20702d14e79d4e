// Where one who watches a range stands in the log, and what comes next. It gives the durable writes of the range in the
// one serial order, each once. What the log does not keep any more, it cannot give: then it fails, and never skips.
//
// Thread safety: none.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "engine/base/status.hpp"
#include "server/core/commit_log.hpp"
#include "server/core/log_reader.hpp"
#include "server/core/position.hpp"

namespace kilokv::server {

// A place between two writes of the log: after all writes of this version and of earlier ones. If `writes` is not 0,
// the place is after that number of writes of this version.
struct WatchPosition {
  Version version = 0;
  std::uint32_t writes = 0;
  friend bool operator==(const WatchPosition&, const WatchPosition&) = default;
};

class WatchCursor {
 public:
  using Visit = std::function<void(const StoredRecord& write, const LoggedBatch& batch)>;

  // `reader` outlives it, and may serve other cursors, too. `to` empty: no upper bound.
  WatchCursor(LogReader* reader, std::string from, std::string to)
      : reader_(reader), from_(std::move(from)), to_(std::move(to)) {}

  // Goes to a position; nothing: to the end, which is `newest`. ABORTED: the log after the position is not kept any
  // more. INVALID_ARGUMENT: the position is after `newest`. Requires: all up to `newest` is durable.
  Status start(const WatchPosition* after, const Position& newest);

  // Visits what comes next, up to the batch `through`. It stops early before a write with which the writes would take
  // more than `bytes_max` (but it visits at least one), and after a bounded part of the log. ABORTED: as for start().
  // True: it has come to the end of `through`.
  Result<bool> advance(BatchNumber through, std::uint64_t bytes_max, const Visit& visit);

  const WatchPosition& position() const { return position_; }
  // Whether it stopped between two writes of one transaction.
  bool within_transaction() const { return within_transaction_; }
  std::string_view from() const { return from_; }
  std::string_view to() const { return to_; }

 private:
  Status find_batch(Version wanted, BatchNumber newest);
  bool is_in_range(std::string_view key) const { return key >= from_ && (to_.empty() || key < to_); }
  bool is_before_position(Version version, std::uint32_t index) const {
    if (version != position_.version) return version < position_.version;
    return position_.writes == 0 || index <= position_.writes;
  }

  LogReader* const reader_;
  const std::string from_, to_;
  WatchPosition position_;
  BatchNumber batch_ = 1;  // the first one that may have a write after the position
  bool within_transaction_ = false;
};

}  // namespace kilokv::server
