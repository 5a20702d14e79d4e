#include "server/service/answer_account.hpp"

#include <pthread.h>

#include <algorithm>
#include <utility>

namespace kilokv::server {
namespace {

constexpr std::size_t kEndedAtOnce = 16;
constexpr auto kPause = std::chrono::milliseconds(1);

}  // namespace

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
  std::unique_lock lock(mutex_);
  end(call);
  ended_.wait(lock, [this, call] { return std::find(ending_.begin(), ending_.end(), call) == ending_.end(); });
}

void AnswerAccount::end_slow_ones() {
  const auto step = std::clamp<std::chrono::microseconds>(std::min(answer_timeout_, message_timeout_) / 4,
                                                          std::chrono::milliseconds(10), std::chrono::seconds(1));
  std::unique_lock lock(mutex_);
  while (!stop_.wait_for(lock, step, [this] { return stopping_; })) {
    while (take_slow_ones()) {
      lock.unlock();
      for (WatchedCall* const call : ending_) call->on_timeout();
      lock.lock();
      ending_.clear();
      ended_.notify_all();
      // gRPC has work with each call that ends. Others have their turns at the cores meanwhile.
      if (stop_.wait_for(lock, kPause, [this] { return stopping_; })) return;
    }
  }
}

bool AnswerAccount::take_slow_ones() {
  const auto now = std::chrono::steady_clock::now();
  for (const auto& [calls, timeout] : {std::pair(&unsent_, answer_timeout_), std::pair(&awaiting_, message_timeout_)}) {
    while (ending_.size() < kEndedAtOnce && !calls->empty() && now - calls->front()->since_ >= timeout) {
      ending_.push_back(calls->front());
      end(ending_.back());
    }
  }
  return !ending_.empty();
}

}  // namespace kilokv::server
