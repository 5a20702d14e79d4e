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

struct ChunkLayout {
  explicit ChunkLayout(std::size_t items) {
    BlockLayout layout;
    ids = layout.add<KeyId>(items);
    cells = layout.add<std::uint64_t>(2 * items);
    actions = layout.add<std::uint8_t>(items);
    sent_bytes = layout.bytes();
    slot_of = layout.add<std::uint32_t>(items);
    pending = layout.add<std::uint8_t>(items);
    words = layout.add<std::uint64_t>(kBulkWords);
    bytes = layout.bytes();
  }
  std::size_t ids, cells, actions, sent_bytes, slot_of, pending, words, bytes;
};

}  // namespace

DeviceRecords::DeviceRecords(Device* device, DeviceKernels* kernels, std::uint32_t first_epoch)
    : device_(*device),
      kernels_(*kernels),
      slots_(device),
      first_epoch_(first_epoch),
      staging_(device),
      chunk_(device) {}

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
  for (std::uint32_t slot = 0; slot < table.capacity(); ++slot) {
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
  const ChunkLayout layout(kChunk);
  if (Status status = staging_.reserve_growing(layout.bytes); !status.ok()) return status;
  return chunk_.reserve(layout.bytes);
}

void DeviceRecords::add(KeyId id, BulkAction action, Cell cell) {
  const ChunkLayout layout(kChunk);
  std::byte* const to = staging_.data();
  reinterpret_cast<KeyId*>(to + layout.ids)[count_] = id;
  reinterpret_cast<std::uint64_t*>(to + layout.cells)[2 * count_] = cell.word;
  reinterpret_cast<std::uint64_t*>(to + layout.cells)[2 * count_ + 1] = cell.tag;
  reinterpret_cast<std::uint8_t*>(to + layout.actions)[count_] = static_cast<std::uint8_t>(action);
  removing_ += action == BulkAction::remove ? 1 : 0;
  ++count_;
}

Status DeviceRecords::send(DeviceStream stream) {
  if (count_ == 0) return {};
  const ChunkLayout layout(kChunk);
  BulkArguments<DeviceSpace> bulk;
  open(&bulk);
  bulk.size = static_cast<std::uint32_t>(count_);
  bulk.removing = static_cast<std::uint32_t>(removing_);
  bulk.inserting = static_cast<std::uint32_t>(count_ - removing_);
  bulk.ids = chunk_.at<const KeyId>(layout.ids);
  bulk.actions = chunk_.at<const std::uint8_t>(layout.actions);
  bulk.slot_of = chunk_.at<std::uint32_t>(layout.slot_of);
  bulk.pending = chunk_.at<std::uint8_t>(layout.pending);
  bulk.cells = chunk_.at<std::uint64_t>(layout.cells);
  bulk.words = chunk_.at<std::uint64_t>(layout.words);
  count_ = removing_ = 0;
  std::byte* const words = staging_.data() + layout.words;
  const std::size_t words_bytes = kBulkWords * sizeof(std::uint64_t);
  Status status = device_.copy_to_device(stream, chunk_.address(), staging_.data(), layout.sent_bytes);
  if (status.ok()) status = device_.fill(stream, chunk_.address() + layout.words, 0, words_bytes);
  if (status.ok()) status = kernels_.bulk(stream, bulk);
  if (status.ok()) status = device_.copy_to_host(stream, words, chunk_.address() + layout.words, words_bytes);
  if (status.ok()) status = device_.synchronize(stream);
  return status.ok() ? close(reinterpret_cast<const std::uint64_t*>(words)) : status;
}

void DeviceRecords::open(BulkArguments<DeviceSpace>* arguments) const {
  arguments->slots = slots_.at<std::uint64_t>(0);
  arguments->capacity = capacity_;
  arguments->first_epoch = static_cast<std::uint32_t>(epoch_);
}

Status DeviceRecords::close(const std::uint64_t* words) {
  epoch_ += words[kBulkRounds];
  used_ += words[kBulkInserted];
  if (words[kBulkFull] == 0) return {};
  return Status(StatusCode::internal, "the device's table of " + std::to_string(capacity_) + " slots, " +
                                          std::to_string(used_) + " of them in use, has no room");
}

}  // namespace kilokv::engine
