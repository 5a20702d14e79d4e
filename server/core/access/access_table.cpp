#include "server/core/access/access_table.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "engine/txn/validate.hpp"
#include "server/core/access/access_record.hpp"
#include "server/core/digest.hpp"
#include "server/core/one_line.hpp"
#include "server/core/options.hpp"

namespace kilokv::server {
namespace {

using Kind = AccessChange::Kind;

// Names stand in logs, in lists and on command lines, so they have no spaces and nothing that a shell reads.
bool is_name_byte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
         c == '-' || c == '@';
}

Status check_name(const char* field, const std::string& name) {
  if (name.empty() || name.size() > AccessTable::kNameBytesMax) {
    return Status::invalid({field, "1 to " + std::to_string(AccessTable::kNameBytesMax) + " bytes",
                            std::to_string(name.size()) + " bytes", ""});
  }
  if (std::all_of(name.begin(), name.end(), is_name_byte)) return {};
  return Status::invalid({field, "letters, digits, and . _ - @", "other bytes", ""});
}

Status check_count(const char* field, std::size_t count, std::size_t max, const char* unit) {
  if (count <= max) return {};
  return Status::invalid({field, std::to_string(max) + unit, std::to_string(count) + unit, ""});
}

Status check_ranges(const char* field, const std::vector<KeyRange>& ranges) {
  Status status = check_count(field, ranges.size(), AccessTable::kRangesMax, " ranges");
  for (std::size_t i = 0; status.ok() && i < ranges.size(); ++i) {
    const std::string name = field + ('[' + std::to_string(i) + ']');
    const std::size_t longest = std::max(ranges[i].from.size(), ranges[i].to.size());
    if (longest > engine::kKeyBytesMax) {
      return Status::invalid(
          {name, std::to_string(engine::kKeyBytesMax) + " bytes", std::to_string(longest) + " bytes", ""});
    }
    if (!ranges[i].to.empty() && ranges[i].to <= ranges[i].from) {
      return Status::invalid({name, "a range whose begin is less than its end", "an empty range", ""});
    }
  }
  return status;
}

Status missing(const char* what, const std::string& name) {
  std::string message("there is no ");
  message.append(what).append(" \"").append(short_line(name)).append("\"");
  return {StatusCode::not_found, ErrorReason::access_unknown, std::move(message)};
}

Status is_full(const char* field, std::size_t max, std::size_t actual, const char* what) {
  return Status::exhausted(ErrorReason::access_full,
                           {field, std::to_string(max) + ' ' + what, std::to_string(actual) + ' ' + what, ""},
                           Status::kNoRetry);
}

template <class Map>
Status check_room(const Map& map, const std::string& name, std::size_t max, const char* what) {
  return map.contains(name) || map.size() < max ? Status() : is_full(what, max, map.size() + 1, what);
}

}  // namespace

// Whether each part of the change is valid, and has room.
Status AccessTable::check(const AccessChange& change) const {
  Status status;
  switch (change.kind) {
    case Kind::put_role:
      status = check_name("role", change.role.name);
      if (status.ok()) status = check_ranges("read", change.role.read);
      if (status.ok()) status = check_ranges("write", change.role.write);
      if (status.ok()) status = check_room(roles_, change.role.name, kRolesMax, "roles");
      break;
    case Kind::remove_role:
      if (!roles_.contains(change.role.name)) status = missing("role", change.role.name);
      break;
    case Kind::put_user: status = check_user(change.user); break;
    case Kind::remove_user:
      if (!users_.contains(change.user.name)) status = missing("user", change.user.name);
      break;
    case Kind::put_token:
      if (!users_.contains(change.token.user)) status = missing("user", change.token.user);
      if (status.ok()) status = check_name("token", change.token.id);
      if (status.ok()) status = check_room(tokens_, change.token.id, kTokensMax, "tokens");
      break;
    case Kind::remove_token:
      if (!tokens_.contains(change.token.id)) status = missing("token", change.token.id);
      break;
  }
  return status;
}

Result<AccessTable> AccessTable::after(std::span<const AccessChange> changes, bool with_certificates) const {
  if (Status status = check(changes.front()); !status.ok()) return status;  // before the copy
  AccessTable next = *this;
  next.apply(changes.front());
  for (const AccessChange& change : changes.subspan(1)) {
    if (Status status = next.check(change); !status.ok()) return status;
    next.apply(change);
  }
  const std::size_t bytes_after = next.bytes();
  if (bytes_after > kAccessBytesMax && bytes_after > bytes()) {
    return is_full("access", kAccessBytesMax, bytes_after, "bytes of users, roles and tokens");
  }
  if (!has_admin(with_certificates) || next.has_admin(with_certificates)) return next;
  return Status(StatusCode::failed_precondition, ErrorReason::access_needs_admin,
                "after this change nobody could log in who has the admin right; give it to another user first, with a "
                "token that does not expire, or with a certificate if the server asks for certificates "
                "(--tls-client-ca)");
}

