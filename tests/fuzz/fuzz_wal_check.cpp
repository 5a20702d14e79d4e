// The check of RocksDB's write-ahead logs (server/storage/wal_check.cpp). The first byte says how many log files the
// input is cut into, and whether the checksums of its fragments are mended, because no mutation would find one.
#include "server/storage/wal_check.hpp"

#include <algorithm>
#include <bit>

#include "server/storage/bytes.hpp"
#include "server/storage/crc32c.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace kilokv::fuzz {
namespace {

constexpr std::size_t kBlockBytes = 32768, kHeaderBytes = 7;

// Writes the right checksum into each fragment, up to the first whose length or type is wrong. Returns whether the file
// is intact as a whole.
bool mend(std::string* file) {
  bool inside = false;
  std::size_t at = 0;
  while (at < file->size()) {
    const std::size_t left = std::min(kBlockBytes - at % kBlockBytes, file->size() - at);
    if (kBlockBytes - at % kBlockBytes < kHeaderBytes) {
      at += left;
      continue;
    }
    if (left < kHeaderBytes) return false;
    const std::size_t length = server::storage::load<std::uint16_t>(file->data() + at + 4);
    const int type = (*file)[at + 6];
    if (kHeaderBytes + length > left || type < 1 || type > 4) return false;
    const std::uint32_t crc = server::storage::crc32c(std::string_view(*file).substr(at + 6, 1 + length));
    std::string masked;
    server::storage::put(&masked, std::rotr(crc, 15) + 0xA282EAD8u);
    file->replace(at, 4, masked);
    const bool continues = type == 3 || type == 4;
    if (continues != inside) return false;
    inside = type == 2 || type == 3;
    at += kHeaderBytes + length;
  }
  return !inside;
}

}  // namespace
}  // namespace kilokv::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace kilokv;
  static const fuzz::Folder folder;
  std::string_view bytes = fuzz::text_of(data, size);
  const std::uint8_t choice = fuzz::take_choice(&bytes);
  const std::size_t files = 1 + choice % 2;
  bool intact = true;
  for (std::size_t i = 0; i < 2; ++i) {
    std::string file;
    if (i < files) file = bytes.substr(i * bytes.size() / files, bytes.size() / files);
    const bool mended = (choice & 2) != 0 && fuzz::mend(&file);
    intact = intact && (file.empty() || mended);
    folder.write("00000" + std::to_string(i) + ".log", file);
  }
  const Status status = server::storage::check_write_ahead_logs(folder.path());
  KILOKV_CHECK(status.ok() || status.code() == StatusCode::data_loss);
  KILOKV_CHECK(!intact || status.ok());
  return 0;
}
