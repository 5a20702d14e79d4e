#include "engine/exec/papers/stage_plan.hpp"

#include <algorithm>

#include "engine/exec/papers/ticketed_inputs.hpp"
#include "engine/stm/batch_arguments.hpp"

namespace kilokv::engine {
namespace {

std::uint64_t room(std::uint32_t positions, std::uint32_t threads, std::uint32_t group_width, std::uint32_t each) {
  return positions == 0 ? 0 : position_room(positions, threads, group_width, each);
}

}  // namespace

// Calls f(record) for each use of a record by the transaction at this position. Leaves out keys that the batch only
// reads and that have no record.
template <class F>
void StagePlan::for_records(const ResolvedBatch& batch, std::uint32_t position, const F& f) const {
  const TransactionColumns& c = batch.columns;
  const std::uint32_t t = batch.order.empty() ? position : batch.order[position];
  const auto use = [&](std::uint32_t key) {
    const std::uint32_t record = record_of_key_[key];
    if (record != absent_record_) f(record);
  };
  for (std::uint32_t g = c.guard_begin(t); g < c.guard_end[t]; ++g) {
    if (c.guard_key[g] != kNone) use(c.guard_key[g]);
    if (c.guard_other[g] != kNone) use(c.guard_other[g]);
  }
  for (std::uint32_t i = t == 0 ? 0 : c.else_end[t - 1]; i < c.else_end[t]; ++i) use(c.op_key[i]);
}

void StagePlan::make(const ResolvedBatch& batch, const BatchRecords& records, std::uint32_t slots) {
  record_of_key_ = records.record_of_key().data();
  absent_record_ = records.absent_record();
  const auto d = static_cast<std::uint32_t>(records.size());
  find_class_ends(batch, &whole_class_end_);
  class_end_.clear();
  hot_end_.clear();
  behind_.clear();
  staged_ = behind_stage_ = beside_stage_ = hot_ = 0;
  slot_of_.clear();
  record_of_.clear();
  order_.clear();
  reserve(batch);
  if (d <= slots) {
    staged_ = d;
    return stage_all();
  }
  slot_of_.assign(d, kNone);
  if (slots > 0) choose(batch, slots);
  staged_ = static_cast<std::uint32_t>(record_of_.size());
  cut(batch);
}

// Reserves as much memory as any batch of this size can need. So the memory does not depend on how a batch is cut.
void StagePlan::reserve(const ResolvedBatch& batch) {
  const std::size_t n = batch.columns.size(), keys = batch.columns.key_id.size();
  class_end_.reserve(2 * whole_class_end_.size());
  hot_end_.reserve(2 * whole_class_end_.size());
  behind_.reserve(2 * whole_class_end_.size());
  slot_of_.reserve(keys);
  record_of_.reserve(keys);
  mentions_.reserve(keys);
  order_.reserve(n);
  by_heat_.reserve(n);
  parts_.reserve(n);
}

void StagePlan::stage_all() {
  std::uint32_t begin = 0;
  for (const std::uint32_t end : whole_class_end_) {
    add_half(end, end, false);
    hot_ = std::max(hot_, end - begin);
    begin = end;
  }
}

// Chooses the records for a stage of `slots` slots. The heat of a transaction is how often the most wanted of its
// records is named.
void StagePlan::choose(const ResolvedBatch& batch, std::uint32_t slots) {
  const auto n = static_cast<std::uint32_t>(batch.columns.size());
  mentions_.assign(slot_of_.size(), 0);
  for (std::uint32_t position = 0; position < n; ++position) {
    for_records(batch, position, [&](std::uint32_t record) { ++mentions_[record]; });
  }
  by_heat_.clear();
  for (std::uint32_t position = 0; position < n; ++position) {
    std::uint32_t heat = 0;
    for_records(batch, position, [&](std::uint32_t record) { heat = std::max(heat, mentions_[record]); });
    if (heat > 1) by_heat_.push_back(std::uint64_t{~heat} << 32 | position);
  }
  std::sort(by_heat_.begin(), by_heat_.end());
  for (const std::uint64_t one : by_heat_) {
    if (record_of_.size() == slots) return;
    stage_footprint(batch, static_cast<std::uint32_t>(one), slots);
  }
}

void StagePlan::stage_footprint(const ResolvedBatch& batch, std::uint32_t position, std::uint32_t slots) {
  const std::size_t before = record_of_.size();
  for_records(batch, position, [&](std::uint32_t record) {
    if (slot_of_[record] != kNone) return;
    slot_of_[record] = static_cast<std::uint32_t>(record_of_.size());
    record_of_.push_back(record);
  });
  if (record_of_.size() <= slots) return;
  for (; record_of_.size() > before; record_of_.pop_back()) slot_of_[record_of_.back()] = kNone;
}

StagePlan::Part StagePlan::part_of(const ResolvedBatch& batch, std::uint32_t position) const {
  bool some = false, others = false;
  for_records(batch, position, [&](std::uint32_t record) {
    some |= slot_of_[record] != kNone;
    others |= slot_of_[record] == kNone;
  });
  if (!some) return Part::beside;
  return others ? Part::behind : Part::hot;
}

void StagePlan::cut(const ResolvedBatch& batch) {
  parts_.clear();
  std::uint32_t begin = 0;
  for (const std::uint32_t end : whole_class_end_) {
    for (std::uint32_t position = begin; position < end; ++position) {
      parts_.push_back(static_cast<std::uint8_t>(part_of(batch, position)));
    }
    const auto take = [&](Part part) {
      const std::size_t before = order_.size();
      for (std::uint32_t position = begin; position < end; ++position) {
        if (parts_[position] == static_cast<std::uint8_t>(part)) order_.push_back(position);
      }
      return static_cast<std::uint32_t>(order_.size() - before);
    };
    const std::uint32_t hot = take(Part::hot);
    const std::uint32_t beside = take(Part::beside);
    if (hot + beside > 0) add_half(begin + hot, begin + hot + beside, false);
    const std::uint32_t behind = take(Part::behind);
    if (behind > 0) add_half(begin + hot + beside, end, true);
    hot_ = std::max(hot_, hot);
    beside_stage_ = std::max(beside_stage_, beside);
    behind_stage_ = std::max(behind_stage_, behind);
    begin = end;
  }
}

void StagePlan::add_half(std::uint32_t hot_end, std::uint32_t end, bool behind) {
  class_end_.push_back(end);
  hot_end_.push_back(hot_end);
  behind_.push_back(behind ? 1 : 0);
}

std::uint64_t StagePlan::hot_slots(std::uint32_t staging, std::uint32_t group_width, std::uint32_t each) const {
  return room(hot_, staging, group_width, each);
}

std::uint64_t StagePlan::slots(std::uint32_t staging, std::uint32_t threads, std::uint32_t group_width,
                               std::uint32_t each) const {
  const std::uint32_t others = staging == threads ? threads : threads - staging;
  const std::uint64_t in_front =
      room(hot_, staging, group_width, each) + room(beside_stage_, others, group_width, each);
  return std::max(in_front, room(behind_stage_, threads, group_width, each));
}

std::size_t StagePlan::memory_bytes() const {
  return (class_end_.capacity() + hot_end_.capacity() + behind_.capacity() + slot_of_.capacity() +
          record_of_.capacity() + order_.capacity() + whole_class_end_.capacity() + mentions_.capacity()) *
             sizeof(std::uint32_t) +
         by_heat_.capacity() * sizeof(std::uint64_t) + parts_.capacity();
}

}  // namespace kilokv::engine