const Token* AccessTable::replaced_by(const Token& token, TimeUs expired_by_us) const {
  if (tokens_.size() < kTokensMax || tokens_.contains(token.id)) return nullptr;
  const Token* first = nullptr;
  for (const auto& [id, other] : tokens_) {
    if (other.expires_us == 0 || other.expires_us > expired_by_us) continue;
    if (first == nullptr || other.expires_us < first->expires_us) first = &other;
  }
  return first;
}

bool AccessTable::takes_away(const AccessChange& change) const {
  const auto has_all = [](const auto& all, const auto& some) {
    return std::all_of(some.begin(), some.end(),
                       [&](const auto& one) { return std::find(all.begin(), all.end(), one) != all.end(); });
  };
  const auto covers = [](const std::vector<KeyRange>& all, const std::vector<KeyRange>& some) {
    const KeySet keys(all);
    return std::all_of(some.begin(), some.end(),
                       [&](const KeyRange& range) { return keys.contains_all(range.from, range.to); });
  };
  switch (change.kind) {
    case Kind::put_role: {
      const auto old = roles_.find(change.role.name);
      return old != roles_.end() &&
             !(covers(change.role.read, old->second.read) && covers(change.role.write, old->second.write));
    }
    case Kind::put_user: {
      const auto old = users_.find(change.user.name);
      return old != users_.end() && !(has_all(change.user.roles, old->second.roles) &&
                                      has_all(change.user.certificates, old->second.certificates));
    }
    case Kind::put_token: {
      const auto old = tokens_.find(change.token.id);
      return old != tokens_.end() && old->second.user != change.token.user;
    }
    case Kind::remove_role:
    case Kind::remove_user:
    case Kind::remove_token: return true;
  }
  return true;
}

std::size_t AccessTable::bytes() const {
  constexpr std::size_t kNode = 48;   // of a map, with what the allocator adds
  constexpr std::size_t kBlock = 32;  // the same for an object that is shared
  const auto of_text = [](const std::string& text) { return sizeof(std::string) + text.size(); };
  const auto of_ranges = [&](const Role& role) {
    std::size_t sum = 0;
    for (const auto* list : {&role.read, &role.write}) {
      for (const KeyRange& range : *list) sum += of_text(range.from) + of_text(range.to);
    }
    return sum;
  };
  std::map<std::string_view, std::size_t> of_roles;
  std::size_t sum = 0;
  for (const auto& [name, role] : roles_) {
    const std::size_t ranges = of_roles[name] = of_ranges(role);
    sum += kNode + of_text(name) + sizeof(Role) + name.size() + ranges;
  }
  for (const auto& [name, user] : users_) {
    sum += kNode + of_text(name) + sizeof(User) + name.size();
    sum += kNode + of_text(name) + kBlock + sizeof(Rights);
    for (const std::string& certificate : user.certificates) {
      sum += of_text(certificate) + kNode + of_text(certificate) + sizeof(CertificateHolder) + name.size();
    }
    for (const std::string& role : user.roles) {
      sum += of_text(role);
      if (const auto found = of_roles.find(role); found != of_roles.end()) sum += found->second;
    }
  }
  for (const auto& [id, token] : tokens_) sum += kNode + of_text(id) + sizeof(Token) + id.size() + token.user.size();
  return sum;
}

Status AccessTable::check_user(const User& user) const {
  Status status = check_name("user", user.name);
  if (status.ok()) status = check_count("roles", user.roles.size(), kRolesOfUserMax, " roles");
  if (status.ok()) status = check_count("certificates", user.certificates.size(), kCertificatesMax, " certificates");
  if (status.ok() && (user.weight < 1 || user.weight > kWeightMax)) {
    status = Status::invalid({"weight", "1 to " + std::to_string(kWeightMax), std::to_string(user.weight), ""});
  }
  if (status.ok()) status = check_room(users_, user.name, kUsersMax, "users");
  for (const std::string& role : user.roles) {
    if (status.ok() && !roles_.contains(role)) status = missing("role", role);
  }
  for (const std::string& name : user.certificates) {
    if (!status.ok()) break;
    if (name.empty() || name.size() > kCertificateBytesMax) {
      return Status::invalid({"certificates", "1 to " + std::to_string(kCertificateBytesMax) + " bytes",
                              std::to_string(name.size()) + " bytes", ""});
    }
    const CertificateHolder* const other = holder_of(name);
    if (other == nullptr || other->user == user.name) continue;
    std::string actual(1, '"');
    actual.append(short_line(name)).append("\", which user \"").append(other->user).append("\" has");
    return Status::invalid({"certificates", "names that no other user has", std::move(actual), ""});
  }
  return status;
}

