#include "server/core/reads/watch_cursor.hpp"

#include <algorithm>

namespace kilokv::server {
namespace {

constexpr std::uint64_t kReadBytesMax = std::uint64_t{4} << 20;  // of the log, in one advance()
constexpr std::uint64_t kWriteBytes = 64;                        // of a write in a message, beside its key and value

Status too_old(Version oldest, Version asked) {
  const std::string position = std::to_string(oldest - 1);
  return Status::violating(
      StatusCode::aborted, ErrorReason::watch_too_old,
      "after: the log before version " + std::to_string(oldest) +
          " is not kept any more, so writes would be missing; read the range again with a scan, and watch from its "
          "boundary_version on, or from version " +
          position + " (--history-bytes-max, --history-retention)",
      {"after.version", position + " or greater", std::to_string(asked), "--history-bytes-max"});
}

}  // namespace

Status WatchCursor::start(const WatchPosition* after, const Position& newest) {
  batch_ = newest.batch + 1;
  position_ = {newest.next_version - 1, 0};
  within_transaction_ = false;
  if (after == nullptr || *after == position_) return {};
  if (after->version >= newest.next_version) {
    return Status::invalid({"after.version", "0 to " + std::to_string(newest.next_version - 1) + ", the last version",
                            std::to_string(after->version), ""});
  }
  position_ = *after;
  // The first version that may be missing. No write has version 0.
  const Version wanted = std::max<Version>(after->writes == 0 ? after->version + 1 : after->version, 1);
  const BatchNumber first = reader_->first_batch();
  if (first == 0 || first > newest.batch) return too_old(newest.next_version, after->version);
  return find_batch(wanted, newest.batch);
}

// Finds the first batch whose versions go as far as `wanted`, and sees to it that nothing between is missing.
Status WatchCursor::find_batch(Version wanted, BatchNumber newest) {
  BatchNumber first = reader_->first_batch();
  BatchNumber low = first, high = newest + 1;
  while (low < high) {
    const BatchNumber middle = low + (high - low) / 2;
    const Result<bool> found = reader_->read(middle);
    if (!found.ok()) return found.status();
    if (!*found) {  // trimmed meanwhile: what it held is not known
      first = std::max(reader_->first_batch(), middle + 1);
      low = first;
    } else if (reader_->batch().next_version > wanted) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  batch_ = low;
  if (low > first) return {};  // the batch before it was read, and ends before `wanted`
  const Result<bool> found = reader_->read(low);
  if (!found.ok()) return found.status();
  const Version oldest = *found ? reader_->batch().header.first_version : wanted + 1;
  return wanted < oldest ? too_old(oldest, position_.version) : Status();
}

Result<bool> WatchCursor::advance(BatchNumber through, std::uint64_t bytes_max, const Visit& visit) {
  std::uint64_t bytes = 0, read_bytes = 0;
  within_transaction_ = false;
  for (; batch_ <= through && read_bytes < kReadBytesMax; ++batch_) {
    const Result<bool> found = reader_->read(batch_);
    if (!found.ok()) return found.status();
    if (!*found) {
      const Result<bool> first = reader_->read(std::max<BatchNumber>(reader_->first_batch(), 1));
      if (!first.ok()) return first.status();
      return too_old(*first ? reader_->batch().header.first_version : position_.version + 1, position_.version);
    }
    const LoggedBatch& batch = reader_->batch();
    read_bytes += batch.bytes;
    Version version = 0;
    std::uint32_t index = 0;  // of the write among those of its version, from 1
    bool is_full = false;
    reader_->visit([&](const StoredRecord& write) {
      index = write.version == version ? index + 1 : 1;
      version = write.version;
      if (is_before_position(version, index) || !is_in_range(write.key)) return true;
      const std::uint64_t cost = kWriteBytes + write.key.size() + write.bytes.size();
      if (bytes > 0 && bytes + cost > bytes_max) {
        is_full = true;
        within_transaction_ = position_.version == version && position_.writes != 0;
        return false;
      }
      bytes += cost;
      visit(write, batch);
      position_ = {version, index};
      return true;
    });
    if (is_full) return false;
    position_ = {batch.next_version - 1, 0};
  }
  return batch_ > through;
}

}  // namespace kilokv::server
