#include "server/core/pipeline/shadow_check.hpp"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "server/core/pipeline/batch_text.hpp"

namespace kilokv::server {
namespace {

engine::ModelRecord record_of(const engine::RecordView& view) {
  engine::ModelRecord record{{}, version_of(view.cell.tag), view.expires_us};
  switch (type_of(view.cell.tag)) {
    case ValueType::absent: break;
    case ValueType::integer: record.value = static_cast<std::int64_t>(view.cell.word); break;
    case ValueType::bytes: record.value = std::string(view.bytes); break;
  }
  return record;
}

std::vector<std::string_view> sorted_keys(const engine::TransactionColumns& columns) {
  std::vector<std::string_view> keys;
  keys.reserve(columns.key_end.size());
  for (std::size_t i = 0; i < columns.key_end.size(); ++i) keys.push_back(columns.key(i));
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  return keys;
}

// How many of the keys are in [from, to). An empty `to` means no upper bound.
std::uint64_t count_between(const std::vector<std::string_view>& sorted, std::string_view from, std::string_view to) {
  const auto begin = std::lower_bound(sorted.begin(), sorted.end(), from);
  const auto end = to.empty() ? sorted.end() : std::lower_bound(begin, sorted.end(), to);
  return static_cast<std::uint64_t>(end - begin);
}

}  // namespace

bool ShadowCheck::draw() {
  if (share_ <= 0) return false;
  constexpr double kUnit = 0x1p-53;
  return static_cast<double>(random_->next() >> 11) * kUnit < share_;
}

void ShadowCheck::before(const engine::Engine& engine, const engine::TransactionColumns& columns) {
  state_ = {};  // may be left from a batch that the engine refused
  sampled_ = draw();
  skipped_ = false;
  if (!sampled_) return;
  records_ = bytes_ = 0;
  state_.tombstone_floor = engine.tombstone_floor();
  sampled_ = take(columns.key_end.size(), columns.key_bytes.size()) && ranges_fit(engine, columns) &&
             copy_keys(engine, columns);
  skipped_ = !sampled_;
  if (skipped_) {
    state_ = {};
  } else {
    copy_ranges(engine, columns);
  }
}

bool ShadowCheck::take(std::uint64_t records, std::uint64_t bytes) {
  records_ += records;
  bytes_ += bytes;
  return records_ <= limits_.records_max && bytes_ <= limits_.bytes_max;
}

bool ShadowCheck::copy_keys(const engine::Engine& engine, const engine::TransactionColumns& columns) {
  for (std::size_t i = 0; i < columns.key_end.size(); ++i) {
    const std::string_view key = columns.key(i);
    if (state_.records.contains(key)) continue;
    const engine::RecordView view = engine.find(key);
    if (version_of(view.cell.tag) == 0) continue;
    if (!take(0, view.bytes.size())) return false;
    state_.records.emplace(key, record_of(view));
  }
  return true;
}

// Counts before it copies, because a copy costs many times as much as a count.
bool ShadowCheck::ranges_fit(const engine::Engine& engine, const engine::TransactionColumns& columns) {
  if (columns.range_limit.empty()) return true;
  const std::vector<std::string_view> keys = sorted_keys(columns);
  bool fits = true;
  for (std::size_t i = 0; fits && i < columns.range_limit.size(); ++i) {
    const std::string_view from = columns.range_from(i), to = columns.range_to(i);
    fits = take(count_between(keys, from, to), 0);
    if (!fits) break;
    engine.scan(from, to, [&](const engine::RecordView& view) {
      fits = take(1, view.key.size() + view.bytes.size());
      return fits;
    });
  }
  return fits;
}

void ShadowCheck::copy_ranges(const engine::Engine& engine, const engine::TransactionColumns& columns) {
  for (std::size_t i = 0; i < columns.range_limit.size(); ++i) {
    engine.scan(columns.range_from(i), columns.range_to(i), [this](const engine::RecordView& view) {
      if (!state_.records.contains(view.key)) state_.records.emplace(view.key, record_of(view));
      return true;
    });
  }
}

Status ShadowCheck::after(const engine::Engine& engine, const engine::Execution& execution) {
  Status status = compare(engine, execution);
  if (!status.ok()) {
    return Status(status.code(), status.reason(), "--shadow-rate: the referee differs: " + status.message());
  }
  state_ = {};
  return status;
}

Status ShadowCheck::compare(const engine::Engine& engine, const engine::Execution& execution) const {
  engine::ModelState state = state_;
  Status status = check_execution(execution, referee_mode(engine.execution()), &state);
  const auto differs = [&](std::string_view key, const engine::ModelRecord& expected, const engine::ModelRecord& got) {
    const auto text = [](const engine::ModelRecord& record) {
      const std::string expiry = record.expires_us == 0 ? "" : ", expires " + std::to_string(record.expires_us);
      return value_text(record.value) + " of version " + std::to_string(record.version) + expiry;
    };
    return Status(StatusCode::internal, "batch " + std::to_string(execution.header.number) + ", table, key " +
                                            std::string(key) + ": expected " + text(expected) + ", got " + text(got));
  };
  for (auto it = state.records.begin(); status.ok() && it != state.records.end(); ++it) {
    const engine::ModelRecord got = record_of(engine.find(it->first));
    if (got != it->second) status = differs(it->first, it->second, got);
  }
  for (std::size_t i = 0; status.ok() && i < execution.columns.key_end.size(); ++i) {
    const std::string_view key = execution.columns.key(i);
    if (state.records.contains(key)) continue;
    const engine::ModelRecord got = record_of(engine.find(key));
    if (got.version != 0) status = differs(key, {}, got);
  }
  return status;
}

std::string ShadowCheck::text_of(const engine::BatchHeader& header, const engine::TransactionColumns& columns,
                                 std::span<const std::uint8_t> expires) const {
  return batch_text(header, columns, expires, state_);
}

}  // namespace kilokv::server
