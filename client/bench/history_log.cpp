// Role: see history_log.hpp.
#include "client/bench/history_log.hpp"

#include <cerrno>
#include <system_error>
#include <utility>
#include <vector>

#include "client/measure/steady_scan.hpp"

namespace kilokv::bench {

client::Expected<std::unique_ptr<HistoryLog>> HistoryLog::open(const RunOptions& options,
                                                               const std::string& config_json, client::Client* client) {
  std::FILE* file = std::fopen(options.history_path.c_str(), "wb");
  if (file == nullptr) {
    return make_error(client::ErrorCode::invalid_argument,
                      "cannot write --history " + options.history_path + ": " + std::generic_category().message(errno));
  }
  std::unique_ptr<HistoryLog> log(new HistoryLog(options.history_path, file));
  std::vector<client::Pair> initial;
  const auto position = scan_steadily(
      client, "", "", [&] { initial.clear(); }, [&](const client::Pair& pair) { initial.push_back(pair); },
      options.give_up_after_us);
  if (!position) return position.error();
  log->write(client::history_header(config_json, initial));
  return log;
}

void HistoryLog::add(const std::string& session, const client::Batch& batch, const client::Progress& progress) {
  client::HistoryContext context;
  context.session = session;
  context.request = progress.request;
  context.attempts = progress.attempts;
  context.began_us = began_us_;
  context.invoke_us = progress.invoke_us;
  context.return_us = progress.return_us;
  std::string lines;
  for (const std::uint32_t index : progress.indices) {
    client::append_history(batch, progress.results, index, context, &lines);
  }
  if (progress.error) {
    context.return_us.reset();
    context.ended_with(progress.error);
    for (std::size_t index = 0; index < batch.size(); ++index) {
      const bool answered =
          index < progress.results.size() && progress.results.outcome(index) != client::Outcome::unknown;
      if (!answered) client::append_history(batch, progress.results, index, context, &lines);
    }
  }
  write(lines);
}

void HistoryLog::write(const std::string& lines) {
  const std::lock_guard lock(mutex_);
  if (std::fwrite(lines.data(), 1, lines.size(), file_.get()) != lines.size()) failed_ = true;
}

std::string HistoryLog::close() {
  const std::lock_guard lock(mutex_);
  if (std::fclose(file_.release()) != 0) failed_ = true;
  return failed_ ? "could not write all of --history " + path_ : "";
}

}  // namespace kilokv::bench
