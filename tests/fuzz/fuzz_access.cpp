// Users, roles and tokens: the records in the log and in checkpoints (server/core/access/access_record.cpp), tokens
// (tls/token.cpp), and the messages that ask for changes (server/service/access_calls.cpp). The first byte chooses.
//
// What can be decoded has the same bytes when it is encoded again. A change that the table allows leaves somebody who
// has the admin right, if there was somebody before.
#include "server/core/access/access_record.hpp"
#include "server/service/access_calls.hpp"
#include "tests/fuzz/fuzz.hpp"
#include "tls/token.hpp"

namespace kilokv::fuzz {
namespace {

using namespace kilokv::server;

void check_change(std::string_view bytes) {
  const Result<AccessChange> change = decode_change(bytes);
  if (!change.ok()) return;
  KILOKV_CHECK(encode_change(*change) == bytes);
  AccessTable table;
  static_cast<void>(table.after({&*change, 1}, true).ok());
}

void check_table(std::string_view bytes) {
  const Result<AccessTable> table = decode_table(bytes);
  if (!table.ok()) return;
  const std::string encoded = encode_table(*table);
  const Result<AccessTable> again = decode_table(encoded);
  KILOKV_CHECK(again.ok() && encode_table(*again) == encoded && again->hash() == table->hash());
  for (const auto& [id, token] : table->tokens()) {
    const auto rights = table->rights({.user = token.user, .token = id, .certificate = {}});
    if (rights != nullptr && !rights->read.empty()) static_cast<void>(rights->read.contains_all(id, {}));
  }
}

void check_token(std::string_view text) {
  const auto parts = tls::parse_token(text);
  if (parts) KILOKV_CHECK(parts->id == text.substr(7, 16) && text.size() == 88);
}

// Messages of changes, one after the other, on a table with an administrator.
void check_requests(std::string_view bytes) {
  AccessTable table;
  for (const auto kind : {AccessChange::Kind::put_role, AccessChange::Kind::put_user, AccessChange::Kind::put_token}) {
    AccessChange change{.kind = kind, .role = {}, .user = {}, .token = {}};
    change.role = {.name = "admin", .read = {KeyRange{}}, .write = {KeyRange{}}, .admin = true, .metrics = true};
    change.user = {.name = "admin", .roles = {"admin"}, .certificates = {}};
    change.token.id = "t";
    change.token.user = "admin";
    table.apply(change);
  }
  while (bytes.size() >= 2) {
    const std::size_t length = static_cast<unsigned char>(bytes[0]) + 256u * static_cast<unsigned char>(bytes[1]);
    const std::string_view message = bytes.substr(2, length);
    bytes.remove_prefix(2 + message.size());
    v1::ChangeAccessRequest request;
    if (!request.ParseFromArray(message.data(), static_cast<int>(message.size()))) continue;
    const Result<RequestedChange> requested = change_of(request, 1);
    if (!requested.ok()) continue;
    KILOKV_CHECK(requested->what.find('\n') == std::string::npos);
    const Result<AccessChange> change = requested->edit(table);
    if (!change.ok()) continue;
    Result<AccessTable> after = table.after({&*change, 1}, true);
    if (!after.ok()) continue;
    table = std::move(*after);
    KILOKV_CHECK(table.has_admin(true));
  }
  for (const int kind : {0, 1, 2, 3}) {
    v1::ListAccessRequest request;
    request.set_kind(static_cast<v1::ListAccessRequest::Kind>(kind));
    v1::ListAccessResponse response;
    KILOKV_CHECK(fill_list(table, request, 4096, &response).ok() == (kind != 3));
  }
  check_table(encode_table(table));
}

}  // namespace
}  // namespace kilokv::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace kilokv;
  std::string_view bytes = fuzz::text_of(data, size);
  switch (fuzz::take_choice(&bytes) % 4) {
    case 0: fuzz::check_change(bytes); break;
    case 1: fuzz::check_table(bytes); break;
    case 2: fuzz::check_token(bytes); break;
    default: fuzz::check_requests(bytes);
  }
  return 0;
}
