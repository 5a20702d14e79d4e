#include "server/service/watch_call.hpp"

#include <algorithm>

#include "engine/txn/validate.hpp"
#include "server/core/access/access_check.hpp"
#include "server/service/message_buffer.hpp"
#include "server/service/watch_streamer.hpp"

namespace kilokv::server {

void WatchCall::start() {
  if (!caller_.status.ok()) return end(caller_.status.as_not_run());
  const std::lock_guard lock(mutex_);
  read(&incoming_);
}

void WatchCall::refuse(const Status& status) {
  place_.forgive_message();
  end(status);
}

void WatchCall::OnReadDone(bool ok) {
  if (!ok) return end(no_message());
  read_ended();
  grpc::ByteBuffer message = CallEnvironment::take_message(caller_, &incoming_);
  Status status = take(&message);
  if (status.ok()) status = streamer_->add(std::static_pointer_cast<WatchCall>(shared_from_this()));
  if (!status.ok()) end(status.as_not_run());
}

Status WatchCall::take(grpc::ByteBuffer* message) {
  const ServiceOptions& options = environment_->options;
  Status status = parse_message(message, options.message_bytes_max, {.transactions = options.limits}, &request_);
  if (status.ok()) status = check_range();
  if (!status.ok()) return status;
  constexpr std::size_t kIdBytes = sizeof(Incarnation::id);
  if (!request_.incarnation().empty() && request_.incarnation().size() != kIdBytes) {
    return Status::invalid(
        {"incarnation", "16 bytes, or empty", std::to_string(request_.incarnation().size()) + " bytes", ""});
  }
  return database().status();
}

Status WatchCall::check_range() const {
  const std::uint64_t most = std::min(environment_->options.limits.key_bytes_max, engine::kKeyBytesMax);
  const v1::KeyRange& range = request_.range();
  for (const auto& [field, bound] : {std::pair("range.from", &range.from()), std::pair("range.to", &range.to())}) {
    if (bound->size() <= most) continue;
    return Status::invalid({field, "0 to " + std::to_string(most) + " bytes", std::to_string(bound->size()) + " bytes",
                            "--key-bytes-max"});
  }
  if (range.to().empty() || range.from() < range.to()) return {};
  return Status::invalid({"range.to", "greater than range.from, or empty", "not greater", ""});
}

Result<Database*> WatchCall::database() const {
  Result<Database*> database = environment_->gate.get();
  if (!database.ok() || caller_.login == nullptr) return database;
  const Access::Table table = (*database)->access().latest();
  const auto rights = rights_at(*table, *caller_.login, (*database)->time_of_day());
  if (!rights.ok()) return rights.status();
  // A grant counts when it is durable, and a revoke at once.
  for (const Access::Table& checked : {table, (*database)->durable_access()}) {
    const Status status = check_read_range(*checked, *caller_.login, request_.range().from(), request_.range().to());
    if (!status.ok()) return status;
  }
  return database;
}

void WatchCall::end_without_login(const AccessTable& table) {
  if (caller_.login == nullptr) return;
  if (table.rights(*caller_.login) == nullptr) return end(login_gone(caller_.login->user));
  streamer_->wake();  // it looks at the rights before each answer
}

bool WatchCall::is_sent() const {
  const std::lock_guard lock(mutex_);
  return unsent_bytes() == 0;
}

void WatchCall::send(const v1::WatchResponse& answer) {
  const grpc::ByteBuffer buffer = serialize_message(answer);
  const std::lock_guard lock(mutex_);
  write(buffer);
}

void WatchCall::end(const Status& status) {
  const std::lock_guard lock(mutex_);
  end_when_sent(status);
}

void WatchCall::on_sent() { streamer_->wake(); }
void WatchCall::on_gone() { streamer_->wake(); }

}  // namespace kilokv::server
