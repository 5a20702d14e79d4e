#include "server/core/access/access_check.hpp"

#include "engine/txn/kinds.hpp"
#include "server/core/one_line.hpp"

namespace kilokv::server {
namespace {

using engine::OpKind;

bool writes(OpKind kind) {
  switch (kind) {
    case OpKind::get:
    case OpKind::range_get:
    case OpKind::range_get_reverse: return false;
    case OpKind::put:
    case OpKind::add:
    case OpKind::del:
    case OpKind::delete_range: return true;
  }
  return true;
}

bool may_read_guard(const engine::TransactionColumns& columns, std::uint32_t g, const KeySet& read) {
  const std::uint32_t key = columns.guard_key[g];
  if (uses_range(static_cast<engine::GuardKind>(columns.guard_kind[g]))) {
    return read.contains_all(columns.range_from(key), columns.range_to(key));
  }
  const auto may_read = [&](std::uint32_t named) {
    return named == engine::kNone || read.contains(columns.key(named));
  };
  return may_read(key) && may_read(columns.guard_other[g]);
}

bool may_run_operation(const engine::TransactionColumns& columns, std::uint32_t m, const Rights& rights) {
  const auto kind = static_cast<OpKind>(columns.op_kind[m]);
  const KeySet& keys = writes(kind) ? rights.write : rights.read;
  const std::uint32_t key = columns.op_key[m];
  if (uses_range(kind)) return keys.contains_all(columns.range_from(key), columns.range_to(key));
  return keys.contains(columns.key(key));
}

std::string place(const char* list, std::uint32_t t, std::uint32_t i) {
  return "transactions[" + std::to_string(t) + "]." + list + '[' + std::to_string(i) + ']';
}

std::string to_key(std::string_view key) { return " to the key \"" + short_line(key) + '"'; }
constexpr const char* kToAllOfRange = " to all keys of its range";

std::string to_guarded(const engine::TransactionColumns& columns, std::uint32_t g, const KeySet& read) {
  const std::uint32_t key = columns.guard_key[g];
  if (uses_range(static_cast<engine::GuardKind>(columns.guard_kind[g]))) return kToAllOfRange;
  return to_key(columns.key(read.contains(columns.key(key)) ? columns.guard_other[g] : key));
}

}  // namespace

Status check_rights(const engine::TransactionColumns& columns, std::uint32_t begin, std::uint32_t end,
                    const Rights& rights, const std::string& user,
                    const std::function<std::uint32_t(std::uint32_t)>& index_of) {
  for (std::uint32_t t = begin; t < end; ++t) {
    for (std::uint32_t g = columns.guard_begin(t); g < columns.guard_end[t]; ++g) {
      if (may_read_guard(columns, g, rights.read)) continue;
      const std::string field = place("guards", index_of(t), g - columns.guard_begin(t));
      return right_missing(user, "read", field, to_guarded(columns, g, rights.read));
    }
    for (std::uint32_t m = columns.then_begin(t); m < columns.else_end[t]; ++m) {
      if (may_run_operation(columns, m, rights)) continue;
      const bool in_then = m < columns.then_end[t];
      const std::uint32_t first = in_then ? columns.then_begin(t) : columns.then_end[t];
      const auto kind = static_cast<OpKind>(columns.op_kind[m]);
      return right_missing(user, writes(kind) ? "write" : "read",
                           place(in_then ? "then" : "else", index_of(t), m - first),
                           uses_range(kind) ? kToAllOfRange : to_key(columns.key(columns.op_key[m])));
    }
  }
  return {};
}

Status right_missing(const std::string& user, const char* right, const std::string& field, const std::string& to) {
  const std::string who = "user \"" + short_line(user) + "\"";
  return Status::violating(
      StatusCode::permission_denied, ErrorReason::right_missing,
      field + ": " + who + " has no " + right + " right" + to + "; an administrator can give it (kilokv role grant)",
      {field, std::string("the ") + right + " right", who + " without it", ""});
}

Status check_shown(const ResultSlice& slice, const Rights& rights, const std::string& user) {
  struct Look : ResultVisitor {
    explicit Look(const KeySet* read_keys) : read_rights(read_keys) {}
    void transaction(const TransactionResult& /*result*/) override {}
    void guard_value(const ReadValue& value) override { all &= read_rights->contains(value.key); }
    void read(std::uint32_t /*operation*/, const ReadValue& value) override { guard_value(value); }
    const KeySet* const read_rights;
    bool all = true;
  } look(&rights.read);
  slice.visit(&look);
  return look.all ? Status() : right_missing(user, "read", "uploaded_keys", " to all of these keys");
}

Status check_read_range(const AccessTable& table, const Login& login, std::string_view from, std::string_view to) {
  const std::shared_ptr<const Rights> rights = table.rights(login);
  if (rights == nullptr) return login_gone(login.user);
  return rights->read.contains_all(from, to) ? Status() : right_missing(login.user, "read", "range", kToAllOfRange);
}

Result<std::shared_ptr<const Rights>> rights_at(const AccessTable& table, const Login& login, TimeUs now_us) {
  std::shared_ptr<const Rights> rights = table.rights(login);
  if (rights == nullptr) return login_gone(login.user);
  if (login.expired(now_us)) return login_expired(login);
  return rights;
}

Status login_expired(const Login& login) {
  return Status::violating(StatusCode::unauthenticated, ErrorReason::login_wrong,
                           "the token " + short_line(login.token) + " has expired",
                           {"login", "a token that has not expired", "an expired token", ""});
}

Status login_gone(const std::string& user) {
  return Status::violating(StatusCode::permission_denied, ErrorReason::right_missing,
                           "the login of user \"" + short_line(user) + "\" was taken away",
                           {"login", "a login that counts", "a login that was taken away", ""});
}

}  // namespace kilokv::server
