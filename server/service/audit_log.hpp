// Lines of the log about who got in, who changed users, roles and tokens, and who attached to a session. They have a
// logger of their own, so that --log-level does not drop them.
//
// A text of a client in such a line stands in double quotes, escaped, and whole if it is within the limits of the
// access table. So two different changes never have the same line.
// Thread safety: all functions.
#pragma once

#include <spdlog/logger.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "engine/base/status.hpp"
#include "engine/base/types.hpp"
#include "server/core/access/access_table.hpp"
#include "server/core/request_identity.hpp"

namespace kilokv::server {

// The name by which main() registers the logger with spdlog. Without it, the lines go to the usual logger.
inline constexpr char kAuditLogger[] = "kilokvd-audit";
std::shared_ptr<spdlog::logger> audit_log();

// The text in quotes, escaped. If it is longer than `bytes_max`, its begin, and how long it is.
std::string quoted(std::string_view text, std::size_t bytes_max);

// A change as text, such as: grant role="teller" read=["account/","account0"). Without secrets.
std::string range_text(const KeyRange& range);
std::string name_text(std::string_view name);  // of a role, a user or a token

// Writes the line about a change that goes into this batch. It is in force once the batch is durable, also if the
// process ends before the next line. `replaced_token`: as for AccessChangeBegins.
void log_change_begins(const Login* login, std::string_view peer, std::string_view what, BatchNumber batch,
                       const std::string& replaced_token);
// Writes the line about a change that was made, or refused. `login`: who asked for it; null: the start of the server.
void log_change(const Login* login, std::string_view peer, std::string_view what, const Result<BatchNumber>& batch);

// Writes the line about an attach that goes into this batch, as log_change_begins() does. The session is shown by the
// begin of its id. `login`: null: the server has no logins. `left_out`: so many attaches before had no line, because
// there were too many.
void log_attach_begins(const Login* login, std::string_view peer, const HeldSession& session, BatchNumber batch,
                       std::uint64_t left_out);
// Writes the line about attaches that were refused: how many there were since the last such line, and the last of them.
void log_attach_refused(std::uint64_t refused, const Login* login, std::string_view peer, const SessionId& session,
                        const Status& status);
// Writes the line about a change of the level of the log. `login`: null: the server has no logins.
void log_level_change(const Login* login, std::string_view peer, std::string_view before, std::string_view now);
// Writes the line about what somebody did in the console. `login`: null: the server has no logins. `left_out`: how many
// lines before had no place, because at most some are written in a second.
void log_console(const Login* login, std::string_view peer, std::string_view what, StatusCode result,
                 std::uint64_t left_out);
// Writes the line about a backup that begins, goes on or has ended: `backup` is its id, and it ends after this batch.
// `login`: null: the server has no logins.
void log_backup(const Login* login, std::string_view peer, std::string_view backup, BatchNumber batch,
                const std::string& result);

}  // namespace kilokv::server
