#include "server/core/shadow_check.hpp"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "server/core/batch_text.hpp"

namespace kilokv::server {
namespace {

engine::ModelRecord record_of(const engine::RecordView& view) {
  engine::ModelRecord record{{}, version_of(view.cell.tag)};
  switch (type_of(view.cell.tag)) {
    case ValueType::absent: break;
    case ValueType::integer: record.value = static_cast<std::int64_t>(view.cell.word); break;
    case ValueType::bytes: record.value = std::string(view.bytes); break;
  }
  return record;
}

// [from, to); `to` empty: no upper bound.
struct Range {
  std::string_view from, to;
};

// In order and apart: many transactions of a batch may name the same range.
std::vector<Range> ranges_of(const engine::TransactionColumns& columns) {
  std::vector<Range> ranges;
  for (std::size_t i = 0; i < columns.range_limit.size(); ++i) {
    ranges.push_back({columns.range_from(i), columns.range_to(i)});
  }
  std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) { return a.from < b.from; });
  std::vector<Range> apart;
  for (const Range& range : ranges) {
    if (apart.empty() || (!apart.back().to.empty() && apart.back().to < range.from)) {
      apart.push_back(range);
    } else if (!apart.back().to.empty() && (range.to.empty() || apart.back().to < range.to)) {
      apart.back().to = range.to;
    }
  }
  return apart;
}

}  // namespace

bool ShadowCheck::draw() {
  if (share_ <= 0) return false;
  constexpr double kUnit = 0x1p-53;
  return static_cast<double>(random_->next() >> 11) * kUnit < share_;
}

void ShadowCheck::before(const engine::Engine& engine, const engine::TransactionColumns& columns) {
  sampled_ = draw();
  if (!sampled_) return;
  state_.records.clear();
  state_.tombstone_floor = engine.tombstone_floor();
  copy_keys(engine, columns);
  copy_ranges(engine, columns);
}

void ShadowCheck::copy_keys(const engine::Engine& engine, const engine::TransactionColumns& columns) {
  for (std::size_t i = 0; i < columns.key_end.size(); ++i) {
    const std::string_view key = columns.key(i);
    if (state_.records.contains(key)) continue;
    engine::ModelRecord record = record_of(engine.find(key));
    if (record.version != 0) state_.records.emplace(key, std::move(record));
  }
}

void ShadowCheck::copy_ranges(const engine::Engine& engine, const engine::TransactionColumns& columns) {
  for (const Range& range : ranges_of(columns)) {
    engine.scan(range.from, range.to, [this](const engine::RecordView& view) {
      state_.records.insert_or_assign(std::string(view.key), record_of(view));
      return true;
    });
  }
}

Status ShadowCheck::after(const engine::Engine& engine, const engine::Execution& execution) const {
  engine::ModelState state = state_;
  Status status = check_execution(execution, engine::RefereeMode::deterministic, &state);
  const auto differs = [&](std::string_view key, const engine::ModelRecord& expected, const engine::ModelRecord& got) {
    const auto text = [](const engine::ModelRecord& record) {
      return value_text(record.value) + " of version " + std::to_string(record.version);
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
  return status.ok() ? status : Status(status.code(), "--shadow-rate: the referee differs: " + status.message());
}

std::string ShadowCheck::text_of(const engine::BatchHeader& header, const engine::TransactionColumns& columns,
                                 std::span<const std::uint8_t> last_try) const {
  return batch_text(header, columns, last_try, state_);
}

}  // namespace kilokv::server
