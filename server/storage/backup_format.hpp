// The frames of a backup and of an archive (docs/backup.md). No RocksDB here.
//
// A frame has a kind, an index, the checksum of the frame before it, and a checksum of its own. So a frame that is
// damaged, missing, doubled or of another backup is found, and so is an end that is missing.
//
// Thread safety: none; the functions are pure.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "engine/base/status.hpp"
#include "server/core/backup.hpp"
#include "server/core/commit_log.hpp"
#include "server/storage/stored_values.hpp"

namespace kilokv::server::storage {

inline constexpr std::uint32_t kFrameMagic = 0x4B41424B;  // "KBAK"
inline constexpr std::uint32_t kBackupFormat = 1;
inline constexpr std::size_t kFrameHeadBytes = 24;
inline constexpr std::size_t kFrameBytesMin = kFrameHeadBytes + 4;
// A frame is closed when its payload has so many bytes. One long entry can make it longer: a log record has at most 3.5
// GiB of one transaction.
inline constexpr std::size_t kFramePayloadBytes = std::size_t{512} << 10;
inline constexpr std::uint32_t kFramePayloadMax = UINT32_MAX - kFrameBytesMin;

// In the order of a backup. The last two begin and end a file of the archive.
enum class FrameKind : std::uint8_t {
  header = 1,
  state = 2,
  session = 3,
  log = 4,
  end = 5,
  archive = 6,
  archive_end = 7
};

struct Frame {
  FrameKind kind = FrameKind::header;
  std::uint64_t index = 0;
  std::uint32_t previous_crc = 0, crc = 0;
  std::string_view payload;
};

// INTERNAL: a payload of this length fits into no frame.
Status check_payload(std::string_view payload);
// Appends a frame to `out`, and returns its checksum. Requires: check_payload().
std::uint32_t encode_frame(FrameKind kind, std::uint64_t index, std::uint32_t previous_crc, std::string_view payload,
                           std::string* out);
// The length of the frame that begins here. 0: its head is not whole yet. DATA_LOSS: no frame begins here.
Result<std::size_t> frame_length(std::string_view bytes);
// Requires: the bytes have the length of the frame. DATA_LOSS: it is damaged.
Result<Frame> decode_frame(std::string_view bytes);

// Checks the order of frames.
class FrameChain {
 public:
  Status check(const Frame& frame);
  std::uint64_t frames() const { return next_; }

 private:
  std::uint64_t next_ = 0;
  std::uint32_t crc_ = 0;
};

// The payload of the first frame.
struct BackupHeader {
  BackupId id{};
  DatabaseIdentity identity;
  Checkpoint checkpoint;
  RecoveredPosition boundary;
  bool has_access = false;
  std::string access;  // the access table of the checkpoint, in core's encoding
};
std::string encode_header(const BackupHeader& header);
Result<BackupHeader> decode_header(std::string_view payload);

// The payload of the last frame.
struct BackupEnd {
  RecoveredPosition position;
  std::uint64_t frames = 0;  // this one included
};
std::string encode_end(const BackupEnd& end);
Result<BackupEnd> decode_end(std::string_view payload);

// The payload of the first frame of a file of the archive.
struct ArchiveHeader {
  std::array<unsigned char, 16> database{};
  std::array<unsigned char, 16> incarnation{};
  BatchNumber first_batch = 0;
  std::uint32_t previous_crc = 0;  // of the log record before the first
};
std::string encode_archive(const ArchiveHeader& header);
Result<ArchiveHeader> decode_archive(std::string_view payload);

// Entries of state and session frames: a key and a value.
void put_entry(std::string_view key, std::string_view value, std::string* payload);
// Entries of log frames: a record, as the log has it.
void put_log_entry(std::string_view record, std::string* payload);
// Calls `visit` for each entry, and ends with the first status that is not ok. DATA_LOSS: the payload is malformed.
Status each_entry(std::string_view payload, const std::function<Status(std::string_view, std::string_view)>& visit);
Status each_log_entry(std::string_view payload, const std::function<Status(std::string_view)>& visit);

// The point after a whole frame, from which another stream can go on. Requires: the frame is no end.
Result<BackupPoint> point_after(const Frame& frame);

}  // namespace kilokv::server::storage
