#include "server/core/access/access_check.hpp"

#include "engine/txn/kinds.hpp"

namespace kilokv::server {
namespace {

using engine::OpKind;

bool writes(OpKind kind) {
  switch (kind) {
    case OpKind::get:
    case OpKind::range_get: return false;
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
  const std::uint32_t other = columns.guard_other[g];
  return read.contains(columns.key(key)) && (other == engine::kNone || read.contains(columns.key(other)));
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

}  // namespace

Status check_rights(const engine::TransactionColumns& columns, std::uint32_t begin, std::uint32_t end,
                    const Rights& rights, const std::string& user,
                    const std::function<std::uint32_t(std::uint32_t)>& index_of) {
  for (std::uint32_t t = begin; t < end; ++t) {
    for (std::uint32_t g = columns.guard_begin(t); g < columns.guard_end[t]; ++g) {
      if (may_read_guard(columns, g, rights.read)) continue;
      return right_missing(user, "read", place("guards", index_of(t), g - columns.guard_begin(t)));
    }
    for (std::uint32_t m = columns.then_begin(t); m < columns.else_end[t]; ++m) {
      if (may_run_operation(columns, m, rights)) continue;
      const bool in_then = m < columns.then_end[t];
      const std::uint32_t first = in_then ? columns.then_begin(t) : columns.then_end[t];
      const char* const right = writes(static_cast<OpKind>(columns.op_kind[m])) ? "write" : "read";
      return right_missing(user, right, place(in_then ? "then" : "else", index_of(t), m - first));
    }
  }
  return {};
}

Status right_missing(const std::string& user, const char* right, const std::string& field) {
  return {StatusCode::permission_denied, ErrorReason::right_missing,
          field + ": user \"" + user + "\" has no " + right +
              " right to it; an administrator can give it (kilokv role "
              "grant)"};
}

Status check_read_range(const AccessTable& table, const Login& login, std::string_view from, std::string_view to) {
  const std::shared_ptr<const Rights> rights = table.rights(login);
  if (rights == nullptr) return login_gone(login.user);
  return rights->read.contains_all(from, to) ? Status() : right_missing(login.user, "read", "range");
}

Status login_expired(const Login& login) {
  return {StatusCode::unauthenticated, ErrorReason::login_wrong, "the token " + login.token + " has expired"};
}

Status login_gone(const std::string& user) {
  return {StatusCode::permission_denied, ErrorReason::right_missing,
          "the login of user \"" + user + "\" was taken away"};
}

}  // namespace kilokv::server
