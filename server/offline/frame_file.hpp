// Reads the frames of a file one after the other. Thread safety: one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "engine/base/status.hpp"
#include "server/storage/backup_format.hpp"

namespace kilokv::server::offline {

class FrameFile {
 public:
  explicit FrameFile(std::string path) : path_(std::move(path)) {}
  ~FrameFile();
  FrameFile(const FrameFile&) = delete;
  FrameFile& operator=(const FrameFile&) = delete;

  // FAILED_PRECONDITION: the file cannot be read.
  Status open();

  // Whether the file may be a backup. It is one, or a damaged one, if it begins as a backup does but for two bits, with
  // zeros, or with the head of a first frame. INVALID_ARGUMENT: it is something else, and the message says what is
  // known of it. Requires: next() was not called yet.
  Status check_is_backup();

  // Whether the file is the beginning of a backup, so that a backup may go on in it: it is empty, or it begins exactly
  // as a backup does, or it is nothing but zeros, as a crash of the machine can leave it. The errors are those of
  // check_is_backup().
  Status check_is_ours();

  // Reads the next frame. False: the file has ended. DATA_LOSS: the frame is damaged; if `can_go_on()`, the next call
  // reads the frame after it. The frame is valid until the next call.
  Result<bool> next(storage::Frame* frame);
  bool can_go_on() const { return can_go_on_; }

  std::uint64_t offset() const { return offset_; }  // of the last frame
  std::uint64_t end() const { return end_; }        // of the last whole frame
  const std::string& path() const { return path_; }

 private:
  // Reads until the buffer has so many bytes, or the file ends.
  Status read(std::size_t bytes);
  bool has_other_than_zeros() const;

  const std::string path_;
  int file_ = -1;
  std::string buffer_;
  std::uint64_t offset_ = 0, end_ = 0;
  bool can_go_on_ = true;
};

}  // namespace kilokv::server::offline
