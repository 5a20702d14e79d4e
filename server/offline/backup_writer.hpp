// Writes the stream of a backup into a file, and checks it: each frame as it comes, and at the end the hash of the
// state.
//
// The file is PATH.partial until it is complete, has mode 0600, and holds whole frames only. So a backup that was
// interrupted, or whose program was killed, goes on after the last frame. It is locked: two programs never write one
// file.
//
// Thread safety: one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "engine/base/status.hpp"
#include "server/offline/summary.hpp"

namespace kilokv::server::offline {

class BackupWriter {
 public:
  // Where the stream goes on: after the last whole frame.
  struct Resume {
    std::string backup;  // 16 bytes
    std::uint64_t frame = 0;
    std::uint32_t crc = 0, kind = 0;
    std::string key;
  };

  // Begins `path`.partial, or reads what is there and goes on. `verifies`: the hash of the state is compared at the
  // end, which reads the file once more, and takes memory for the sessions, and for the keys that the backup's log
  // writes. FAILED_PRECONDITION: `path` is there already, another program writes it, or it cannot be written.
  static Result<std::unique_ptr<BackupWriter>> open(const std::string& path, bool verifies);
  virtual ~BackupWriter() = default;

  // Takes the next bytes of the stream.
  virtual Status take(std::string_view data) = 0;
  // The connection is lost: forgets what is no whole frame.
  virtual void interrupted() = 0;
  // Empty: nothing is there yet.
  virtual std::optional<Resume> resume() const = 0;
  // Forgets everything, for another backup.
  virtual Status start_over() = 0;
  virtual bool is_complete() const = 0;
  virtual std::uint64_t bytes() const = 0;  // in the file
  // Why open() has thrown away what was there. Empty: it has not.
  virtual const std::string& forgotten() const = 0;
  // Removes the partial file if nothing is in it. Nothing can be taken after it.
  virtual void remove_if_empty() = 0;
  // Compares the hash, makes the file durable, and gives it its name. Requires: it is complete. DATA_LOSS: the hash
  // differs; then the partial file stays, and the next open() begins it again.
  virtual Result<Summary> finish() = 0;
};

}  // namespace kilokv::server::offline
