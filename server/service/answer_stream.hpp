// The write side of a stream of answers. The stream is here from the headers of its call on. At most one write is in
// progress. The other answers wait in order. The RPC is finished once, after the last answer. Code that writes an
// answer holds the stream by shared_ptr meanwhile, so the stream can outlive the RPC by a moment. Code that waits for
// an answer holds it by weak_ptr (call_sink.hpp). Answers that are written after the end of the RPC are dropped.
//
// Unsent answers have a limit for each stream, and one for the service and each client (AnswerAccount). The stream
// whose next answer would exceed a limit is cut. If no write is in progress, the stream ends with RESOURCE_EXHAUSTED
// and names the setting. Otherwise it ends with CANCELLED, because a client that does not read cannot get a message. A
// stream is also cut if one answer is not sent in time.
//
// States: open -> (finish_when_sent) closing -> finished; open or closing -> (client gone, or cut) finished.
// Thread safety: all members, because gRPC may run several reactions of one RPC at the same time. StartWrite, StartRead
// and Finish may be called with the mutex held, because gRPC calls no reaction inside them.
#pragma once

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "server/service/call_environment.hpp"
#include "server/service/status_map.hpp"

namespace kilokv::server {

class AnswerStream : public grpc::ServerGenericBidiReactor,
                     public WatchedCall,
                     public OpenCall,
                     public AwaitingCall,
                     public std::enable_shared_from_this<AnswerStream> {
 public:
  // Keeps the stream alive until gRPC no longer uses it. Requires: called once, before gRPC sees the reactor.
  AnswerStream* adopted_by_rpc() {
    self_ = shared_from_this();
    environment_->calls.add(this, self_);
    // Those that are there are told when the server stops. This one may have come later.
    if (environment_->gate.closed()) {
      place_.forgive_message();
      end_when_stopping(environment_->gate.get().status().as_not_run());
    }
    return this;
  }

  void end_without_certificate(const Status& status) final {
    {
      const std::lock_guard lock(mutex_);
      end_when_sent(status);
    }
    on_gone();
  }
  bool end_late(const Status& status, bool is_again) final {
    const std::lock_guard lock(mutex_);
    const bool ends = finished_ || closing();
    if (ends && !done_ && is_again) context_->TryCancel();
    if (ends || !awaits_message_) return false;
    cut(as_late(status));
    return true;
  }
  const std::shared_ptr<ClientCertificate>& certificate() const final { return caller_.certificate; }
  // Not ok: the login was refused, and the stream ends at once.
  const Status& login_status() const { return caller_.status; }
  const std::shared_ptr<Client>& client() const { return client_; }
  // Keeps `place` until the stream is destroyed, which is when gRPC has let go of it.
  void hold(std::shared_ptr<void> place) { stream_place_ = std::move(place); }

 protected:
  // Requires: `environment` outlives the RPC.
  AnswerStream(CallContext* context, CallEnvironment* environment, NeedsLogin needs_login = NeedsLogin::yes)
      : environment_(environment),
        caller_(environment->logins.caller_of(*context, needs_login, &place_)),
        client_(caller_.client),
        trace_(environment->traces.of(*context, *client_)),
        context_(context),
        method_(environment->metrics.method(context->method())),
        begun_us_(method_->begin()) {}

  // For subclasses. The caller holds mutex_, except for ended().
  void write(const grpc::ByteBuffer& answer) {
    if (closing() || finished_) return;
    const std::uint64_t bytes = bytes_of(answer);
    const std::uint64_t of_stream_max = environment_->options.stream_answer_bytes_max;
    if (unsent_bytes_ + bytes > of_stream_max) {
      constexpr std::int64_t kRetryAfterUs = 1000000;  // by then, the client may have taken some
      return cut(Status::exhausted(
          ErrorReason::slow_reader,
          {"answers", std::to_string(of_stream_max) + " bytes unsent",
           std::to_string(unsent_bytes_ + bytes) + " bytes unsent with this one", "--stream-answer-bytes-max"},
          kRetryAfterUs));
    }
    if (const Status status = environment_->answers.charge(client_.get(), bytes); !status.ok()) return cut(status);
    unsent_bytes_ += bytes;
    queue_.push_back(answer);
    if (!writing_) write_next();
  }

  // Reads the next message, unless the stream ends. Requires: the last one has come.
  void read(grpc::ByteBuffer* incoming) {
    if (closing() || finished_) return;
    awaits_message_ = true;
    place_.await_message(weak_from_this());
    StartRead(incoming);
  }
  // The read has ended. Called without the mutex.
  void read_ended() {
    {
      const std::lock_guard lock(mutex_);
      awaits_message_ = false;
    }
    place_.message_came();
  }
  // The status of a call whose message is late.
  virtual Status as_late(const Status& status) const { return status; }

  // Ends the RPC with `status` when everything queued has been sent. Later calls change nothing.
  void finish_when_sent(grpc::Status status) {
    if (finish_ || finished_) return;
    finish_ = std::move(status);
    if (!writing_ && queue_.empty()) finish_now();
  }

  // The same for an error of ours.
  void end_when_sent(const Status& status) {
    if (finished_ || closing()) return;
    environment_->refuse(status, *client_);
    finish_when_sent(to_grpc(status, context_));
  }

  // For a client that has gone. Ends the RPC at once.
  void abandon() {
    drop_unsent();
    if (finished_) return;
    finish_ = grpc::Status::CANCELLED;
    finish_now();
  }

  // Called after an answer has left the queue.
  virtual void on_sent() {}
  // The RPC has ended without all its answers, because its client has gone away, takes none, or may make no calls any
  // more. May be called with the mutex held, and more than once.
  virtual void on_gone() {}

  // Whether nothing more can reach the client. Called without the mutex.
  bool ended() const {
    const std::lock_guard lock(mutex_);
    return finished_ || cut_;
  }

  CallContext* context() { return context_; }  // Requires: not finished
  bool finished() const { return finished_; }
  bool closing() const { return finish_.has_value() || cut_; }
  std::uint64_t unsent_bytes() const { return unsent_bytes_; }

  CallEnvironment* const environment_;
  CallAccount::Place place_;  // until gRPC has let go of the call
  const Caller caller_;
  const std::shared_ptr<Client>& client_;  // of the caller
  const TraceParent trace_;                // that the metadata of the call name
  mutable std::mutex mutex_;

 private:
  void OnWriteDone(bool ok) final {
    const std::lock_guard lock(mutex_);
    writing_ = false;
    environment_->answers.unwatch(this);
    if (!ok || finished_) return abandon();
    if (!cut_) {
      const std::uint64_t bytes = bytes_of(queue_.front());
      unsent_bytes_ -= bytes;
      environment_->answers.release(client_.get(), bytes);
    }
    queue_.pop_front();
    if (!queue_.empty()) {
      write_next();
    } else if (finish_) {
      finish_now();
    }
    on_sent();
  }

  void OnCancel() final {
    {
      const std::lock_guard lock(mutex_);
      abandon();
    }
    on_gone();
  }

  void on_timeout() final {
    environment_->refusals.note_timeout(*client_);
    context_->TryCancel();
  }

  void OnDone() override {
    {
      const std::lock_guard lock(mutex_);
      done_ = true;
    }
    environment_->answers.unwatch(this);
    environment_->calls.remove(this);
    place_ = {};
    const std::shared_ptr<void> self = std::move(self_);  // gRPC uses the stream no more; the return may destroy it
  }

  static std::uint64_t bytes_of(const grpc::ByteBuffer& answer) { return answer.Length() + kAnswerBytes; }

  void cut(const Status& status) {
    environment_->refuse(status, *client_);
    on_gone();
    if (!writing_) return finish_when_sent(to_grpc(status, context_));
    cut_ = true;
    drop_unsent();
    context_->TryCancel();
  }

  // Drops all unsent answers except the one that gRPC is sending. Counts that one as dropped, too.
  void drop_unsent() {
    while (queue_.size() > (writing_ ? 1 : 0)) queue_.pop_back();
    environment_->answers.release(client_.get(), unsent_bytes_);
    unsent_bytes_ = 0;
  }

  void write_next() {
    writing_ = true;
    environment_->answers.watch(this);
    StartWrite(&queue_.front());
  }

  void finish_now() {
    finished_ = true;
    method_->end(begun_us_, static_cast<std::size_t>(finish_->error_code()));
    environment_->answers.watch(this);  // a client can also leave the status untaken
    Finish(*finish_);
  }

  CallContext* const context_;
  CallMetrics::Method* const method_;
  const std::int64_t begun_us_;
  std::deque<grpc::ByteBuffer> queue_;  // while writing_, gRPC writes the front
  std::uint64_t unsent_bytes_ = 0;      // of the answers in queue_; 0 after drop_unsent()
  bool writing_ = false;
  bool cut_ = false;  // cancelled: nothing more reaches the client
  bool finished_ = false;
  bool done_ = false;  // gRPC has let go of the call
  bool awaits_message_ = false;
  std::optional<grpc::Status> finish_;  // the status to end with when the queue is empty
  std::shared_ptr<void> self_;
  std::shared_ptr<void> stream_place_;  // see hold()
};

}  // namespace kilokv::server
