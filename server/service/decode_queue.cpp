#include "server/service/decode_queue.hpp"

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

namespace kilokv::server {

DecodeQueue::DecodeQueue(std::uint64_t bytes_max, const char* setting, std::uint64_t decoding_max,
                         std::chrono::milliseconds pass_every)
    : decoding_max_(decoding_max),
      pass_every_(pass_every),
      bytes_(bytes_max, {ErrorReason::queue_full, "queue", " bytes of messages to decode", setting, 10000},
             SharedLimit::kLittleBytes) {
  const unsigned count = std::clamp(std::thread::hardware_concurrency() / 2, 2u, 16u);
  for (unsigned i = 0; i < count; ++i) {
    threads_.emplace_back([this] { serve(); });
    pthread_setname_np(threads_.back().native_handle(), "decode");
  }
}

DecodeQueue::~DecodeQueue() {
  drain();
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void DecodeQueue::wait(const std::shared_ptr<Client>& client, std::uint64_t bytes, std::uint64_t queued_max,
                       std::function<void()> work) {
  {
    const std::lock_guard lock(mutex_);
    Flow& flow = flows_[client.get()];
    flow.client = client;
    if (flow.messages.empty()) client->decode_begin = std::max(client->decode_begin, now_);
    flow.messages.push_back({bytes, queued_max, std::move(work)});
    waiting_.fetch_add(1, std::memory_order_release);
  }
  changed_.notify_one();
}

// Takes the room for it if it returns true.
bool DecodeQueue::may_run_here(const Client& client, std::uint64_t bytes, std::uint64_t queued_max) {
  if (bytes > kDecodedHereBytesMax || waiting_.load(std::memory_order_acquire) > 0) return false;
  if (client.queued_transactions.of_address() >= queued_max) return false;
  if (here_bytes_.fetch_add(bytes, std::memory_order_relaxed) + bytes <= kDecodedHereBytesMax) return true;
  here_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
  return false;
}

void DecodeQueue::drain() {
  std::unique_lock lock(mutex_);
  draining_ = true;
  changed_.notify_all();
  changed_.wait(lock, [this] { return flows_.empty() && running_ == 0; });
  draining_ = false;
}

static std::int64_t now_ms() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

// Whether the admission queue holds enough of its client, or of its address.
bool DecodeQueue::is_full(const Flow& flow) {
  return flow.client->queued_transactions.of_address() >= flow.messages.front().queued_max;
}

// The flow to serve now; the end if there is none. There are at most as many as connections with long messages.
DecodeQueue::Flows::iterator DecodeQueue::next() {
  const std::int64_t time_ms = now_ms();
  present_max_ = std::numeric_limits<double>::infinity();
  auto best = flows_.end();
  double best_end = 0;
  for (auto it = flows_.begin(); it != flows_.end(); ++it) {
    const Flow& flow = it->second;
    const Message& message = flow.messages.front();
    const auto may_pass = [&] {
      return flow.client->queued_transactions.load() == 0 && flow.client->keeper()->passes_from_ms <= time_ms;
    };
    if (!draining_ && is_full(flow) && !may_pass()) {
      present_max_ = std::min(present_max_, flow.client->decode_begin);
      continue;
    }
    const double end = flow.client->decode_begin +
                       static_cast<double>(message.bytes) / flow.client->user_weight.load(std::memory_order_relaxed);
    if (best == flows_.end() || end < best_end) {
      best = it;
      best_end = end;
    }
  }
  return best;
}

// The present stays with those who were passed over: otherwise newcomers would begin after all that these still have
// here. But it stays before the flow that is served by no more than what is decoded at once: otherwise newcomers would
// pass that flow for as long as somebody is passed over. Requires: next() has just returned it.
DecodeQueue::Message DecodeQueue::take(Flows::iterator it) {
  Flow& flow = it->second;
  if (is_full(flow)) {
    const auto factor = static_cast<std::int64_t>(1 + flow.messages.front().bytes / kPassBytes);
    flow.client->keeper()->passes_from_ms = now_ms() + factor * pass_every_.count();
  }
  Message message = std::move(flow.messages.front());
  flow.messages.pop_front();
  waiting_.fetch_sub(1, std::memory_order_release);
  const double begin = flow.client->decode_begin;
  now_ = std::max({now_, std::min(begin, present_max_), begin - static_cast<double>(decoding_max_)});
  flow.client->decode_begin +=
      static_cast<double>(message.bytes) / flow.client->user_weight.load(std::memory_order_relaxed);
  if (flow.messages.empty()) flows_.erase(it);
  return message;
}

// What is decoded already goes first: the threads of the pipeline sleep when they have no work, and then these have the
// cores.
static void yield_to_the_pipeline() {
  constexpr int kNice = 10;
  ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), kNice);  // of this thread alone, on Linux
}

void DecodeQueue::serve() {
  yield_to_the_pipeline();
  // For clients whose messages wait until a batch is taken, and for messages that wait until others are decoded.
  constexpr std::chrono::milliseconds kLook{1};
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    const auto it = next();
    if (it == flows_.end() || !has_room_for(it->second.messages.front().bytes)) {
      if (flows_.empty()) {
        changed_.wait(lock);
      } else {
        changed_.wait_for(lock, kLook);
      }
      continue;
    }
    const std::shared_ptr<Client> client = it->second.client;
    Message message = take(it);
    ++running_;
    running_bytes_ += message.bytes;
    lock.unlock();
    message.work();
    message.work = nullptr;  // it holds the message
    bytes_.release(client->account(&Client::undecoded_bytes), message.bytes);
    lock.lock();
    --running_;
    running_bytes_ -= message.bytes;
    if (flows_.empty() && running_ == 0) changed_.notify_all();
  }
}

}  // namespace kilokv::server
