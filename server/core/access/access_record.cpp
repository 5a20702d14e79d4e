#include "server/core/access/access_record.hpp"

#include <utility>
#include <vector>

#include "server/core/bytes.hpp"

namespace kilokv::server {
namespace {

using bytes::put;
using bytes::Reader;
using Kind = AccessChange::Kind;

constexpr std::uint8_t kAdmin = 1, kMetrics = 2;

void put_text(std::string* out, std::string_view text) {
  put(out, static_cast<std::uint32_t>(text.size()));
  out->append(text);
}

void put_ranges(std::string* out, const std::vector<KeyRange>& ranges) {
  put(out, static_cast<std::uint32_t>(ranges.size()));
  for (const KeyRange& range : ranges) {
    put_text(out, range.from);
    put_text(out, range.to);
  }
}

void put_texts(std::string* out, const std::vector<std::string>& texts) {
  put(out, static_cast<std::uint32_t>(texts.size()));
  for (const std::string& text : texts) put_text(out, text);
}

std::string get_text(Reader* reader) { return std::string(reader->bytes(reader->get<std::uint32_t>())); }

// A count of elements, of which each has at least so many bytes. So a damaged count takes no memory.
std::uint32_t get_count(Reader* reader, std::size_t element_bytes_min) {
  const auto count = reader->get<std::uint32_t>();
  if (count <= reader->rest().size() / element_bytes_min) return count;
  reader->fail();
  return 0;
}

std::vector<KeyRange> get_ranges(Reader* reader) {
  std::vector<KeyRange> ranges(get_count(reader, 2 * sizeof(std::uint32_t)));
  for (KeyRange& range : ranges) {
    range.from = get_text(reader);
    range.to = get_text(reader);
  }
  return ranges;
}

std::vector<std::string> get_texts(Reader* reader) {
  std::vector<std::string> texts(get_count(reader, sizeof(std::uint32_t)));
  for (std::string& text : texts) text = get_text(reader);
  return texts;
}

void get_role(Reader* reader, Role* role) {
  role->name = get_text(reader);
  const auto rights = reader->get<std::uint8_t>();
  if (rights > (kAdmin | kMetrics)) reader->fail();
  role->admin = (rights & kAdmin) != 0;
  role->metrics = (rights & kMetrics) != 0;
  role->read = get_ranges(reader);
  role->write = get_ranges(reader);
}

void get_user(Reader* reader, User* user) {
  user->name = get_text(reader);
  user->roles = get_texts(reader);
  user->certificates = get_texts(reader);
  if (reader->rest().empty()) return;
  user->weight = reader->get<std::uint32_t>();
  if (user->weight <= 1 || user->weight > AccessTable::kWeightMax) reader->fail();
}

void get_token(Reader* reader, Token* token) {
  token->id = get_text(reader);
  token->user = get_text(reader);
  token->secret_hash = reader->get<decltype(token->secret_hash)>();
  token->created_us = reader->get<TimeUs>();
  token->expires_us = reader->get<TimeUs>();
}

Status damaged() { return {StatusCode::data_loss, "a record of users, roles and tokens is damaged"}; }

}  // namespace

std::string encode_change(const AccessChange& change) {
  std::string out;
  put(&out, static_cast<std::uint8_t>(change.kind));
  switch (change.kind) {
    case Kind::put_role:
      put_text(&out, change.role.name);
      put(&out, static_cast<std::uint8_t>((change.role.admin ? kAdmin : 0) | (change.role.metrics ? kMetrics : 0)));
      put_ranges(&out, change.role.read);
      put_ranges(&out, change.role.write);
      break;
    case Kind::remove_role: put_text(&out, change.role.name); break;
    case Kind::put_user:
      put_text(&out, change.user.name);
      put_texts(&out, change.user.roles);
      put_texts(&out, change.user.certificates);
      if (change.user.weight != 1) put(&out, change.user.weight);
      break;
    case Kind::remove_user: put_text(&out, change.user.name); break;
    case Kind::put_token:
      put_text(&out, change.token.id);
      put_text(&out, change.token.user);
      put(&out, change.token.secret_hash);
      put(&out, change.token.created_us);
      put(&out, change.token.expires_us);
      break;
    case Kind::remove_token: put_text(&out, change.token.id); break;
  }
  return out;
}

Result<AccessChange> decode_change(std::string_view bytes) {
  Reader reader(bytes);
  AccessChange change;
  const auto kind = reader.get<std::uint8_t>();
  change.kind = static_cast<Kind>(kind);
  switch (change.kind) {
    case Kind::put_role: get_role(&reader, &change.role); break;
    case Kind::remove_role: change.role.name = get_text(&reader); break;
    case Kind::put_user: get_user(&reader, &change.user); break;
    case Kind::remove_user: change.user.name = get_text(&reader); break;
    case Kind::put_token: get_token(&reader, &change.token); break;
    case Kind::remove_token: change.token.id = get_text(&reader); break;
    default: return damaged();
  }
  if (!reader.finished()) return damaged();
  return change;
}

std::string encode_table(const AccessTable& table) {
  std::string out;
  const auto add = [&out](const AccessChange& change) { put_text(&out, encode_change(change)); };
  // Roles come before the users that have them, and users before their tokens.
  for (const auto& [name, role] : table.roles()) add({.kind = Kind::put_role, .role = role, .user = {}, .token = {}});
  for (const auto& [name, user] : table.users()) add({.kind = Kind::put_user, .role = {}, .user = user, .token = {}});
  for (const auto& [id, token] : table.tokens()) add({.kind = Kind::put_token, .role = {}, .user = {}, .token = token});
  return out;
}

Result<AccessTable> decode_table(std::string_view bytes) {
  Reader reader(bytes);
  AccessTable table;
  while (!reader.rest().empty()) {
    const std::string_view record = reader.bytes(reader.get<std::uint32_t>());
    if (!reader.good()) return damaged();
    const Result<AccessChange> change = decode_change(record);
    if (!change.ok()) return change.status();
    table.apply(*change);
  }
  if (!reader.good()) return damaged();
  return table;
}

}  // namespace kilokv::server
