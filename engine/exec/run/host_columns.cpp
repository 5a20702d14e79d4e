#include "engine/exec/run/host_columns.hpp"

#include <algorithm>
#include <cstring>

namespace kilokv::engine {

void HostColumns::refill_kept() {
  for (Memory& memory : columns_) memory.is_filled = false;
}

std::byte* HostColumns::prepared(std::size_t column, std::size_t bytes, Section section, std::uint8_t fill) {
  if (columns_.size() <= column) columns_.resize(column + 1);
  Memory& memory = columns_[column];
  if (memory.size < bytes) {
    const std::size_t size = std::max(bytes, memory.size + memory.size / 2);
    memory = {};
    memory = {std::unique_ptr<std::byte[]>(new std::byte[size]), size};
  }
  if (section == Section::returned || section == Section::zeroed) std::memset(memory.bytes.get(), 0, bytes);
  if (section == Section::kept && !memory.is_filled) {
    std::memset(memory.bytes.get(), fill, memory.size);
    memory.is_filled = true;
  }
  return memory.bytes.get();
}

std::size_t HostColumns::memory_bytes() const {
  std::size_t bytes = columns_.capacity() * sizeof(Memory);
  for (const Memory& memory : columns_) bytes += memory.size;
  return bytes;
}

}  // namespace kilokv::engine
