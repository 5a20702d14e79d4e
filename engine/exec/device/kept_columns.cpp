#include "engine/exec/device/kept_columns.hpp"

namespace kilokv::engine {

void KeptColumns::refill() {
  for (Column& column : columns_) column.is_filled = false;
}

Status KeptColumns::prepare(DeviceStream stream, std::size_t column, std::size_t bytes, std::uint8_t fill) {
  while (columns_.size() <= column) columns_.emplace_back(&device_);
  Column& kept = columns_[column];
  const std::size_t before = kept.buffer.bytes();
  if (Status status = kept.buffer.reserve_growing(bytes); !status.ok()) return status;
  if (kept.is_filled && kept.buffer.bytes() == before) return {};
  Status status = device_.fill(stream, kept.buffer.address(), fill, kept.buffer.bytes());
  kept.is_filled = status.ok();
  return status;
}

}  // namespace kilokv::engine
