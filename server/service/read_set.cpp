#include "server/service/read_set.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "server/service/identity.hpp"

namespace kilokv::server {
namespace {

Status check_in_session(const v1::RequestId& id) {
  if (!id.session().empty()) return {};
  return Status::invalid(
             {.field = "id.session", .limit = "a session for an uploaded read set", .actual = "", .setting = ""})
      .because(ErrorReason::missing_field);
}

Status check_keys(const v1::UploadReadSetRequest& message, std::size_t key_bytes_max) {
  if (message.keys_size() == 0) {
    return Status::invalid({.field = "keys", .limit = "at least 1 key", .actual = "0 keys", .setting = ""})
        .because(ErrorReason::missing_field);
  }
  if (message.keys_size() != message.versions_size()) {
    return Status::invalid({.field = "versions",
                            .limit = std::to_string(message.keys_size()) + " versions, one for each key",
                            .actual = std::to_string(message.versions_size()) + " versions",
                            .setting = ""});
  }
  for (int i = 0; i < message.keys_size(); ++i) {
    const std::size_t bytes = message.keys(i).size();
    if (bytes >= 1 && bytes <= key_bytes_max) continue;
    return Status::invalid({.field = "keys[" + std::to_string(i) + "]",
                            .limit = "1 to " + std::to_string(key_bytes_max) + " bytes",
                            .actual = std::to_string(bytes) + " bytes",
                            .setting = "--key-bytes-max"});
  }
  const auto& versions = message.versions();
  const auto wrong = std::find_if(versions.begin(), versions.end(), [](Version v) { return v > kVersionMax; });
  if (wrong == versions.end()) return {};
  return Status::invalid({.field = "versions[" + std::to_string(wrong - versions.begin()) + "]",
                          .limit = std::to_string(kVersionMax),
                          .actual = std::to_string(*wrong),
                          .setting = ""});
}

// A transaction with a large read set must not wait. Each time it is tried, the whole read set is checked.
Status check_no_wait(const v1::Transaction& transaction) {
  if (transaction.wait_timeout_us() != 0) {
    return Status::invalid({.field = "transactions[0].wait_timeout_us",
                            .limit = "0 together with uploaded keys",
                            .actual = std::to_string(transaction.wait_timeout_us()) + " us",
                            .setting = ""})
        .because(ErrorReason::not_allowed);
  }
  for (int i = 0; i < transaction.guards_size(); ++i) {
    if (transaction.guards(i).on_false() != v1::ON_FALSE_WAIT) continue;
    return Status::invalid({.field = "transactions[0].guards[" + std::to_string(i) + "].on_false",
                            .limit = "ON_FALSE_FAIL (0) together with uploaded keys",
                            .actual = "ON_FALSE_WAIT (1)",
                            .setting = ""})
        .because(ErrorReason::not_allowed);
  }
  return {};
}

}  // namespace

Result<ReadSetChunk> decode_chunk(const v1::UploadReadSetRequest& message, const ServiceOptions& options) {
  Status status = check_in_session(message.id());
  if (status.ok()) status = check_keys(message, std::min(options.limits.key_bytes_max, engine::kKeyBytesMax));
  if (!status.ok()) return status;
  Result<RequestIdentity> identity = parse_identity(message.id());
  if (!identity.ok()) return identity.status();
  ReadSetChunk chunk;
  chunk.identity = *identity;
  chunk.offset = message.offset();
  chunk.keys.assign(message.keys().begin(), message.keys().end());
  chunk.versions = {message.versions().data(), static_cast<std::size_t>(message.versions_size())};
  return chunk;
}

Status decode_beside_uploaded(const v1::ExecuteRequest& message, const DecodeContext& context,
                              engine::TransactionColumns* columns) {
  const v1::Transaction& transaction = message.transaction();
  Status status = check_in_session(message.id());
  if (status.ok()) status = check_no_wait(transaction);
  if (!status.ok()) return status;
  if (transaction.guards_size() + transaction.then_size() + transaction.else__size() > 0) {
    return decode(transaction, context, columns);
  }
  // The transaction has only the read set. The decoder would refuse it as empty.
  if (status = check_head(transaction, 0); !status.ok()) return status;
  engine::ColumnsBuilder builder(columns, context.secret);
  builder.begin(static_cast<std::uint8_t>(transaction.precedence()), 0, transaction.expire_runs_else());
  builder.begin_else();
  builder.end();
  return {};
}

}  // namespace kilokv::server
