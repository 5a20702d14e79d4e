// The check of RocksDB's write-ahead logs (server/storage/wal_check.cpp). The first byte chooses (see Choice). If it
// asks for intact fragments before the input, the second byte says how many bytes before the end of a block the input
// begins: 0 to 255. So the end of a block of 32 KiB lies in an input of some hundred bytes, with the fragments and the
// padding around it.
//
// If it asks for a tag, the first log begins with a write that has the tag. The tag is computed from the whole input.
// So no mutation can bring it into the input, as no client can bring it into a log.
//
// What the check must answer is known, apart from a damaged last write. Intact logs are fine. Damage before an intact
// write is a loss. In a single log with a tag, damage is no loss if no write with the tag follows.
#include "server/storage/wal_check.hpp"

#include <algorithm>
#include <bit>
#include <string>
#include <utility>

#include "server/storage/bytes.hpp"
#include "server/storage/crc32c.hpp"
#include "server/storage/wal_tag.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace kilokv::fuzz {
namespace {

constexpr std::size_t kBlockBytes = 32768, kHeaderBytes = 7;
enum Type : std::uint8_t { kFull = 1, kFirst = 2, kMiddle = 3, kLast = 4 };

// The first byte of an input.
struct Choice {
  explicit Choice(std::uint8_t byte)
      : files(1 + byte % 2),
        mend((byte & 2) != 0),
        write_follows((byte & 4) != 0),
        one_write((byte & 24) != 0),
        open((byte & 16) != 0),
        tagged((byte & 32) != 0),
        fragments(byte >> 6) {}
  std::size_t files;      // log files that the input is cut into
  bool mend;              // the checksums of its fragments are mended, because no mutation would find one
  bool write_follows;     // an intact write comes after the input
  bool one_write, open;   // the fragments before the input are parts of one write; it goes on in the input
  bool tagged;            // the directory has a tag, and the first write and the one that follows have it
  std::size_t fragments;  // before the input: the last one fills the block up to the input, the others have no data
};

std::uint32_t checksum(std::string_view type_and_data) {
  return std::rotr(server::storage::crc32c(type_and_data), 15) + 0xA282EAD8u;
}

// An intact fragment.
std::string fragment(Type type, const std::string& data) {
  const std::string type_and_data = static_cast<char>(type) + data;
  std::string out;
  server::storage::put(&out, checksum(type_and_data));
  server::storage::put(&out, static_cast<std::uint16_t>(data.size()));
  return out + type_and_data;
}

// 16 bytes that depend on every byte of the input.
std::string tag_of(std::string_view input) {
  std::string tag;
  for (std::uint32_t i = 0; i < 4; ++i) server::storage::put(&tag, server::storage::crc32c(input, i));
  return tag;
}

// A write without other entries: the sequence number, the count, and the tag if there is one.
std::string write_with(const std::string& tag) {
  return tag.empty() ? "" : std::string(12, '\0') + std::string(server::storage::kTagEntryHead) + tag;
}

// The content of the file TAG. It counts as none if it is empty.
std::string tag_file(const std::string& tag) {
  if (tag.empty()) return "";
  std::string file = "KATG";
  server::storage::put(&file, server::storage::crc32c(tag));
  return file + tag;
}

// The fragments before the input, after the bytes in `file`. Between their end and the end of the first block, this
// many bytes are left.
std::string fragments_before(const Choice& choice, std::size_t distance, std::string file) {
  for (std::size_t i = 0; i < choice.fragments; ++i) {
    const bool last = i + 1 == choice.fragments;
    const bool begins = !choice.one_write || i == 0, ends = !choice.one_write || (last && !choice.open);
    const Type type = begins ? (ends ? kFull : kFirst) : (ends ? kLast : kMiddle);
    file += fragment(type, std::string(last ? kBlockBytes - distance - file.size() - kHeaderBytes : 0, '\0'));
  }
  return file;
}

// Appends an intact write, as the writer does. It leaves the end of a block empty if no header fits there.
void append_write(std::string* file, const std::string& write) {
  std::size_t left = kBlockBytes - file->size() % kBlockBytes;
  if (left < kHeaderBytes) {
    file->append(left, '\0');
    left = kBlockBytes;
  }
  const std::string first = write.substr(0, left - kHeaderBytes);
  const bool whole = first.size() == write.size();
  *file += fragment(whole ? kFull : kFirst, first);
  if (!whole) *file += fragment(kLast, write.substr(first.size()));
}

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
    if (kHeaderBytes + length > left || type < kFull || type > kLast) return false;
    std::string mended;
    server::storage::put(&mended, checksum(std::string_view(*file).substr(at + 6, 1 + length)));
    file->replace(at, mended.size(), mended);
    const bool continues = type == kMiddle || type == kLast;
    if (continues != inside) return false;
    inside = type == kFirst || type == kMiddle;
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
  const std::string tag_if_asked = fuzz::tag_of(bytes);
  const fuzz::Choice choice(fuzz::take_choice(&bytes));
  const std::string tag = choice.tagged ? tag_if_asked : "";
  const std::size_t distance = choice.fragments > 0 ? fuzz::take_choice(&bytes) : 0;
  bool intact = true;
  for (std::size_t i = 0; i < 2; ++i) {
    std::string file;
    if (i == 0 && choice.tagged) fuzz::append_write(&file, fuzz::write_with(tag));
    if (i == 0) file = fuzz::fragments_before(choice, distance, file);
    if (i < choice.files) file += bytes.substr(i * bytes.size() / choice.files, bytes.size() / choice.files);
    std::string mended = file;
    const bool whole = fuzz::mend(&mended);
    intact = intact && whole && (choice.mend || mended == file);
    if (choice.mend) file = std::move(mended);
    if (choice.write_follows && i + 1 == choice.files) fuzz::append_write(&file, fuzz::write_with(tag));
    folder.write("00000" + std::to_string(i) + ".log", file);
  }
  folder.write(server::storage::kWalTagFileName, fuzz::tag_file(tag));
  const Status status = server::storage::check_write_ahead_logs(folder.path());
  KILOKV_CHECK(status.ok() || status.code() == StatusCode::data_loss);
  KILOKV_CHECK(!intact || status.ok());
  KILOKV_CHECK(intact || !choice.write_follows || !status.ok());
  KILOKV_CHECK(!choice.tagged || choice.files > 1 || choice.write_follows || status.ok());
  return 0;
}
