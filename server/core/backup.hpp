// A backup as core and the service see it: a stream of frames, in the format of the log's storage (docs/backup.md).
//
// A backup is a snapshot of everything that is durable at one batch boundary: the state of the last checkpoint, with
// its sessions and users, and the log from there to the boundary. Frames come in a fixed order, so a reader that lost
// its connection can go on after the last frame that it has, as long as the snapshot is kept.
//
// Thread safety: a BackupSource is for one thread at a time. Any thread may make one while the log is open.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "engine/base/status.hpp"
#include "engine/base/types.hpp"

namespace kilokv::server {

using BackupId = std::array<unsigned char, 16>;

// The place after a frame.
struct BackupPoint {
  std::uint64_t frame = 0;  // its index; the header is frame 0
  std::uint32_t crc = 0;    // its checksum, which the next frame carries
  std::uint8_t kind = 0;    // storage's number of its kind
  std::string key;          // the last key in it
};

class BackupSource {
 public:
  virtual ~BackupSource() = default;

  virtual const BackupId& id() const = 0;
  virtual BatchNumber boundary() const = 0;           // the last batch in it
  virtual std::uint64_t estimated_bytes() const = 0;  // of the whole stream

  // Whether the log that it needs is not kept any more, so that next() has nothing to give.
  virtual bool is_lost() const = 0;
  // The next frame will be the one after this point. INVALID_ARGUMENT: there is no such point.
  virtual Status seek(const BackupPoint& point) = 0;
  // Replaces `frame` by the next frame. False: there is none. Errors: ABORTED: the log that it needs is not kept any
  // more; DATA_LOSS, INTERNAL.
  virtual Result<bool> next(std::string* frame) = 0;
};

}  // namespace kilokv::server
