#include "server/service/answer_account.hpp"

#include <pthread.h>

#include <algorithm>
#include <utility>

namespace kilokv::server {

AnswerAccount::AnswerAccount(std::uint64_t bytes_max, DurationUs answer_us_max, DurationUs message_us_max)
    // After the delay, other clients may have taken their answers.
    : limit_(bytes_max, {ErrorReason::slow_reader, "answers", " bytes unsent", "--answers-bytes-max", 1000000},
             SharedLimit::kLittleBytes),
      answer_timeout_(answer_us_max),
      message_timeout_(message_us_max),
      thread_([this] { end_slow_ones(); }) {
  pthread_setname_np(thread_.native_handle(), "slow-readers");
}

AnswerAccount::~AnswerAccount() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  stop_.notify_all();
  thread_.join();
}

void AnswerAccount::begin(WatchedCall* call, Calls* calls) {
  const std::lock_guard lock(mutex_);
  end(call);
  call->since_ = std::chrono::steady_clock::now();
  call->place_ = calls->insert(calls->end(), call);
  call->watched_in_ = calls;
}

void AnswerAccount::end(WatchedCall* call) {
  if (Calls* const calls = std::exchange(call->watched_in_, nullptr)) calls->erase(call->place_);
}

void AnswerAccount::message_came(WatchedCall* call) {
  const std::lock_guard lock(mutex_);
  if (call->watched_in_ == &awaiting_) end(call);
}

void AnswerAccount::unwatch(WatchedCall* call) {
  const std::lock_guard lock(mutex_);
  end(call);
}

void AnswerAccount::end_slow_ones() {
  constexpr int kEndedAtOnce = 16;
  const auto step = std::clamp<std::chrono::microseconds>(std::min(answer_timeout_, message_timeout_) / 4,
                                                          std::chrono::milliseconds(10), std::chrono::seconds(1));
  std::unique_lock lock(mutex_);
  while (!stop_.wait_for(lock, step, [this] { return stopping_; })) {
    const auto now = std::chrono::steady_clock::now();
    int ended = 0;
    for (const auto& [calls, timeout] :
         {std::pair(&unsent_, answer_timeout_), std::pair(&awaiting_, message_timeout_)}) {
      while (!calls->empty() && now - calls->front()->since_ >= timeout) {
        WatchedCall* const call = calls->front();
        end(call);
        call->on_timeout();
        if (++ended % kEndedAtOnce == 0) lock.unlock(), lock.lock();  // others may send their answers between
      }
    }
  }
}

}  // namespace kilokv::server
