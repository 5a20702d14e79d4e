#include "engine/exec/device/device_block.hpp"

#include <cstring>

namespace kilokv::engine {

Status DeviceBlock::reserve() {
  BlockLayout layout;
  for (std::size_t section = 0; section < kSections; ++section) {
    for (Place& column : columns_) {
      if (static_cast<std::size_t>(column.section) == section) column.offset = layout.add<std::byte>(column.bytes);
    }
    ends_[section] = layout.bytes();
  }
  Status status = staging_.reserve_growing(end(Section::returned));
  return status.ok() ? block_.reserve_growing(layout.bytes()) : status;
}

void DeviceBlock::pack() {
  for (const Place& column : columns_) {
    if (column.section != Section::sent || column.host == nullptr || column.bytes == 0) continue;
    std::memcpy(staging_.data() + column.offset, column.host, column.bytes);
  }
}

Status DeviceBlock::send(DeviceStream stream) {
  return device_.copy_to_device(stream, block_.address(), staging_.data(), sent_bytes());
}

Status DeviceBlock::zero(DeviceStream stream) {
  const std::size_t begin = end(Section::sent);
  return device_.fill(stream, block_.address() + begin, 0, end(Section::zeroed) - begin);
}

Status DeviceBlock::fetch(DeviceStream stream) {
  const std::size_t begin = end(Section::sent);
  return device_.copy_to_host(stream, staging_.data() + begin, block_.address() + begin, returned_bytes());
}

void DeviceBlock::unpack() const {
  for (const Place& column : columns_) {
    if (column.section != Section::returned || column.host == nullptr || column.bytes == 0) continue;
    std::memcpy(column.host, staging_.data() + column.offset, column.bytes);
  }
}

}  // namespace kilokv::engine
