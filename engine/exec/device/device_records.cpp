#include "engine/exec/device/device_records.hpp"

#include <algorithm>
#include <string>
#include <tuple>

namespace kilokv::engine {
namespace {

constexpr std::size_t kCapacityMin = 1024;
constexpr std::size_t kCapacityMax = kNoSlot;
constexpr std::size_t kChangedMin = 4096;  // up to this many changed records are always sent one by one

// The load factor is below 0.6 when the table is built. When it would be above 0.8, the table is built again.
std::size_t capacity_for(std::size_t records) { return std::max(records * 5 / 3 + 1, kCapacityMin); }
bool has_room(std::size_t used, std::size_t capacity) { return used <= capacity / 5 * 4; }

}  // namespace

DeviceRecords::DeviceRecords(Device* device, DeviceKernels* kernels, std::uint32_t first_epoch)
    : device_(*device), kernels_(*kernels), slots_(device), first_epoch_(first_epoch), chunk_(device) {}

void DeviceRecords::changed(KeyId id) {
  if (must_build_) return;
  changed_.push_back(id);
  if (changed_.size() <= std::max(kChangedMin, used_ / 8)) return;
  must_build_ = true;
  changed_.clear();
}

Status DeviceRecords::update(DeviceStream stream, const RecordStore& store) {
  // The epoch of a claim has 32 bits. A run has fewer rounds than items.
  const bool epochs_left = epoch_ + changed_.size() < kNoSlot;
  if (must_build_ || !epochs_left || !has_room(used_ + changed_.size(), capacity_)) return build(stream, store);
  if (changed_.empty()) return {};
  const auto less = [](KeyId a, KeyId b) { return std::tie(a.high, a.low) < std::tie(b.high, b.low); };
  std::sort(changed_.begin(), changed_.end(), less);
  changed_.erase(std::unique(changed_.begin(), changed_.end()), changed_.end());
  if (Status status = prepare_chunk(); !status.ok()) return status;
  for (const KeyId id : changed_) {
    const std::uint32_t slot = store.table().find(id);
    const bool is_there = slot != store.table().absent_slot();
    add(id, is_there ? BulkAction::put : BulkAction::remove, store.table()[slot].cell);
    if (count_ < kChunk) continue;
    if (Status status = send(stream); !status.ok()) return status;
  }
  if (Status status = send(stream); !status.ok()) return status;
  changed_.clear();
  return {};
}

Status DeviceRecords::build(DeviceStream stream, const RecordStore& store) {
  const RecordTable& table = store.table();
  const std::size_t capacity = capacity_for(table.size());
  must_build_ = true;  // until it is done
  changed_.clear();
  if (capacity * sizeof(Slot) > slots_.bytes() || capacity > capacity_) {
    slots_.release();
    Status status = capacity < kCapacityMax ? slots_.reserve(capacity * sizeof(Slot))
                                            : Status(StatusCode::resource_exhausted, ErrorReason::unspecified,
                                                     "the limit is " + std::to_string(kCapacityMax - 1) + " slots");
    if (!status.ok()) {
      if (status.code() != StatusCode::resource_exhausted) return status;
      return Status(StatusCode::failed_precondition, ErrorReason::unspecified,
                    "device memory: a table for " + std::to_string(table.size()) + " records needs " +
                        std::to_string(capacity * sizeof(Slot)) + " bytes: " + status.message());
    }
    capacity_ = static_cast<std::uint32_t>(capacity);
  }
  used_ = 0;
  epoch_ = first_epoch_;
  ++builds_;
  if (Status status = device_.fill(stream, slots_.address(), 0, std::size_t{capacity_} * sizeof(Slot)); !status.ok()) {
    return status;
  }
  if (Status status = prepare_chunk(); !status.ok()) return status;
  for (std::uint32_t slot = 0; slot < table.end_slot(); ++slot) {
    if (!table.occupied(slot)) continue;
    add(table[slot].id, BulkAction::put, table[slot].cell);
    if (count_ < kChunk) continue;
    if (Status status = send(stream); !status.ok()) return status;
  }
  if (Status status = send(stream); !status.ok()) return status;
  // If the table is empty, nothing was sent. Without this wait, the slots could be freed before they are filled.
  if (Status status = device_.synchronize(stream); !status.ok()) return status;
  must_build_ = false;
  return {};
}

Status DeviceRecords::prepare_chunk() {
  count_ = removing_ = 0;
  constexpr BulkShape kShape{kChunk, kChunk};
  chunk_.clear();
  chunk_on_host_ = {};
  const std::size_t first = chunk_.add(kShape, &chunk_on_host_);
  if (Status status = chunk_.reserve(); !status.ok()) return status;
  chunk_on_device_ = chunk_.bind<BulkArguments<DeviceSpace>>(first, kShape, &chunk_on_host_);
  return {};
}

void DeviceRecords::add(KeyId id, BulkAction action, Cell cell) {
  DeviceBlock::staged(chunk_on_host_.ids)[count_] = id;
  chunk_on_host_.cells[2 * count_] = cell.word;
  chunk_on_host_.cells[2 * count_ + 1] = cell.tag;
  DeviceBlock::staged(chunk_on_host_.actions)[count_] = static_cast<std::uint8_t>(action);
  removing_ += action == BulkAction::remove ? 1 : 0;
  ++count_;
}

Status DeviceRecords::send(DeviceStream stream) {
  if (count_ == 0) return {};
  BulkArguments<DeviceSpace>& bulk = chunk_on_device_;
  open(&bulk);
  bulk.size = static_cast<std::uint32_t>(count_);
  bulk.removing = static_cast<std::uint32_t>(removing_);
  bulk.inserting = static_cast<std::uint32_t>(count_ - removing_);
  count_ = removing_ = 0;
  Status status = chunk_.send(stream);
  if (status.ok()) status = chunk_.zero(stream);
  if (status.ok()) status = kernels_.bulk(stream, bulk);
  if (status.ok()) status = chunk_.fetch(stream);
  if (status.ok()) status = device_.synchronize(stream);
  return status.ok() ? close() : status;
}

void DeviceRecords::open(BulkArguments<DeviceSpace>* arguments) const {
  arguments->slots = slots_.at<std::uint64_t>(0);
  arguments->capacity = capacity_;
  arguments->first_epoch = static_cast<std::uint32_t>(epoch_);
}

Status DeviceRecords::close() {
  const std::uint64_t* const words = chunk_on_host_.words;
  epoch_ += words[kBulkRounds];
  used_ += words[kBulkInserted];
  if (words[kBulkFull] == 0) return {};
  return Status(StatusCode::internal, "the device's table of " + std::to_string(capacity_) + " slots, " +
                                          std::to_string(used_) + " of them in use, has no room");
}

}  // namespace kilokv::engine
