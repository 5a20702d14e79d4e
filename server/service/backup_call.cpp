#include "server/service/backup_call.hpp"

#include "server/core/access/access_check.hpp"
#include "server/service/backup_streamer.hpp"
#include "server/service/message_buffer.hpp"

namespace kilokv::server {

void BackupCall::start() {
  if (!caller_.status.ok()) return end(caller_.status.as_not_run());
  const std::lock_guard lock(mutex_);
  read(&incoming_);
}

void BackupCall::OnReadDone(bool ok) {
  if (!ok) return end(no_message());
  read_ended();
  grpc::ByteBuffer message = CallEnvironment::take_message(caller_, &incoming_);
  Status status = take(&message);
  if (status.ok()) status = streamer_->add(std::static_pointer_cast<BackupCall>(shared_from_this()));
  if (!status.ok()) end(status.as_not_run());
}

Status BackupCall::take(grpc::ByteBuffer* message) {
  const ServiceOptions& options = environment_->options;
  Status status = parse_message(message, options.message_bytes_max, {.transactions = options.limits}, &request_);
  if (!status.ok()) return status;
  if (!request_.backup().empty() && request_.backup().size() != BackupId().size()) {
    return Status::invalid({"backup", "16 bytes, or empty", std::to_string(request_.backup().size()) + " bytes", ""});
  }
  return database().status();
}

Result<Database*> BackupCall::database() const {
  Result<Database*> database = environment_->gate.get();
  if (!database.ok() || caller_.login == nullptr) return database;
  const auto rights = rights_at(*(*database)->access().latest(), *caller_.login, (*database)->time_of_day());
  if (!rights.ok()) return rights.status();
  if (!(*rights)->admin) return right_missing(caller_.login->user, "admin", "Backup");
  return database;
}

void BackupCall::end_without_login(const AccessTable& table) {
  if (caller_.login == nullptr || table.rights(*caller_.login) != nullptr) return;
  end(login_gone(caller_.login->user));
}

bool BackupCall::is_sent() const {
  const std::lock_guard lock(mutex_);
  return unsent_bytes() == 0;
}

void BackupCall::send(const v1::BackupResponse& answer) {
  const grpc::ByteBuffer buffer = serialize_message(answer);
  const std::lock_guard lock(mutex_);
  write(buffer);
}

void BackupCall::end(const Status& status) {
  const std::lock_guard lock(mutex_);
  if (status.ok()) return finish_when_sent(grpc::Status::OK);
  end_when_sent(status);
}

void BackupCall::on_sent() { streamer_->wake(); }
void BackupCall::on_gone() { streamer_->wake(); }

}  // namespace kilokv::server
