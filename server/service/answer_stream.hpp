// The write side of a stream of answers. At most one write is in progress. The other answers wait in order. The RPC is
// finished once, after the last answer. Code that still has to write an answer holds the stream by shared_ptr, so the
// stream can outlive the RPC. Answers that are written after the end of the RPC are dropped.
//
// Unsent answers have a limit for each stream, and one for the service (AnswerAccount). The stream whose next answer
// would exceed a limit is cut. If no write is in progress, the stream ends with RESOURCE_EXHAUSTED and names the
// setting. Otherwise it ends with CANCELLED, because a client that does not read cannot get a message.
//
// States: open -> (finish_when_sent) closing -> finished; open or closing -> (client gone, or cut) finished.
// Thread safety: all members, because gRPC may run several reactions of one RPC at the same time. StartWrite, StartRead
// and Finish may be called with the mutex held, because gRPC calls no reaction inside them.
#pragma once

#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "server/service/answer_account.hpp"
#include "server/service/status_map.hpp"

namespace kilokv::server {

// Reactor is grpc::ServerWriteReactor<ByteBuffer> or grpc::ServerBidiReactor<ByteBuffer, ByteBuffer>.
template <class Reactor>
class AnswerStream : public Reactor, public std::enable_shared_from_this<AnswerStream<Reactor>> {
 public:
  // Keeps the stream alive until gRPC no longer uses it. Requires: called once, before gRPC sees the reactor.
  AnswerStream* adopted_by_rpc() {
    self_ = this->shared_from_this();
    return this;
  }

 protected:
  // Requires: `account` outlives the RPC.
  AnswerStream(grpc::CallbackServerContext* context, std::uint64_t answer_bytes_max, AnswerAccount* account)
      : context_(context), answer_bytes_max_(answer_bytes_max), account_(account) {}

  // For subclasses. The caller holds mutex_, except for ended().
  void write(const grpc::ByteBuffer& answer) {
    if (closing() || finished_) return;
    const std::uint64_t bytes = answer.Length();
    if (unsent_bytes_ + bytes > answer_bytes_max_) {
      return cut(answer_bytes_max_, unsent_bytes_ + bytes, "--stream-answer-bytes-max");
    }
    const std::uint64_t of_all = account_->charge(bytes);
    if (of_all > account_->bytes_max()) return cut(account_->bytes_max(), of_all, "--answers-bytes-max");
    unsent_bytes_ += bytes;
    queue_.push_back(answer);
    if (!writing_) write_next();
  }

  // Ends the RPC with `status` when everything queued has been sent. Later calls change nothing.
  void finish_when_sent(grpc::Status status) {
    if (finish_ || finished_) return;
    finish_ = std::move(status);
    if (!writing_ && queue_.empty()) finish_now();
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

  // Whether nothing more can reach the client. Called without the mutex.
  bool ended() const {
    const std::lock_guard lock(mutex_);
    return finished_ || cut_;
  }

  grpc::CallbackServerContext* context() { return context_; }  // Requires: not finished
  bool finished() const { return finished_; }
  bool closing() const { return finish_.has_value() || cut_; }
  std::uint64_t unsent_bytes() const { return unsent_bytes_; }

  mutable std::mutex mutex_;

 private:
  void OnWriteDone(bool ok) final {
    const std::lock_guard lock(mutex_);
    writing_ = false;
    if (!ok || finished_) return abandon();
    if (!cut_) {
      unsent_bytes_ -= queue_.front().Length();
      account_->release(queue_.front().Length());
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
    const std::lock_guard lock(mutex_);
    abandon();
  }

  void OnDone() override {
    const std::shared_ptr<void> self = std::move(self_);  // gRPC uses the stream no more; the return may destroy it
  }

  void cut(std::uint64_t limit, std::uint64_t actual, const char* setting) {
    constexpr std::int64_t kRetryAfterUs = 1000000;  // by then, other clients may have taken their answers
    if (!writing_) {
      return finish_when_sent(
          to_grpc(Status::exhausted(ErrorReason::slow_reader,
                                    {"answers", std::to_string(limit) + " bytes unsent",
                                     std::to_string(actual) + " bytes unsent with this one", setting},
                                    kRetryAfterUs),
                  context_));
    }
    cut_ = true;
    drop_unsent();
    context_->TryCancel();
  }

  // Drops all unsent answers except the one that gRPC is sending. Counts that one as dropped, too.
  void drop_unsent() {
    while (queue_.size() > (writing_ ? 1 : 0)) queue_.pop_back();
    account_->release(unsent_bytes_);
    unsent_bytes_ = 0;
  }

  void write_next() {
    writing_ = true;
    this->StartWrite(&queue_.front());
  }

  void finish_now() {
    finished_ = true;
    this->Finish(*finish_);
  }

  grpc::CallbackServerContext* const context_;
  const std::uint64_t answer_bytes_max_;
  AnswerAccount* const account_;
  std::deque<grpc::ByteBuffer> queue_;  // while writing_, gRPC writes the front
  std::uint64_t unsent_bytes_ = 0;      // of the answers in queue_; 0 after drop_unsent()
  bool writing_ = false;
  bool cut_ = false;  // cancelled: nothing more reaches the client
  bool finished_ = false;
  std::optional<grpc::Status> finish_;  // the status to end with when the queue is empty
  std::shared_ptr<void> self_;
};

}  // namespace kilokv::server
