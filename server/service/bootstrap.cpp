#include "server/service/bootstrap.hpp"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <future>
#include <memory>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "server/core/one_line.hpp"
#include "server/edge/descriptor.hpp"
#include "tls/token.hpp"

namespace kilokv::server {
namespace {

constexpr char kName[] = "admin";  // of the role and of the user

Status problem(const std::string& what) {
  return {StatusCode::failed_precondition, ErrorReason::failed, "--bootstrap-file: " + what};
}

Status problem_of(const std::string& file, const char* doing) {
  return problem(std::string("cannot ") + doing + " " + file + ": " + std::generic_category().message(errno));
}

std::string draft_of(const std::string& file) { return file + ".new"; }

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

Result<tls::TokenParts> read(const std::string& file, const Descriptor& in) {
  struct stat state {};
  if (::fstat(in.get(), &state) != 0) return problem_of(file, "read");
  if ((state.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    return problem("others than the owner have rights to " + file + "; take them away (chmod 600)");
  }
  std::array<char, 256> bytes{};
  const ssize_t count = ::read(in.get(), bytes.data(), bytes.size());
  if (count < 0) return problem_of(file, "read");
  std::string_view text(bytes.data(), static_cast<std::size_t>(count));
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == ' ')) text.remove_suffix(1);
  std::optional<tls::TokenParts> parts = tls::parse_token(text);
  if (parts) return std::move(*parts);
  return problem(file + " does not hold a token, which is kilokv_, 16 hex digits, _ and 64 hex digits");
}

Result<tls::TokenParts> token_of(const std::string& file) {
  ::unlink(draft_of(file).c_str());  // of a start that ended in the middle
  const Descriptor in(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (in.get() >= 0) return read(file, in);
  if (errno != ENOENT) return problem_of(file, "open");
  return make(file);
}

Status change(Database* database, AccessChange change) {
  auto promise = std::make_shared<std::promise<Status>>();
  std::future<Status> done = promise->get_future();
  database->change_access(
      nullptr, [change = std::move(change)](const AccessTable&) -> Result<AccessChange> { return change; },
      [promise](const Result<BatchNumber>& batch) { promise->set_value(batch.status()); });
  return done.get();
}

}  // namespace

Status bootstrap_admin(Database* database, const std::string& file) {
  if (database->access().latest()->has_admin(database->options().certificates_log_in)) return {};
  if (file.empty()) {
    return Status(
        StatusCode::failed_precondition, ErrorReason::failed,
        "--login is on, and no user has the admin right yet: give --bootstrap-file FILE. The server makes the "
        "user admin, and writes its token to the file");
  }
  const Result<tls::TokenParts> token = token_of(file);
  if (!token.ok()) return token.status();
  const std::vector<KeyRange> all = {KeyRange{}};
  AccessChange role{
      .kind = AccessChange::Kind::put_role, .role = {kName, all, all, true, true}, .user = {}, .token = {}};
  AccessChange user{.kind = AccessChange::Kind::put_user, .role = {}, .user = {kName, {kName}, {}}, .token = {}};
  AccessChange put_token{.kind = AccessChange::Kind::put_token, .role = {}, .user = {}, .token = {}};
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  put_token.token = {.id = token->id,
                     .user = kName,
                     .secret_hash = token->secret_hash,
                     .created_us = std::chrono::duration_cast<std::chrono::microseconds>(now).count(),
                     .expires_us = 0};
  for (AccessChange* step : {&role, &user, &put_token}) {
    if (Status status = change(database, std::move(*step)); !status.ok()) return status;
  }
  spdlog::info("kilokvd has made the user admin, whose token is in the bootstrap file bootstrap_file=\"{}\" token={}",
               one_line(file), token->id);
  return {};
}

}  // namespace kilokv::server
