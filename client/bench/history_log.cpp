// Role: see history_log.hpp.
#include "client/bench/history_log.hpp"

#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "client/bench/steady_scan.hpp"

namespace kilokv::bench {

client::Expected<std::unique_ptr<HistoryLog>> HistoryLog::open(const RunOptions& options,
                                                               const std::string& config_json, client::Client* client) {
  std::FILE* file = std::fopen(options.history_path.c_str(), "wb");
  if (file == nullptr) {
    return make_error(client::ErrorCode::invalid_argument,
                      "cannot write --history " + options.history_path + ": " + std::strerror(errno));
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

client::HistoryContext HistoryLog::context(const client::Session& session) const {
  client::HistoryContext context;
  context.session = session.id();
  context.began_us = began_us_;
  return context;
}

void HistoryLog::add(const client::Session& session, const client::Batch& batch, const client::RequestResult& result) {
  std::string lines;
  client::append_history(batch, result, context(session), &lines);
  write(lines);
}

void HistoryLog::add_unanswered(const client::Session& session, const client::Batch& batch, std::int64_t invoke_us,
                                const client::Error& error) {
  client::HistoryContext unanswered = context(session);
  unanswered.invoke_us = invoke_us;
  unanswered.error = error.code;
  client::Results none;
  std::string lines;
  for (std::size_t index = 0; index < batch.size(); ++index) {
    client::append_history(batch, none, index, unanswered, &lines);
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
