// Timers (timers.hpp).
#include "client/lib/src/timers.hpp"

#include <condition_variable>
#include <map>
#include <mutex>
#include <unordered_map>
#include <utility>

namespace kilokv::client {

struct Timers::State {
  using Queue = std::multimap<TimePoint, std::pair<Id, std::function<void()>>>;
  std::mutex mutex;
  std::condition_variable changed;
  Queue queue;
  std::unordered_map<Id, Queue::iterator> by_id;
  Id next_id = 1;
  bool stop = false;
};

Timers::Timers() : state_(std::make_shared<State>()), thread_(run, state_) {}

Timers::~Timers() {
  State::Queue dropped;  // destroyed without the lock, because functions may own objects with destructors of any kind
  {
    std::lock_guard lock(state_->mutex);
    state_->stop = true;
    dropped.swap(state_->queue);
    state_->by_id.clear();
  }
  state_->changed.notify_all();
  if (thread_.get_id() == std::this_thread::get_id()) {
    thread_.detach();
  } else {
    thread_.join();
  }
}

Timers::Id Timers::at(TimePoint time, std::function<void()> function) {
  std::unique_lock lock(state_->mutex);
  const Id id = state_->next_id++;
  const auto place = state_->queue.emplace(time, std::make_pair(id, std::move(function)));
  state_->by_id.emplace(id, place);
  const bool first = place == state_->queue.begin();
  lock.unlock();
  if (first) state_->changed.notify_all();
  return id;
}

void Timers::cancel(Id id) {
  std::function<void()> dropped;
  std::lock_guard lock(state_->mutex);
  const auto found = state_->by_id.find(id);
  if (found == state_->by_id.end()) return;
  dropped = std::move(found->second->second.second);
  state_->queue.erase(found->second);
  state_->by_id.erase(found);
}

void Timers::run(const std::shared_ptr<State>& state) {
  std::unique_lock lock(state->mutex);
  while (!state->stop) {
    if (state->queue.empty()) {
      state->changed.wait(lock);
      continue;
    }
    const auto first = state->queue.begin();
    const TimePoint time = first->first;
    if (time > Clock::now()) {
      state->changed.wait_until(lock, time);
      continue;
    }
    std::function<void()> function = std::move(first->second.second);
    state->by_id.erase(first->second.first);
    state->queue.erase(first);
    lock.unlock();
    function();
    function = nullptr;
    lock.lock();
  }
}

}  // namespace kilokv::client
