// The stream of a backup (kilokv/backup.hpp).
#include "kilokv/backup.hpp"

#include <utility>

#include "client/lib/src/connection.hpp"
#include "client/lib/src/idle_watch.hpp"
#include "client/lib/src/reach.hpp"

namespace kilokv::client {
namespace {

class RemoteBackup final : public BackupStream {
 public:
  RemoteBackup(const ClientOptions& options, const std::shared_ptr<grpc::ChannelCredentials>& credentials)
      : connection_(options, credentials) {}

  Error reach() { return reach_server(&connection_); }

  Error read(const BackupOptions& options, const std::function<bool(const BackupPiece&)>& take) override {
    grpc::ClientContext context;
    connection_.log_in(&context);
    const auto reader = connection_.next().stub->Backup(&context, request_of(options));
    bool is_stopped = false, is_idle = false;
    {
      IdleWatch watch(&connection_.timers(), &context, options.idle_us_max);
      v1::BackupResponse answer;
      BackupPiece piece;
      while (!is_stopped && reader->Read(&answer)) {
        watch.alive();
        if (answer.boundary() != 0) piece.boundary = answer.boundary();
        if (answer.estimated_bytes() != 0) piece.estimated_bytes = answer.estimated_bytes();
        piece.data = answer.data();
        is_stopped = !take(piece);
      }
      is_idle = watch.is_idle();
    }
    if (is_stopped) context.TryCancel();
    const grpc::Status status = reader->Finish();
    if (status.ok() || is_stopped) return {};
    Error error = connection_.describe(to_error(status, context, connection_.where("Backup")));
    if (is_idle) {
      error.code = ErrorCode::unavailable;
      error.message = "the server has sent nothing of the backup for too long";
    }
    return error;
  }

 private:
  static v1::BackupRequest request_of(const BackupOptions& options) {
    v1::BackupRequest request;
    request.set_bytes_per_second(options.bytes_per_second);
    if (options.backup.empty()) return request;
    request.set_backup(options.backup);
    request.mutable_after()->set_frame(options.frame);
    request.mutable_after()->set_crc(options.crc);
    request.mutable_after()->set_kind(options.kind);
    request.mutable_after()->set_key(options.key);
    return request;
  }

  Connection connection_;
};

}  // namespace

Expected<std::unique_ptr<BackupStream>> BackupStream::connect(const ClientOptions& options) {
  return connect_as<RemoteBackup, BackupStream>(options);
}

}  // namespace kilokv::client
