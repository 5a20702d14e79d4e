#include "server/service/bootstrap.hpp"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "server/core/one_line.hpp"
#include "server/edge/descriptor.hpp"
#include "server/service/audit_log.hpp"
#include "server/service/unix_time.hpp"
#include "tls/token.hpp"

namespace kilokv::server {
namespace {

constexpr char kName[] = "admin";  // of the role and of the user
constexpr std::string_view kTokenBegin = "kilokv_";

Status problem(const std::string& what) {
  return {StatusCode::failed_precondition, ErrorReason::failed, "--bootstrap-file: " + what};
}

Status problem_of(const std::string& file, const char* doing) {
  return problem(std::string("cannot ") + doing + " " + file + ": " + std::generic_category().message(errno));
}

std::string draft_of(const std::string& file) { return file + ".new"; }

// Nobody else may have put the file there, or may read it. So it is no link, and no pipe that would make us wait.
Result<std::string> read_own(const std::string& file, const Descriptor& in) {
  struct stat state {};
  if (::fstat(in.get(), &state) != 0) return problem_of(file, "read");
  if (!S_ISREG(state.st_mode)) return problem(file + " is not a usual file");
  if (state.st_uid != ::geteuid()) return problem(file + " belongs to another user; give it to the user of kilokvd");
  if ((state.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    return problem("others than the owner have rights to " + file + "; take them away (chmod 600)");
  }
  std::array<char, 256> bytes{};
  const ssize_t count = ::read(in.get(), bytes.data(), bytes.size());
  if (count < 0) return problem_of(file, "read");
  return std::string(bytes.data(), static_cast<std::size_t>(count));
}

Descriptor open_own(const std::string& file) {
  return Descriptor(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
}

// The draft of a start that ended in the middle: a token, or the begin of one.
Status remove_draft(const std::string& draft) {
  const Descriptor in = open_own(draft);
  if (in.get() < 0 && errno == ENOENT) return {};
  if (in.get() < 0) return problem_of(draft, "open");
  const Result<std::string> text = read_own(draft, in);
  if (!text.ok()) return text.status();
  if (text->substr(0, kTokenBegin.size()) != kTokenBegin.substr(0, text->size())) {
    return problem(draft + " is in the way, and kilokvd has not made it; give it another name");
  }
  return ::unlink(draft.c_str()) == 0 ? Status() : problem_of(draft, "remove");
}

// The file appears whole or not at all, because a start that finds a part of a token could not go on.
Result<tls::TokenParts> make(const std::string& file) {
  const std::optional<tls::NewToken> token = tls::make_token();
  if (!token) return problem("the system has no random bytes for a token");
  const std::string draft = draft_of(file), line = token->text + '\n';
  const Descriptor out(::open(draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR));
  if (out.get() < 0) return problem_of(draft, "make");
  if (::write(out.get(), line.data(), line.size()) != static_cast<ssize_t>(line.size()) || ::fsync(out.get()) != 0) {
    return problem_of(draft, "write");
  }
  if (::link(draft.c_str(), file.c_str()) != 0) return problem_of(file, "make");
  ::unlink(draft.c_str());
  // The name must be durable before the user is: without the file, nobody knows the token.
  const std::string folder = std::filesystem::path(file).parent_path().string();
  const Descriptor names(::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (names.get() < 0 || ::fsync(names.get()) != 0) return problem_of(file, "sync");
  return token->parts;
}

Result<tls::TokenParts> read_token(const std::string& file) {
  const Descriptor in = open_own(file);
  if (in.get() < 0 && errno == ELOOP) return problem(file + " is a symbolic link; name the file itself");
  if (in.get() < 0) return problem_of(file, "open");
  const Result<std::string> content = read_own(file, in);
  if (!content.ok()) return content.status();
  std::string_view text = *content;
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == ' ')) text.remove_suffix(1);
  std::optional<tls::TokenParts> parts = tls::parse_token(text);
  if (parts) return std::move(*parts);
  return problem(file + " does not hold a token, which is kilokv_, 16 hex digits, _ and 64 hex digits");
}

bool is_there(const std::string& file) {
  struct stat state {};
  return ::lstat(file.c_str(), &state) == 0 || errno != ENOENT;
}

Result<tls::TokenParts> token_of(const std::string& file) {
  if (Status status = remove_draft(draft_of(file)); !status.ok()) return status;
  return is_there(file) ? read_token(file) : make(file);
}

// Whether the token in the file is the one that the server knows by its id.
bool is_known(const AccessTable& table, const tls::TokenParts& token) {
  const auto known = table.tokens().find(token.id);
  return known != table.tokens().end() && known->second.secret_hash == token.secret_hash;
}

// With --bootstrap-again. A token that the server does not know may have been removed, and then it must not count
// again. So the file of a start that ended before its token was durable is not taken either. Each refusal says how to
// go on.
Status check_file_is_new(const std::string& file, const AccessTable& table, bool has_admin) {
  if (!is_there(file)) return {};
  const std::string begin = file + " is there already, and --bootstrap-again needs a new file for a new token. ";
  const Result<tls::TokenParts> token = read_token(file);
  if (!token.ok()) return problem(begin + "Give another name");
  if (!is_known(table, *token)) {
    return problem(begin +
                   "The server does not know the token in the file: the start that made the file ended too "
                   "early, or the token was removed. Remove the file, or give another name");
  }
  if (!has_admin) return problem(begin + "Nobody with the admin right can log in with its token. Give another name");
  return problem(begin + "The token in the file already counts for the user " + table.tokens().at(token->id).user +
                 ". Start without --bootstrap-again");
}

bool is_all(const std::vector<KeyRange>& ranges) {
  return ranges.size() == 1 && ranges[0].from.empty() && ranges[0].to.empty();
}

// Whether the table has nothing, or only what a bootstrap makes before the token: the role, and then the user. Changes
// by administrators never lead there, because one of them must be left who can log in.
bool has_no_users_yet(const AccessTable& table) {
  if (!table.tokens().empty() || table.users().size() > 1 || table.roles().size() > 1) return false;
  for (const auto& [name, role] : table.roles()) {
    if (name != kName || !role.admin || !role.metrics || !is_all(role.read) || !is_all(role.write)) return false;
  }
  for (const auto& [name, user] : table.users()) {
    if (name != kName || !user.certificates.empty() || user.roles != std::vector<std::string>{kName}) return false;
  }
  return true;
}

// A name that no role and no user has: what others have is not changed.
std::string free_name(const AccessTable& table) {
  std::string name = kName;
  for (int i = 2; table.roles().contains(name) || table.users().contains(name); ++i) {
    name = kName + ('-' + std::to_string(i));
  }
  return name;
}

Status change(Database* database, AccessChange change, const std::string& what) {
  auto promise = std::make_shared<std::promise<Result<BatchNumber>>>();
  std::future<Result<BatchNumber>> done = promise->get_future();
  database->change_access(
      nullptr, [change = std::move(change)](const AccessTable&) -> Result<AccessChange> { return change; },
      [promise](const Result<BatchNumber>& batch) { promise->set_value(batch); },
      [what](BatchNumber batch, const std::string& replaced_token) {
        log_change_begins(nullptr, "local", what, batch, replaced_token);
      });
  const Result<BatchNumber> batch = done.get();
  log_change(nullptr, "local", what, batch);
  return batch.status();
}

Status make_admin(Database* database, const std::string& name, const tls::TokenParts& token) {
  const std::vector<KeyRange> all = {KeyRange{}};
  AccessChange role{
      .kind = AccessChange::Kind::put_role, .role = {name, all, all, true, true}, .user = {}, .token = {}};
  AccessChange user{.kind = AccessChange::Kind::put_user, .role = {}, .user = {name, {name}, {}}, .token = {}};
  AccessChange put_token{.kind = AccessChange::Kind::put_token, .role = {}, .user = {}, .token = {}};
  put_token.token = {
      .id = token.id, .user = name, .secret_hash = token.secret_hash, .created_us = unix_us_now(), .expires_us = 0};
  const std::string named = name_text(name), range = range_text(KeyRange{});
  Status status = change(database, std::move(role),
                         "grant role=" + named + " read=" + range + " write=" + range + " admin=true metrics=true");
  if (status.ok()) {
    status = change(database, std::move(user), "change_user of_user=" + named + " add_roles=" + named);
  }
  if (!status.ok()) return status;
  return change(database, std::move(put_token),
                "create_token of_user=" + named + " new_token=" + token.id + " expires_us=0");
}

// A start with --bootstrap-again may have ended before its token was durable.
void note_unknown_token(const std::string& file, const AccessTable& table) {
  if (file.empty()) return;
  const Result<tls::TokenParts> token = read_token(file);
  if (!token.ok() || is_known(table, *token)) return;
  spdlog::info(
      "kilokvd does not know the token in the bootstrap file: it was removed, or the start that made it ended too "
      "early. For a new administrator, give --bootstrap-again on and the name of a new file bootstrap_file=\"{}\"",
      one_line(file));
}

}  // namespace

Status check_bootstrap(const BootstrapOptions& options) {
  if (!options.again || !options.file.empty()) return {};
  return {StatusCode::failed_precondition, ErrorReason::failed,
          "--bootstrap-again needs --bootstrap-file FILE, the name of a new file for the token"};
}

Status bootstrap_admin(Database* database, const BootstrapOptions& options) {
  const Access::Table table = database->access().latest();
  const bool has_admin = table->has_admin(database->options().certificates_log_in);
  const bool is_first = has_no_users_yet(*table);
  if (has_admin && !options.again) {
    note_unknown_token(options.file, *table);
    return {};
  }
  if (!is_first && !options.again) {
    return {StatusCode::failed_precondition, ErrorReason::failed,
            "--login is on, and there are users, but none with the admin right can log in. If administrators log in "
            "with certificates, give --tls-client-ca. Otherwise give --bootstrap-again on, and --bootstrap-file with "
            "the name of a new file: the server makes one more administrator, and writes a new token to the file"};
  }
  if (Status status = check_bootstrap(options); !status.ok()) return status;
  if (options.file.empty()) {
    return {StatusCode::failed_precondition, ErrorReason::failed,
            "--login is on, and no user has the admin right yet: give --bootstrap-file FILE. The server makes the user "
            "admin, and writes its token to the file"};
  }
  // Without users, no token was ever removed: the last start ended in the middle, and this one goes on with its file.
  if (options.again && !is_first) {
    if (Status status = check_file_is_new(options.file, *table, has_admin); !status.ok()) return status;
  }
  const Result<tls::TokenParts> token = token_of(options.file);
  if (!token.ok()) return token.status();
  const std::string name = is_first ? kName : free_name(*table);
  if (Status status = make_admin(database, name, *token); !status.ok()) return status;
  spdlog::info("kilokvd has made the user {}, whose token is in the bootstrap file bootstrap_file=\"{}\" token={}",
               name, one_line(options.file), token->id);
  return {};
}

}  // namespace kilokv::server
