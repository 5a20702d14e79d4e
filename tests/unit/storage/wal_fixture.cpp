#include "tests/unit/storage/wal_fixture.hpp"

#include <algorithm>
#include <bit>

#include "server/storage/bytes.hpp"
#include "server/storage/crc32c.hpp"

namespace kilokv::server::storage {

std::vector<WalWrite> wal_writes(std::string_view file) {
  std::vector<WalWrite> writes;
  std::size_t at = 0;
  bool inside = false;
  while (at + kWalFragmentHeaderBytes <= file.size()) {
    const std::size_t left = kWalBlockBytes - at % kWalBlockBytes;
    if (left < kWalFragmentHeaderBytes) {
      at += left;
      continue;
    }
    const std::size_t length = load<std::uint16_t>(file.data() + at + 4);
    const int type = file[at + 6];
    if (!inside) writes.push_back({.bytes = {}, .begin = at});
    writes.back().bytes += file.substr(at + kWalFragmentHeaderBytes, length);
    at += kWalFragmentHeaderBytes + length;
    writes.back().end = at;
    inside = type == 2 || type == 3;
  }
  return writes;
}

std::string wal_fragment(std::uint8_t type, std::string_view data) {
  const std::string checked = static_cast<char>(type) + std::string(data);
  std::string fragment;
  put(&fragment, std::rotr(crc32c(checked), 15) + 0xA282EAD8u);
  put(&fragment, static_cast<std::uint16_t>(data.size()));
  return fragment + checked;
}

void append_wal_write(std::string* file, std::string_view write) {
  bool begins = true, ends = false;
  while (!ends) {
    const std::size_t left = kWalBlockBytes - file->size() % kWalBlockBytes;
    if (left < kWalFragmentHeaderBytes) {
      file->append(left, '\0');
      continue;
    }
    const std::string_view data = write.substr(0, left - kWalFragmentHeaderBytes);
    write.remove_prefix(data.size());
    ends = write.empty();
    *file += wal_fragment(begins ? (ends ? 1 : 2) : (ends ? 4 : 3), data);
    begins = false;
  }
}

std::size_t end_of_wal_write(std::size_t begin, std::size_t bytes) {
  for (std::size_t at = begin;;) {
    const std::size_t left = kWalBlockBytes - at % kWalBlockBytes;
    if (left >= kWalFragmentHeaderBytes) {
      if (bytes <= left - kWalFragmentHeaderBytes) return at + kWalFragmentHeaderBytes + bytes;
      bytes -= left - kWalFragmentHeaderBytes;
    }
    at += left;
  }
}

// Sequence number and count are 12 bytes; the tag has 16, after its kind and its length.
std::string without_tag(const std::string& write) { return write.substr(0, 12) + write.substr(12 + 18); }

}  // namespace kilokv::server::storage
