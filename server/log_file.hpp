// The log file as a sink of spdlog. It can be opened again while the server runs, so that logrotate may move it away:
// each line is whole in the file that was open when it was written. A line is one write(), so nothing is lost in a
// buffer when the process ends.
// Thread safety: all of it.
#pragma once

#include <spdlog/sinks/base_sink.h>

#include <memory>
#include <mutex>
#include <string>

#include "engine/base/status.hpp"

namespace kilokv::server {

class LogFile final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  // Appends to the file; creates it, and its folder, where they are missing. Errors: INVALID_ARGUMENT.
  static Result<std::shared_ptr<LogFile>> open(const std::string& path);
  ~LogFile() override;

  // Closes the file and opens what has the same path now. On an error lines go on to the old file.
  Status reopen();
  const std::string& path() const { return path_; }

 private:
  LogFile(std::string path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {}
  void sink_it_(const spdlog::details::log_msg& message) override;
  void flush_() override {}

  const std::string path_;
  int descriptor_;  // guarded by base_sink's mutex
};

}  // namespace kilokv::server
