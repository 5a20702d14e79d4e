// The frames of backups and archives, and what is in them (server/storage/backup_format.cpp). The first byte chooses
// what is read. The payload of a frame is read as it is, because no input has the checksum of a frame by chance.
#include <string>

#include "server/storage/backup_format.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace kilokv::fuzz {
namespace {

using namespace kilokv::server;
using storage::Frame;
using storage::FrameKind;

// Frames of any file, one after the other, as storage and clients read them.
void check_frames(std::string_view bytes) {
  storage::FrameChain chain;
  for (;;) {
    const Result<std::size_t> length = storage::frame_length(bytes);
    if (!length.ok() || *length == 0 || *length > bytes.size()) return;
    const Result<Frame> frame = storage::decode_frame(bytes.substr(0, *length));
    if (!frame.ok()) return;
    std::string again;
    KILOKV_CHECK(storage::encode_frame(frame->kind, frame->index, frame->previous_crc, frame->payload, &again) ==
                 frame->crc);
    KILOKV_CHECK(again == bytes.substr(0, *length));
    if (!chain.check(*frame).ok()) return;
    bytes.remove_prefix(*length);
  }
}

// A frame with this payload, and the place after it.
void check_point(FrameKind kind, std::string_view payload) {
  std::string bytes;
  const std::uint32_t crc = storage::encode_frame(kind, 3, 7, payload, &bytes);
  check_frames(bytes);
  const Result<Frame> frame = storage::decode_frame(bytes);
  KILOKV_CHECK(frame.ok() && frame->payload == payload && frame->crc == crc);
  std::string damaged = bytes;
  damaged[damaged.size() / 2] = static_cast<char>(damaged[damaged.size() / 2] ^ 1);
  KILOKV_CHECK(!storage::decode_frame(damaged).ok());
  const Result<BackupPoint> point = storage::point_after(*frame);
  if (point.ok()) KILOKV_CHECK(point->frame == 3 && point->crc == crc);
}

// What is read can be written, and is then read as the same.
void check_header(std::string_view payload) {
  const Result<storage::BackupHeader> header = storage::decode_header(payload);
  if (!header.ok()) return;
  const std::string once = storage::encode_header(*header);
  const Result<storage::BackupHeader> again = storage::decode_header(once);
  KILOKV_CHECK(again.ok() && storage::encode_header(*again) == once);
  KILOKV_CHECK(again->id == header->id && again->access == header->access);
}

void check_entries(std::string_view payload) {
  std::string again;
  const Status status = storage::each_entry(payload, [&](std::string_view key, std::string_view value) {
    storage::put_entry(key, value, &again);
    return Status();
  });
  KILOKV_CHECK(status.ok() ? again == payload : payload.starts_with(again));
  check_point(FrameKind::state, payload);
}

void check_log_entries(std::string_view payload) {
  std::string again;
  const Status status = storage::each_log_entry(payload, [&](std::string_view record) {
    storage::put_log_entry(record, &again);
    return Status();
  });
  KILOKV_CHECK(status.ok() ? again == payload : payload.starts_with(again));
  check_point(FrameKind::log, payload);
}

}  // namespace
}  // namespace kilokv::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace kilokv;
  using namespace kilokv::server;
  std::string_view bytes = fuzz::text_of(data, size);
  switch (fuzz::take_choice(&bytes) % 6) {
    case 0: fuzz::check_frames(bytes); break;
    case 1: fuzz::check_header(bytes); break;
    case 2: fuzz::check_entries(bytes); break;
    case 3: fuzz::check_log_entries(bytes); break;
    case 4: {
      const Result<storage::BackupEnd> end = storage::decode_end(bytes);
      if (end.ok()) KILOKV_CHECK(storage::encode_end(*end) == bytes);
      break;
    }
    default: {
      const Result<storage::ArchiveHeader> header = storage::decode_archive(bytes);
      if (header.ok()) KILOKV_CHECK(storage::encode_archive(*header) == bytes);
    }
  }
  return 0;
}
