#include "server/service/access_calls.hpp"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "server/core/one_line.hpp"
#include "server/service/audit_log.hpp"
#include "tls/token.hpp"

namespace kilokv::server {
namespace {

using Kind = AccessChange::Kind;
template <class T>
using Repeated = google::protobuf::RepeatedPtrField<T>;

constexpr std::uint32_t kListDefault = 100, kListMax = 1000;

AccessChange change_with(Kind kind) { return {.kind = kind, .role = {}, .user = {}, .token = {}}; }

std::vector<KeyRange> ranges_of(const Repeated<v1::KeyRange>& ranges) {
  std::vector<KeyRange> out;
  for (const v1::KeyRange& range : ranges) out.push_back({range.from(), range.to()});
  return out;
}

Status unknown(const std::string& what) { return {StatusCode::not_found, ErrorReason::access_unknown, what}; }

// Adds what is not there yet.
template <class T>
void add_to(std::vector<T>* all, const std::vector<T>& more) {
  for (const T& one : more) {
    if (std::find(all->begin(), all->end(), one) == all->end()) all->push_back(one);
  }
}

// Each must be there: who takes a right away relies on it being gone.
template <class T>
bool remove_from(std::vector<T>* all, const std::vector<T>& gone) {
  return std::all_of(gone.begin(), gone.end(), [all](const T& one) { return std::erase(*all, one) > 0; });
}

std::vector<std::string> texts_of(const Repeated<std::string>& texts) { return {texts.begin(), texts.end()}; }

AccessEdit grant(const v1::RoleRights& rights) {
  return [rights](const AccessTable& table) -> Result<AccessChange> {
    AccessChange change = change_with(Kind::put_role);
    if (const auto found = table.roles().find(rights.role()); found != table.roles().end()) change.role = found->second;
    change.role.name = rights.role();
    add_to(&change.role.read, ranges_of(rights.read()));
    add_to(&change.role.write, ranges_of(rights.write()));
    change.role.admin |= rights.admin();
    change.role.metrics |= rights.metrics();
    return change;
  };
}

std::string text_of(const KeyRange& range) {
  std::string text(1, '[');
  return text.append(short_line(range.from)).append(1, ',').append(short_line(range.to)).append(1, ')');
}

// Who takes a range away relies on its keys being gone, so no range that is left may have some of them.
Status check_gone(const v1::RoleRights& rights, const char* right, const std::vector<KeyRange>& gone,
                  const std::vector<KeyRange>& left) {
  for (const KeyRange& range : gone) {
    const auto found =
        std::find_if(left.begin(), left.end(), [&](const KeyRange& other) { return overlap(range, other); });
    if (found == left.end()) continue;
    const std::string field = std::string("revoke.") + right;
    return Status::violating(StatusCode::failed_precondition, ErrorReason::access_overlaps,
                             field + ": role \"" + short_line(rights.role()) + "\" would keep the " + right +
                                 " right to " + text_of(*found) + ", which has keys of " + text_of(range) +
                                 "; revoke both ranges together, and grant again what the role may keep",
                             {field, "ranges without keys that other ranges of the role have", text_of(*found), ""});
  }
  return {};
}

AccessEdit revoke(const v1::RoleRights& rights) {
  return [rights](const AccessTable& table) -> Result<AccessChange> {
    const auto found = table.roles().find(rights.role());
    if (found == table.roles().end()) return unknown("there is no role \"" + short_line(rights.role()) + '"');
    AccessChange change = change_with(Kind::put_role);
    change.role = found->second;
    if (!remove_from(&change.role.read, ranges_of(rights.read())) ||
        !remove_from(&change.role.write, ranges_of(rights.write()))) {
      return unknown("role \"" + short_line(rights.role()) +
                     "\" does not have exactly this range; kilokv role list shows its ranges");
    }
    Status gone = check_gone(rights, "read", ranges_of(rights.read()), change.role.read);
    if (gone.ok()) gone = check_gone(rights, "write", ranges_of(rights.write()), change.role.write);
    if (!gone.ok()) return gone;
    if ((rights.admin() && !change.role.admin) || (rights.metrics() && !change.role.metrics)) {
      return unknown("role \"" + short_line(rights.role()) + "\" does not have this right");
    }
    change.role.admin &= !rights.admin();
    change.role.metrics &= !rights.metrics();
    return change;
  };
}

AccessEdit change_user(const v1::UserChange& user) {
  return [user](const AccessTable& table) -> Result<AccessChange> {
    AccessChange change = change_with(Kind::put_user);
    if (const auto found = table.users().find(user.user()); found != table.users().end()) change.user = found->second;
    change.user.name = user.user();
    if (!remove_from(&change.user.roles, texts_of(user.remove_roles()))) {
      return unknown("user \"" + short_line(user.user()) + "\" does not have this role");
    }
    if (!remove_from(&change.user.certificates, texts_of(user.remove_certificates()))) {
      return unknown("user \"" + short_line(user.user()) + "\" does not have this name of a certificate");
    }
    add_to(&change.user.roles, texts_of(user.add_roles()));
    add_to(&change.user.certificates, texts_of(user.add_certificates()));
    if (user.weight() != 0) change.user.weight = user.weight();
    return change;
  };
}

AccessEdit always(AccessChange change) {
  return [change = std::move(change)](const AccessTable&) -> Result<AccessChange> { return change; };
}

Result<RequestedChange> new_token(const v1::NewToken& request, TimeUs now_us) {
  std::optional<tls::NewToken> token = tls::make_token();
  if (!token) return Status(StatusCode::internal, "the system has no random bytes for a token");
  constexpr std::uint64_t kLongestUs = std::uint64_t{1} << 55;  // about 1,100 years
  if (request.expires_in_us() > kLongestUs) {
    return Status::invalid({"create_token.expires_in_us", std::to_string(kLongestUs) + " us",
                            std::to_string(request.expires_in_us()) + " us", ""});
  }
  const TimeUs expires_us = request.expires_in_us() == 0 ? 0 : now_us + static_cast<TimeUs>(request.expires_in_us());
  AccessChange change = change_with(Kind::put_token);
  change.token = {.id = token->parts.id,
                  .user = request.user(),
                  .secret_hash = token->parts.secret_hash,
                  .created_us = now_us,
                  .expires_us = expires_us};
  return RequestedChange{.edit = always(change),
                         .what = "create_token of_user=" + name_text(request.user()) + " new_token=" + token->parts.id +
                                 " expires_us=" + std::to_string(expires_us),
                         .token = std::move(token->text),
                         .token_id = token->parts.id};
}

// Adds " name=one,two", unless there are none. `text_of` gives the text of one.
template <class T, class TextOf>
void add_list(const char* name, const Repeated<T>& elements, const TextOf& text_of, std::string* text) {
  const char* before = "=";
  if (!elements.empty()) text->append(" ").append(name);
  for (const T& element : elements) text->append(std::exchange(before, ",")).append(text_of(element));
}

std::string text_of(const v1::RoleRights& rights) {
  const auto text_of_range = [](const v1::KeyRange& range) { return range_text({range.from(), range.to()}); };
  std::string text = "role=" + name_text(rights.role());
  add_list("read", rights.read(), text_of_range, &text);
  add_list("write", rights.write(), text_of_range, &text);
  if (rights.admin()) text += " admin=true";
  if (rights.metrics()) text += " metrics=true";
  return text;
}

std::string text_of(const v1::UserChange& user) {
  const auto certificate_text = [](const std::string& name) { return quoted(name, AccessTable::kCertificateBytesMax); };
  std::string text = "of_user=" + name_text(user.user());
  add_list("add_roles", user.add_roles(), name_text, &text);
  add_list("remove_roles", user.remove_roles(), name_text, &text);
  add_list("add_certificates", user.add_certificates(), certificate_text, &text);
  add_list("remove_certificates", user.remove_certificates(), certificate_text, &text);
  if (user.weight() != 0) text.append(" weight=").append(std::to_string(user.weight()));
  return text;
}

// More than an entry of the table may have cannot be right. It is refused before anybody compares them with each other.
Status check_counts(const v1::ChangeAccessRequest& request) {
  struct Count {
    const char* field;
    int count;
    std::size_t max;
  };
  for (const Count& count :
       {Count{"grant.read", request.grant().read_size(), AccessTable::kRangesMax},
        Count{"grant.write", request.grant().write_size(), AccessTable::kRangesMax},
        Count{"revoke.read", request.revoke().read_size(), AccessTable::kRangesMax},
        Count{"revoke.write", request.revoke().write_size(), AccessTable::kRangesMax},
        Count{"user.add_roles", request.user().add_roles_size(), AccessTable::kRolesOfUserMax},
        Count{"user.remove_roles", request.user().remove_roles_size(), AccessTable::kRolesOfUserMax},
        Count{"user.add_certificates", request.user().add_certificates_size(), AccessTable::kCertificatesMax},
        Count{"user.remove_certificates", request.user().remove_certificates_size(), AccessTable::kCertificatesMax}}) {
    if (static_cast<std::size_t>(count.count) <= count.max) continue;
    return Status::invalid({count.field, std::to_string(count.max), std::to_string(count.count), ""});
  }
  return {};
}

void add(const User& user, v1::ListAccessResponse* response) {
  v1::AccessUser* out = response->add_users();
  out->set_user(user.name);
  for (const std::string& role : user.roles) out->add_roles(role);
  for (const std::string& name : user.certificates) out->add_certificates(name);
  out->set_weight(user.weight);
}

void add_ranges(const std::vector<KeyRange>& ranges, Repeated<v1::KeyRange>* out) {
  for (const KeyRange& range : ranges) {
    v1::KeyRange* one = out->Add();
    one->set_from(range.from);
    one->set_to(range.to);
  }
}

void add(const Role& role, v1::ListAccessResponse* response) {
  v1::RoleRights* out = response->add_roles();
  out->set_role(role.name);
  add_ranges(role.read, out->mutable_read());
  add_ranges(role.write, out->mutable_write());
  out->set_admin(role.admin);
  out->set_metrics(role.metrics);
}

void add(const Token& token, v1::ListAccessResponse* response) {
  v1::AccessToken* out = response->add_tokens();
  out->set_id(token.id);
  out->set_user(token.user);
  out->set_created_us(token.created_us);
  out->set_expires_us(token.expires_us);
}

}  // namespace

Result<RequestedChange> change_of(const v1::ChangeAccessRequest& request, TimeUs now_us) {
  if (Status status = check_counts(request); !status.ok()) return status;
  AccessChange change;
  switch (request.change_case()) {
    case v1::ChangeAccessRequest::kGrant:
      return RequestedChange{.edit = grant(request.grant()), .what = "grant " + text_of(request.grant())};
    case v1::ChangeAccessRequest::kRevoke:
      return RequestedChange{.edit = revoke(request.revoke()), .what = "revoke " + text_of(request.revoke())};
    case v1::ChangeAccessRequest::kRemoveRole:
      change.kind = Kind::remove_role;
      change.role.name = request.remove_role();
      return RequestedChange{.edit = always(change), .what = "remove_role role=" + name_text(request.remove_role())};
    case v1::ChangeAccessRequest::kUser:
      return RequestedChange{.edit = change_user(request.user()), .what = "change_user " + text_of(request.user())};
    case v1::ChangeAccessRequest::kRemoveUser:
      change.kind = Kind::remove_user;
      change.user.name = request.remove_user();
      return RequestedChange{.edit = always(change), .what = "remove_user of_user=" + name_text(request.remove_user())};
    case v1::ChangeAccessRequest::kCreateToken: return new_token(request.create_token(), now_us);
    case v1::ChangeAccessRequest::kRemoveToken:
      change.kind = Kind::remove_token;
      change.token.id = request.remove_token();
      return RequestedChange{.edit = always(change),
                             .what = "remove_token removed_token=" + name_text(request.remove_token())};
    case v1::ChangeAccessRequest::CHANGE_NOT_SET: break;
  }
  return Status::invalid({"change", "one change", "none", ""}).because(ErrorReason::missing_field);
}

Status fill_list(const AccessTable& table, const v1::ListAccessRequest& request, std::uint64_t message_bytes_max,
                 v1::ListAccessResponse* response) {
  const std::uint32_t limit = request.limit() == 0 ? kListDefault : std::min(request.limit(), kListMax);
  const auto fill = [&](const auto& entries) -> Status {
    std::uint32_t count = 0;
    for (auto it = entries.upper_bound(request.after()); it != entries.end(); ++it, ++count) {
      // Half of the message: the next entry may be long.
      if (count == limit || response->ByteSizeLong() > message_bytes_max / 2) {
        response->set_more(true);
        break;
      }
      add(it->second, response);
    }
    return {};
  };
  switch (request.kind()) {
    case v1::ListAccessRequest::KIND_USERS: return fill(table.users());
    case v1::ListAccessRequest::KIND_ROLES: return fill(table.roles());
    case v1::ListAccessRequest::KIND_TOKENS: return fill(table.tokens());
    default: break;
  }
  return Status::invalid({"kind", "KIND_USERS, KIND_ROLES or KIND_TOKENS", std::to_string(request.kind()), ""});
}

}  // namespace kilokv::server
