#include "server/service/unary_call.hpp"

#include <utility>

#include "server/service/status_map.hpp"

namespace kilokv::server {

UnaryCall* UnaryCall::adopted_by_rpc() {
  self_ = shared_from_this();
  if (caller_.certificate != nullptr) environment_->calls.add(this, self_);
  if (refused().ok()) {
    place_.await_message(weak_from_this());
    if (needs_login_ == NeedsLogin::no) environment_->answers.await_message(this);
    StartRead(&incoming_);
  } else {
    end_with(refused().as_not_run());
  }
  return this;
}

void UnaryCall::OnReadDone(bool ok) {
  if (ok) {
    {
      const std::lock_guard lock(mutex_);
      has_message_ = true;
    }
    place_.message_came();
    if (needs_login_ == NeedsLogin::no) environment_->answers.message_came(this);
    grpc::ByteBuffer message = CallEnvironment::take_message(caller_, &incoming_);
    if (!ended()) on_message(&message);
  } else {
    end_with(no_message());
  }
}

bool UnaryCall::answer(const grpc::ByteBuffer& bytes) {
  const std::lock_guard lock(mutex_);
  if (ended_) return false;
  ended_ = true;
  const std::uint64_t length = bytes.Length() + kAnswerBytes;
  const Status status = environment_->answers.charge(client_.get(), length);
  note_end(status);
  environment_->answers.watch(this);
  if (status.ok()) {
    charged_bytes_ = length;
    answer_ = bytes;
    StartWriteAndFinish(&answer_, {}, grpc::Status::OK);
  } else {
    Finish(to_grpc(status, context_));
  }
  return true;
}

bool UnaryCall::end_with(const Status& status) {
  const std::lock_guard lock(mutex_);
  if (ended_) return false;
  end_now(status);
  return true;
}

void UnaryCall::note_end(const Status& status) {
  method_->end(begun_us_, to_grpc_code(status.code()));
  environment_->refuse(status, *client_);
}

void UnaryCall::end_now(const Status& status) {
  ended_ = true;
  note_end(status);
  environment_->answers.watch(this);  // a client can also leave an error untaken
  Finish(to_grpc(status, context_));
}

// A call whose message has come may run, so it may not be told that it did not. It has begun nothing before.
bool UnaryCall::end_late(const Status& status, bool is_again) {
  const std::lock_guard lock(mutex_);
  if (ended_ && !done_ && is_again) context_->TryCancel();
  if (has_message_ || ended_) return false;
  end_now(status.as_not_run());
  return true;
}

bool UnaryCall::ended() const {
  const std::lock_guard lock(mutex_);
  return ended_;
}

void UnaryCall::OnCancel() {
  if (end_with(Status(StatusCode::cancelled, "the client has gone away"))) on_gone();
}

void UnaryCall::OnDone() {
  {
    const std::lock_guard lock(mutex_);
    done_ = true;
  }
  environment_->answers.unwatch(this);
  if (caller_.certificate != nullptr) environment_->calls.remove(this);
  environment_->answers.release(client_.get(), charged_bytes_);
  place_ = {};
  const std::shared_ptr<void> self = std::move(self_);  // gRPC uses the call no more; the return may destroy it
}

}  // namespace kilokv::server
