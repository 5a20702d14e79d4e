#include "server/service/answer_account.hpp"

#include <pthread.h>

#include <algorithm>

namespace kilokv::server {

AnswerAccount::AnswerAccount(std::uint64_t bytes_max, DurationUs timeout_us)
    // After the delay, other clients may have taken their answers.
    : limit_(bytes_max, {ErrorReason::slow_reader, "answers", " bytes unsent", "--answers-bytes-max", 1000000},
             SharedLimit::kLittleBytes),
      timeout_(timeout_us),
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

void AnswerAccount::watch(UnsentAnswer* answer) {
  const std::lock_guard lock(mutex_);
  if (answer->is_watched_) watched_.erase(answer->place_);
  answer->since_ = std::chrono::steady_clock::now();
  answer->place_ = watched_.insert(watched_.end(), answer);
  answer->is_watched_ = true;
}

void AnswerAccount::unwatch(UnsentAnswer* answer) {
  const std::lock_guard lock(mutex_);
  if (!answer->is_watched_) return;
  watched_.erase(answer->place_);
  answer->is_watched_ = false;
}

void AnswerAccount::end_slow_ones() {
  constexpr int kEndedAtOnce = 16;
  const auto step =
      std::clamp<std::chrono::microseconds>(timeout_ / 4, std::chrono::milliseconds(10), std::chrono::seconds(1));
  std::unique_lock lock(mutex_);
  while (!stop_.wait_for(lock, step, [this] { return stopping_; })) {
    const auto now = std::chrono::steady_clock::now();
    for (int ended = 1; !watched_.empty() && now - watched_.front()->since_ >= timeout_; ++ended) {
      UnsentAnswer* const answer = watched_.front();
      watched_.pop_front();
      answer->is_watched_ = false;
      answer->on_timeout();
      if (ended % kEndedAtOnce == 0) lock.unlock(), lock.lock();  // others may send their answers between
    }
  }
}

}  // namespace kilokv::server
