#include "server/storage/wal_check.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string_view>
#include <system_error>
#include <vector>

#include "server/storage/bytes.hpp"
#include "server/storage/crc32c.hpp"
#include "server/storage/wal_tag.hpp"

namespace kilokv::server::storage {
namespace {

constexpr std::size_t kBlockBytes = 32768;
constexpr std::size_t kFragmentHeaderBytes = 7;
enum FragmentType : std::uint8_t { kFull = 1, kFirst = 2, kMiddle = 3, kLast = 4 };

struct Fragment {
  FragmentType type = kFull;
  std::string_view data;
  bool begins_write() const { return type == kFull || type == kFirst; }
  std::size_t bytes() const { return kFragmentHeaderBytes + data.size(); }
};

// The fragment at the beginning of `block`, if it is intact. Everybody can compute the checksum. So bytes that a client
// has stored can look like a fragment.
std::optional<Fragment> fragment_at(std::string_view block) {
  if (block.size() < kFragmentHeaderBytes) return std::nullopt;
  const std::size_t length = load<std::uint16_t>(block.data() + 4);
  const auto type = static_cast<std::uint8_t>(block[6]);
  if (type < kFull || type > kLast || kFragmentHeaderBytes + length > block.size()) return std::nullopt;
  const std::uint32_t unmasked = load<std::uint32_t>(block.data()) - 0xA282EAD8u;
  if (std::rotl(unmasked, 15) != crc32c(block.substr(6, 1 + length))) return std::nullopt;
  return Fragment{static_cast<FragmentType>(type), block.substr(kFragmentHeaderBytes, length)};
}

std::string_view block_of(std::string_view file, std::size_t offset) {
  return file.substr(offset, kBlockBytes - offset % kBlockBytes);
}

// The place where the first write begins that cannot be read to its end; the file's size if there is none.
std::size_t first_damage(std::string_view file) {
  std::size_t offset = 0, write = 0;
  bool inside = false;
  while (offset < file.size()) {
    const std::string_view block = block_of(file, offset);
    if (kBlockBytes - offset % kBlockBytes < kFragmentHeaderBytes) {
      offset += block.size();  // the writer leaves the rest of a block empty if it is too short for a header
      continue;
    }
    const std::optional<Fragment> fragment = fragment_at(block);
    if (!inside) write = offset;
    if (!fragment || inside != (fragment->type == kMiddle || fragment->type == kLast)) return write;
    inside = fragment->type == kFirst || fragment->type == kMiddle;
    offset += fragment->bytes();
  }
  return inside ? write : file.size();
}

// Where the first write of a program begins. RocksDB itself puts a write without entries at the beginning of the file
// that it makes after a torn end. Such a write does not show that anything was acknowledged.
std::size_t begin_of_writes(std::string_view file) {
  const std::optional<Fragment> first = fragment_at(block_of(file, 0));
  return first && first->type == kFull && first->data.size() == kWriteHeaderBytes ? first->bytes() : 0;
}

// Whether an intact write begins at `at`, with the tag if one is given. The end of a block may cut the first fragment
// short. The rest of the tag is then in the next block.
bool write_begins_at(std::string_view file, std::size_t at, const WalTag* tag) {
  const std::string_view block = block_of(file, at);
  const bool cut_short = block.size() < kFragmentHeaderBytes + kTaggedBytes;
  // A comparison first: the checksums of all places in a large write would take long.
  if (tag != nullptr && !cut_short && !begins_with(block.substr(kFragmentHeaderBytes), *tag)) return false;
  const std::optional<Fragment> first = fragment_at(block);
  if (!first || !first->begins_write()) return false;
  if (tag == nullptr) return true;
  if (!cut_short) return first->data.size() >= kTaggedBytes;
  const std::optional<Fragment> next = fragment_at(block_of(file, at + block.size()));
  if (first->type != kFirst || first->bytes() != block.size() || !next || next->begins_write()) return false;
  return begins_with(std::string(first->data) + std::string(next->data.substr(0, kTaggedBytes)), *tag);
}

// Whether an intact write begins anywhere after `offset`, with the tag if one is given. Lengths there may be damaged,
// so every byte is tried.
bool write_begins_after(std::string_view file, std::size_t offset, const WalTag* tag) {
  for (std::size_t at = offset + 1; at < file.size(); ++at) {
    if (write_begins_at(file, at, tag)) return true;
  }
  return false;
}

// RocksDB names its logs by a number. Other programs may keep their logs in the directory too.
bool is_write_ahead_log(const std::filesystem::path& path) {
  const std::string name = path.stem().string();
  return path.extension() == ".log" && name.find_first_not_of("0123456789") == std::string::npos;
}

Result<std::vector<std::filesystem::path>> log_files(const std::string& directory) {
  std::vector<std::filesystem::path> files;
  std::error_code error;
  for (std::filesystem::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
    if (is_write_ahead_log(it->path())) files.push_back(it->path());
  }
  if (error) return Status(StatusCode::internal, "cannot list " + directory + ": " + error.message());
  std::sort(files.begin(), files.end());  // numbers of six digits or more: shorter ones are older
  std::stable_sort(files.begin(), files.end(), [](const auto& a, const auto& b) {
    return a.filename().native().size() < b.filename().native().size();
  });
  return files;
}

}  // namespace

Status check_write_ahead_logs(const std::string& directory) {
  const Result<std::vector<std::filesystem::path>> files = log_files(directory);
  if (!files.ok()) return files.status();
  const std::optional<WalTag> tag = read_wal_tag(directory);
  std::string damage;  // of an earlier file: it is a loss as soon as any write follows
  for (const std::filesystem::path& path : *files) {
    std::ifstream in(path, std::ios::binary | std::ios::ate);
    std::string file(in ? static_cast<std::size_t>(in.tellg()) : 0, '\0');
    if (!in.seekg(0).read(file.data(), static_cast<std::streamsize>(file.size()))) {
      return {StatusCode::internal, "cannot read " + path.string()};
    }
    const std::size_t begin = begin_of_writes(file), end = first_damage(file);
    const bool has_write = end > begin;
    if (!damage.empty() && has_write) return {StatusCode::data_loss, damage + "; " + path.string() + " follows it"};
    if (end == file.size()) continue;
    if (damage.empty()) {
      damage = path.string() + ": the write at byte " + std::to_string(end) +
               " is damaged, and later writes show that it was acknowledged";
    }
    // An older program leaves the tag as it is, and writes files without it.
    const bool is_tagged = tag && (!has_write || write_begins_at(file, begin, &*tag));
    if (write_begins_after(file, end, is_tagged ? &*tag : nullptr)) return {StatusCode::data_loss, damage};
  }
  return {};
}

Status remove_empty_write_ahead_logs(const std::string& directory) {
  const Result<std::vector<std::filesystem::path>> files = log_files(directory);
  if (!files.ok()) return files.status();
  for (const std::filesystem::path& path : *files) {
    std::error_code error;
    if (std::filesystem::file_size(path, error) == 0 && !error) std::filesystem::remove(path, error);
    if (error) return {StatusCode::internal, "cannot remove " + path.string() + ": " + error.message()};
  }
  return {};
}

Status remove_older_write_ahead_logs(const std::string& directory, const std::string& current) {
  const Result<std::vector<std::filesystem::path>> files = log_files(directory);
  if (!files.ok()) return files.status();
  for (const std::filesystem::path& path : *files) {
    if (path.filename() == current) break;
    std::error_code error;
    std::filesystem::remove(path, error);
    if (error) return {StatusCode::internal, "cannot remove " + path.string() + ": " + error.message()};
  }
  return {};
}

}  // namespace kilokv::server::storage
