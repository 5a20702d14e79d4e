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

// `nobody`: for a null login.
static std::string name_of(const Login* login, const char* nobody = "bootstrap") {
  if (login == nullptr) return nobody;
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

static constexpr char kWithoutLogins[] = "-";

void log_attach_begins(const Login* login, std::string_view peer, const HeldSession& session, BatchNumber batch,
                       std::uint64_t left_out) {
  const std::string before = left_out == 0 ? "" : " left_out=" + std::to_string(left_out);
  audit_log()->info("kilokvd audit user={} peer={} change=attach_session session={} holder={} batch={} result=begins{}",
                    name_of(login, kWithoutLogins), one_line(peer), shown(session.id), session.holder, batch, before);
}

void log_attach_refused(std::uint64_t refused, const Login* login, std::string_view peer, const SessionId& session,
                        const Status& status) {
  audit_log()->warn(
      "kilokvd audit refused attaches to sessions refused={} last_user={} last_peer={} last_session={} "
      "reason=\"{}\"",
      refused, name_of(login, kWithoutLogins), one_line(peer), shown(session), one_line(status.message()));
}

void log_level_change(const Login* login, std::string_view peer, std::string_view before, std::string_view now) {
  audit_log()->info("kilokvd audit user={} peer={} change=log_level new_level={} old_level={} result=OK",
                    name_of(login, kWithoutLogins), one_line(peer), now, before);
}

void log_console(const Login* login, std::string_view peer, std::string_view what, StatusCode result,
                 std::uint64_t left_out) {
  const std::string before = left_out == 0 ? "" : " left_out=" + std::to_string(left_out);
  audit_log()->info("kilokvd audit user={} peer={} console={} result={}{}", name_of(login, kWithoutLogins),
                    one_line(peer), what, to_string(result), before);
}

void log_backup(const Login* login, std::string_view peer, std::string_view backup, BatchNumber batch,
                const std::string& result) {
  audit_log()->info("kilokvd audit user={} peer={} backup={} batch={} result={}", name_of(login, kWithoutLogins),
                    one_line(peer), backup, batch, one_line(result));
}

}  // namespace kilokv::server
