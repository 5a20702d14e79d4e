// Role: see audit_log.hpp.
#include "server/service/audit_log.hpp"

#include <spdlog/spdlog.h>

#include "engine/txn/validate.hpp"
#include "server/core/one_line.hpp"

namespace kilokv::server {

std::shared_ptr<spdlog::logger> audit_log() {
  std::shared_ptr<spdlog::logger> own = spdlog::get(kAuditLogger);
  return own != nullptr ? own : spdlog::default_logger();
}

std::string quoted(std::string_view text, std::size_t bytes_max) {
  std::string line(1, '"');
  line.append(one_line(text.substr(0, bytes_max))).append(1, '"');
  if (text.size() > bytes_max) line.append("...(").append(std::to_string(text.size())).append("_bytes)");
  return line;
}

std::string range_text(const KeyRange& range) {
  std::string text(1, '[');
  text.append(quoted(range.from, engine::kKeyBytesMax)).append(1, ',');
  return text.append(quoted(range.to, engine::kKeyBytesMax)).append(1, ')');
}

std::string name_text(std::string_view name) { return quoted(name, AccessTable::kNameBytesMax); }

static std::string name_of(const Login* login) {
  if (login == nullptr) return "bootstrap";
  return login->user + (login->token.empty()
                            ? " certificate=" + quoted(login->certificate, AccessTable::kCertificateBytesMax)
                            : " token=" + login->token);
}

void log_change_begins(const Login* login, std::string_view peer, std::string_view what, BatchNumber batch,
                       const std::string& replaced_token) {
  const std::string replaced = replaced_token.empty() ? "" : " replaced_token=" + replaced_token;
  audit_log()->info("kilokvd audit user={} peer={} change={} batch={} result=begins{}", name_of(login), one_line(peer),
                    what, batch, replaced);
}

void log_change(const Login* login, std::string_view peer, std::string_view what, const Result<BatchNumber>& batch) {
  audit_log()->info("kilokvd audit user={} peer={} change={} batch={} result={}", name_of(login), one_line(peer), what,
                    batch.ok() ? *batch : 0, to_string(batch.status().code()));
}

}  // namespace kilokv::server
