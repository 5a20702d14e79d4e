// The stream of a backup (kilokv/backup.hpp).
#include "kilokv/backup.hpp"

#include <chrono>
#include <mutex>
#include <utility>

#include "client/lib/src/connection.hpp"
#include "client/lib/src/reach.hpp"

namespace kilokv::client {
namespace {

// Cancels a call after some time without a sign of life.
class IdleWatch {
 public:
  IdleWatch(Timers* timers, grpc::ClientContext* context, std::uint64_t idle_us)
      : timers_(timers), state_(std::make_shared<State>()), idle_(std::chrono::microseconds(idle_us)) {
    state_->context = context;
    alive();
  }
  ~IdleWatch() {
    timers_->cancel(timer_);
    const std::lock_guard lock(state_->mutex);
    state_->context = nullptr;
  }
  IdleWatch(const IdleWatch&) = delete;
  IdleWatch& operator=(const IdleWatch&) = delete;

  void alive() {
    timers_->cancel(timer_);
    timer_ = timers_->at(Clock::now() + idle_, [state = state_] {
      const std::lock_guard lock(state->mutex);
      if (state->context == nullptr) return;
      state->is_idle = true;
      state->context->TryCancel();
    });
  }
  bool is_idle() const {
    const std::lock_guard lock(state_->mutex);
    return state_->is_idle;
  }

 private:
  struct State {
    std::mutex mutex;
    grpc::ClientContext* context = nullptr;
    bool is_idle = false;
  };

  Timers* const timers_;
  const std::shared_ptr<State> state_;
  const std::chrono::microseconds idle_;
  Timers::Id timer_ = 0;
};

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
