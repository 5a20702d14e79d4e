// The text log: the file of --log-file, as a sink of spdlog. It has lines for people. The commit log is another thing
// (server/core/commit_log.hpp).
//
// The file can be opened again while the server runs, so that logrotate can move it.
// Each line is whole in the file that was open when the line was written. A line is one write(), so no buffer loses
// lines when the process ends.
// Thread safety: all members.
#pragma once

#include <spdlog/sinks/base_sink.h>

#include <memory>
#include <mutex>
#include <string>

#include "engine/base/status.hpp"

namespace kilokv::server {

class TextLog final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  // Opens the file to append to it. Creates the file and its folder if they are missing. Errors: INVALID_ARGUMENT.
  static Result<std::shared_ptr<TextLog>> open(const std::string& path);
  // Whether open() would succeed, as far as one can tell without making the file or a folder. Errors: INVALID_ARGUMENT.
  static Status check(const std::string& path);
  ~TextLog() override;

  // Closes the file, and opens the file that has the same path now. After an error, lines still go to the old file.
  Status reopen();
  const std::string& path() const { return path_; }

 private:
  TextLog(std::string path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {}
  void sink_it_(const spdlog::details::log_msg& message) override;
  void flush_() override {}

  const std::string path_;
  int descriptor_;  // guarded by base_sink's mutex
};

}  // namespace kilokv::server
