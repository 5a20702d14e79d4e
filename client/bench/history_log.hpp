// The history file of a run: first the pairs that were in the database before, then every transaction with its answer,
// in the format of kilokv/history.hpp. Thread safety: any thread may call add().
#pragma once

#include <cstdio>
#include <memory>
#include <mutex>
#include <string>

#include "client/bench/run_options.hpp"
#include "kilokv/history.hpp"

namespace kilokv::bench {

class HistoryLog {
 public:
  // Creates the file and writes its header: `config_json`, and all pairs of the database with their versions.
  static client::Expected<std::unique_ptr<HistoryLog>> open(const RunOptions& options, const std::string& config_json,
                                                            client::Client* client);

  // Writes the transactions of `batch` that were answered now. After an error, also writes those that never were
  // answered.
  void add(const std::string& session, const client::Batch& batch, const client::Progress& progress);
  std::string close();  // says what went wrong, for a person; empty: all is written

 private:
  struct CloseFile {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  HistoryLog(std::string path, std::FILE* file) : path_(std::move(path)), file_(file) {}
  void write(const std::string& lines);

  const std::string path_;
  const std::int64_t began_us_ = client::monotonic_us();
  std::mutex mutex_;
  std::unique_ptr<std::FILE, CloseFile> file_;
  bool failed_ = false;
};

}  // namespace kilokv::bench