void AccessTable::apply(const AccessChange& change) {
  ++changes_;
  switch (change.kind) {
    case Kind::put_role: {
      roles_.insert_or_assign(change.role.name, change.role);
      for (const auto& [name, user] : users_) {
        if (std::find(user.roles.begin(), user.roles.end(), change.role.name) != user.roles.end()) find_rights(name);
      }
      break;
    }
    case Kind::remove_role:
      roles_.erase(change.role.name);
      for (auto& [name, user] : users_) {
        if (std::erase(user.roles, change.role.name) > 0) find_rights(name);
      }
      break;
    case Kind::put_user:
      set_certificates(change.user.name, change.user.certificates);
      users_.insert_or_assign(change.user.name, change.user);
      find_rights(change.user.name);
      break;
    case Kind::remove_user:
      set_certificates(change.user.name, {});
      std::erase_if(tokens_, [&](const auto& entry) { return entry.second.user == change.user.name; });
      users_.erase(change.user.name);
      rights_.erase(change.user.name);
      break;
    case Kind::put_token: tokens_.insert_or_assign(change.token.id, change.token); break;
    case Kind::remove_token: tokens_.erase(change.token.id); break;
  }
}

void AccessTable::set_certificates(const std::string& user, const std::vector<std::string>& names) {
  if (const auto found = users_.find(user); found != users_.end()) {
    for (const std::string& name : found->second.certificates) {
      if (std::find(names.begin(), names.end(), name) == names.end()) certificates_.erase(name);
    }
  }
  for (const std::string& name : names) certificates_.try_emplace(name, CertificateHolder{user, changes_});
}

void AccessTable::find_rights(const std::string& user) {
  Rights rights;
  std::vector<KeyRange> read, write;
  for (const std::string& name : users_.at(user).roles) {
    const auto found = roles_.find(name);
    if (found == roles_.end()) continue;
    const Role& role = found->second;
    read.insert(read.end(), role.read.begin(), role.read.end());
    write.insert(write.end(), role.write.begin(), role.write.end());
    rights.admin |= role.admin;
    rights.metrics |= role.metrics;
  }
  rights.read = KeySet(std::move(read));
  rights.write = KeySet(std::move(write));
  rights_.insert_or_assign(user, std::make_shared<const Rights>(std::move(rights)));
}

bool AccessTable::has_admin(bool with_certificates) const {
  const auto is_admin = [this](const std::string& user) {
    const auto found = rights_.find(user);
    return found != rights_.end() && found->second->admin;
  };
  return (with_certificates && std::any_of(certificates_.begin(), certificates_.end(),
                                           [&](const auto& entry) { return is_admin(entry.second.user); })) ||
         std::any_of(tokens_.begin(), tokens_.end(),
                     [&](const auto& entry) { return entry.second.expires_us == 0 && is_admin(entry.second.user); });
}

std::shared_ptr<const Rights> AccessTable::rights(const Login& login) const {
  if (!login.token.empty()) {
    const auto token = tokens_.find(login.token);
    if (token == tokens_.end() || token->second.user != login.user) return nullptr;
  } else {
    const CertificateHolder* const holder = holder_of(login.certificate);
    if (holder == nullptr || holder->user != login.user || holder->since != login.certificate_since) return nullptr;
  }
  const auto found = rights_.find(login.user);
  return found == rights_.end() ? nullptr : found->second;
}

std::uint32_t AccessTable::weight(std::string_view user) const {
  const auto found = users_.find(user);
  return found == users_.end() ? 1 : found->second.weight;
}

const CertificateHolder* AccessTable::holder_of(std::string_view certificate) const {
  const auto found = certificates_.find(certificate);
  return found == certificates_.end() ? nullptr : &found->second;
}

Hash128 AccessTable::hash() const { return empty() ? Hash128{} : digest_of(encode_table(*this)); }

}  // namespace kilokv::server
