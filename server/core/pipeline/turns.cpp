#include "server/core/pipeline/turns.hpp"

#include <algorithm>
#include <utility>

#include "engine/base/check.hpp"
#include "server/core/pipeline/transaction_cost.hpp"

namespace kilokv::server {
namespace {

// A client with more work than this part of a batch is as busy as any. (The length of its turn would not do, because it
// changes while the client waits.)
constexpr double kLongestLooked = 0.125;

// By so much, so that a newcomer with less than this goes before them.
constexpr double kLead = kLongestLooked / 2;

double batches(std::uint64_t cost) { return static_cast<double>(cost) / static_cast<double>(kWholeBatch); }

}  // namespace

// Requests hold their client, and the client's queue holds the requests.
Turns::~Turns() {
  for (Place& place : heap_) put_off_.push_back(place.client);
  if (served_ != nullptr) put_off_.push_back(served_);
  for (Client* client : put_off_) {
    const auto requests = std::move(client->queue.requests);
    client->queue.requests.clear();
  }
}

bool Turns::later(const Place& a, const Place& b) { return a.end != b.end ? a.end > b.end : a.number > b.number; }

void Turns::enter(Client* client, bool first) {
  const std::uint64_t wanted = client->queue.requests.front()->cost_left;
  const double length = std::min(batches(wanted), kLongestLooked) / client->weight;
  heap_.push_back({first ? -1 : client->queue.begin + length, ++entries_, client});
  std::push_heap(heap_.begin(), heap_.end(), later);
}

void Turns::push(std::shared_ptr<AdmittedRequest> request) {
  Client* const client = request->client.get();
  client->queue.requests.push_back(std::move(request));
  if (client->queue.requests.size() > 1) return;
  client->queue.begin = std::max(client->queue.begin, now_);
  client->weight = client->user_weight.load(std::memory_order_relaxed);
  weights_ += client->weight;
  enter(client);
}

void Turns::begin_batch() {
  const bool may_go_first = first_ == nullptr;
  first_ = may_go_first && !put_off_.empty() ? put_off_.front() : nullptr;
  for (Client* client : put_off_) enter(client, client == first_);
  put_off_.clear();
}

std::shared_ptr<AdmittedRequest> Turns::next() {
  if (served_ == nullptr) {
    if (heap_.empty()) return nullptr;
    std::pop_heap(heap_.begin(), heap_.end(), later);
    served_ = heap_.back().client;
    heap_.pop_back();
  }
  return served_->queue.requests.front();
}

std::uint64_t Turns::turn() const {
  const double part = served_->weight / weights_;
  return std::max<std::uint64_t>(1, static_cast<std::uint64_t>(part * static_cast<double>(kWholeBatch)));
}

// The present stays before the ends of those who are put off: otherwise newcomers would begin after all that these
// still have to do.
void Turns::took(std::uint64_t cost, bool all) {
  double present = served_->queue.begin;
  for (const Client* client : put_off_) present = std::min(present, client->queue.begin + kLead / client->weight);
  now_ = std::max(now_, present);
  served_->queue.begin += batches(cost) / served_->weight;
  if (all) return remove();
  enter(std::exchange(served_, nullptr));
}

void Turns::remove() {
  Client* const client = std::exchange(served_, nullptr);
  const std::shared_ptr<AdmittedRequest> request = std::move(client->queue.requests.front());  // may be the last owner
  client->queue.requests.pop_front();
  if (!client->queue.requests.empty()) return enter(client);
  weights_ -= client->weight;
  if (heap_.empty() && put_off_.empty()) weights_ = 0;  // no rounding error stays
}

void Turns::put_off() {
  Client* const client = std::exchange(served_, nullptr);
  if (client == first_) first_ = nullptr;  // it had no room, so it goes first again
  put_off_.push_back(client);
}

}  // namespace kilokv::server
