// The write side of a stream of answers: at most one write is under way, the rest wait in order, and the RPC is
// finished once, after them. Whoever still owes answers holds the stream by shared_ptr, so it survives the RPC's end:
// what comes then is dropped.
//
// Unsent answers are bounded, for each stream and for the service (AnswerAccount): the stream whose next answer would
// be too much is cut. Where it has nothing unsent it ends with RESOURCE_EXHAUSTED and the setting; where a write is
// under way, nothing more can be said to a client that does not read, and it ends as CANCELLED.
//
// States: open -> (finish_when_sent) closing -> finished; open or closing -> (client gone, or cut) finished.
// Thread safety: all members; gRPC may run reactions of one RPC at the same time.
// gRPC calls no reaction from within StartWrite, StartRead or Finish, so they may be called with the mutex held.
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

// Reactor: grpc::ServerWriteReactor<ByteBuffer> or grpc::ServerBidiReactor<ByteBuffer, ByteBuffer>.
template <class Reactor>
class AnswerStream : public Reactor, public std::enable_shared_from_this<AnswerStream<Reactor>> {
 public:
  // Keeps the stream alive until gRPC has let go of it. Requires: called once, before gRPC sees the reactor.
  AnswerStream* adopted_by_rpc() {
    self_ = this->shared_from_this();
    return this;
  }

 protected:
  // Requires: `account` outlives the RPC.
  AnswerStream(grpc::CallbackServerContext* context, std::uint64_t answer_bytes_max, AnswerAccount* account)
      : context_(context), answer_bytes_max_(answer_bytes_max), account_(account) {}

  // For subclasses; each is called with mutex_ held, but for ended().
  void write(grpc::ByteBuffer answer) {
    if (closing() || finished_) return;
    const std::uint64_t bytes = answer.Length();
    if (unsent_bytes_ + bytes > answer_bytes_max_) {
      return cut(answer_bytes_max_, unsent_bytes_ + bytes, "--stream-answer-bytes-max");
    }
    const std::uint64_t of_all = account_->charge(bytes);
    if (of_all > account_->bytes_max()) return cut(account_->bytes_max(), of_all, "--answers-bytes-max");
    unsent_bytes_ += bytes;
    queue_.push_back(std::move(answer));
    if (!writing_) write_next();
  }

  // Ends the RPC with `status` when everything queued has been sent. Later calls change nothing.
  void finish_when_sent(grpc::Status status) {
    if (finish_ || finished_) return;
    finish_ = std::move(status);
    if (!writing_ && queue_.empty()) finish_now();
  }

  // The client is gone: ends the RPC without waiting for anything.
  void abandon() {
    drop_unsent();
    if (finished_) return;
    finish_ = grpc::Status::CANCELLED;
    finish_now();
  }

  // An answer left the queue.
  virtual void on_sent() {}

  // Nothing that is written from now on reaches the client. Without the mutex.
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
    const std::shared_ptr<void> self = std::move(self_);  // the last of gRPC's use; may destroy this on return
  }

  void cut(std::uint64_t limit, std::uint64_t actual, const char* setting) {
    constexpr std::int64_t kRetryAfterUs = 1000000;  // until others may have taken theirs
    if (!writing_) {
      return finish_when_sent(
          to_grpc(Status::exhausted({"answers", std::to_string(limit) + " bytes unsent",
                                     std::to_string(actual) + " bytes unsent with this one", setting},
                                    kRetryAfterUs)
                      .because(ErrorReason::slow_reader),
                  context_));
    }
    cut_ = true;
    drop_unsent();
    context_->TryCancel();
  }

  // All but the one that gRPC holds, which does not count any more.
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
  std::deque<grpc::ByteBuffer> queue_;  // the front is being written while writing_
  std::uint64_t unsent_bytes_ = 0;      // of queue_, until it is dropped
  bool writing_ = false;
  bool cut_ = false;  // cancelled: nothing more reaches the client
  bool finished_ = false;
  std::optional<grpc::Status> finish_;  // how to end once the queue is empty
  std::shared_ptr<void> self_;
};

}  // namespace kilokv::server
