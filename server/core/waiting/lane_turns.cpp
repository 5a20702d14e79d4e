#include "server/core/waiting/lane_turns.hpp"

#include <algorithm>

#include "server/core/options.hpp"

namespace kilokv::server {
namespace {

// A transaction that costs more than this part of a batch counts as any other such.
constexpr double kLongestLooked = 0.125;
// The present stays before the ends of all others by so much. So a newcomer with less than that goes before them.
constexpr double kLead = kLongestLooked / 2;

double batches(std::uint64_t cost) { return static_cast<double>(cost) / static_cast<double>(kWholeBatch); }

}  // namespace

void LaneTurns::push(Turn* turn) {
  turn->number = ++entries_;
  heap_.push(turn);
}

void LaneTurns::enter(Turn* turn, std::uint64_t cost) {
  turn->begin = std::max(turn->begin, now_);
  turn->end = turn->begin + std::min(batches(cost), kLongestLooked) / turn->weight;
  weights_ += turn->weight;
  push(turn);
}

void LaneTurns::leave(Turn* turn) {
  if (turn->waits()) weights_ -= turn->weight;
  if (turn->place != kNoPlace) heap_.remove(turn);
  if (turn->is_put_off) std::erase(put_off_, turn);
  turn->is_put_off = false;
  if (first_ == turn) first_ = nullptr;
}

void LaneTurns::took(Turn* turn, std::uint64_t cost) {
  heap_.remove(turn);
  if (first_ == turn) first_ = nullptr;
  now_ = std::max(now_, turn->begin);
  now_ = std::max(now_, std::min(now_ + batches(cost) / weights_, turn->end - kLead / turn->weight));
  weights_ -= turn->weight;
  turn->begin += batches(cost) / turn->weight;
}

void LaneTurns::put_off(Turn* turn) {
  heap_.remove(turn);
  turn->is_put_off = true;
  put_off_.push_back(turn);
  if (first_ == turn) had_first_ = false;  // it had no room, so it goes first again
}

void LaneTurns::begin_batch() {
  first_ = !had_first_ && !put_off_.empty() ? put_off_.front() : nullptr;
  had_first_ = first_ != nullptr;
  for (Turn* turn : put_off_) {
    turn->is_put_off = false;
    if (turn == first_) turn->end = -1;
    push(turn);
  }
  put_off_.clear();
}

}  // namespace kilokv::server
