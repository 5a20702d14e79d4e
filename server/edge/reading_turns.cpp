#include "server/edge/reading_turns.hpp"

#include <algorithm>
#include <iterator>
#include <limits>

namespace kilokv::server {

void ReadingTurns::begin(int connection, const std::string& address, std::int64_t now_ms) {
  Reader& reader = readers_[connection] = Reader{.connection = connection, .address = address, .turn = ++last_turn_};
  if (takes_turns(address)) set_held(&reader, true, now_ms);
}

void ReadingTurns::stop() {
  crowds_.clear();
  for (auto& [connection, reader] : readers_) set_held(&reader, false, reader.seen_ms);
}

void ReadingTurns::see(int connection, std::uint64_t read, std::uint64_t waiting, bool is_stuck, std::int64_t now_ms) {
  Reader& reader = readers_.at(connection);
  const bool was_read = read > reader.read;
  if (was_read || is_stuck || reader.waiting == 0) reader.unread_since_ms = now_ms;
  reader.was_read = reader.was_read || was_read || waiting == 0;
  reader.read = read;
  reader.waiting = waiting;
  reader.seen_ms = now_ms;
}

ReadingTurns::Decision ReadingTurns::decide(std::int64_t now_ms) {
  Decision decision;
  const std::int64_t others_wait_ms = find_crowds(now_ms, &decision.crowds);
  if (crowds_.empty()) return decision;
  std::unordered_map<std::string, std::vector<Reader*>> readers;
  for (auto& [connection, reader] : readers_) {
    if (!takes_turns(reader.address)) continue;
    readers[reader.address].push_back(&reader);
    if (crowds_.at(reader.address).began_ms == now_ms) {  // its first turn begins
      reader.turn_ms = now_ms;
      reader.was_read = reader.waiting == 0;
    }
    if (is_unbearable(reader, others_wait_ms, now_ms)) decision.to_cut_off.push_back(connection);
  }
  for (auto crowd = crowds_.begin(); crowd != crowds_.end();) {
    const bool goes_on = take_turns(&crowd->second, readers[crowd->first], others_wait_ms > 0, now_ms);
    crowd = goes_on ? std::next(crowd) : crowds_.erase(crowd);
  }
  return decision;
}

bool ReadingTurns::is_unbearable(const Reader& reader, std::int64_t others_wait_ms, std::int64_t now_ms) const {
  if (!reader.is_held || reader.waiting < kHeldBytes / 2) return false;
  return std::min(others_wait_ms, now_ms - crowds_.at(reader.address).began_ms) >= kUnbearableMs;
}

std::int64_t ReadingTurns::find_crowds(std::int64_t now_ms, std::vector<std::string>* found) {
  struct Waiting {
    std::size_t connections = 0;
    std::int64_t longest_ms = 0;
  };
  std::unordered_map<std::string, Waiting> by_address;
  for (const auto& [connection, reader] : readers_) {
    if (reader.waiting == 0 || takes_turns(reader.address)) continue;
    Waiting& waiting = by_address[reader.address];
    ++waiting.connections;
    if (reader.seen_ms != now_ms) continue;  // what was long ago
    const std::int64_t unread_ms = now_ms - reader.unread_since_ms;
    if (unread_ms < kNotReadMs) waiting.longest_ms = std::max(waiting.longest_ms, unread_ms);
  }
  constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();
  std::size_t least = kNone, least_too_long = kNone, most = 0;  // connections of an address
  std::int64_t longest_ms = 0;
  for (const auto& [address, waiting] : by_address) {
    least = std::min(least, waiting.connections);
    if (waiting.longest_ms >= (any() ? kUnreadAgainMs : kUnreadMs)) {
      least_too_long = std::min(least_too_long, waiting.connections);
      longest_ms = std::max(longest_ms, waiting.longest_ms);
    }
    most = std::max(most, waiting.connections);
  }
  const auto is_crowd = [](std::size_t connections, std::size_t others) {
    return connections >= kCrowd && connections / kCrowdTimes >= others;
  };
  may_come_ = is_crowd(most, least);
  for (const auto& [address, waiting] : by_address) {
    if (!is_crowd(waiting.connections, least_too_long)) continue;
    crowds_.emplace(address, Crowd{.began_ms = now_ms, .waited_ms = now_ms});
    found->push_back(address);
  }
  return longest_ms;
}

bool ReadingTurns::take_turns(Crowd* crowd, const std::vector<Reader*>& readers, bool others_wait,
                              std::int64_t now_ms) {
  std::vector<Reader*> line, reading, done;  // whose turn comes, is now, and has been
  for (Reader* const reader : readers) {
    if (reader->is_held) {
      if (reader->waiting > 0) line.push_back(reader);
    } else {
      (reader->was_read || now_ms - reader->turn_ms >= kTurnMs ? done : reading).push_back(reader);
    }
  }
  crowd->in_time = !others_wait && reading.empty() && done.size() >= crowd->at_once ? crowd->in_time + 1 : 0;
  if (others_wait) {
    crowd->at_once = std::max(1 + line.size() * kLookMs / kRoundMs, crowd->at_once / 2);
  } else if (crowd->in_time >= kInTime) {
    crowd->at_once += std::max<std::size_t>(1, crowd->at_once / 4);
    crowd->in_time = 0;
  }
  const std::size_t places = crowd->at_once - std::min(crowd->at_once, reading.size());
  const std::size_t next = std::min(places, line.size());
  if (next < line.size()) crowd->waited_ms = now_ms;
  if (now_ms - crowd->waited_ms >= kEndMs) {
    for (Reader* const reader : readers) set_held(reader, false, now_ms);
    return false;
  }
  const auto is_before = [](const Reader* a, const Reader* b) { return a->turn < b->turn; };
  std::sort(reading.begin(), reading.end(), is_before);
  std::partial_sort(line.begin(), line.begin() + static_cast<std::ptrdiff_t>(next), line.end(), is_before);
  for (std::size_t i = crowd->at_once; i < reading.size(); ++i) set_held(reading[i], true, now_ms);
  for (std::size_t i = places - next; i < done.size(); ++i) set_held(done[i], true, now_ms);
  for (std::size_t i = 0; i < next; ++i) set_held(line[i], false, now_ms);
  return true;
}

void ReadingTurns::set_held(Reader* reader, bool is_held, std::int64_t now_ms) {
  if (reader->is_held == is_held) return;
  reader->is_held = is_held;
  reader->was_read = false;
  reader->turn_ms = now_ms;
  reader->turn = ++last_turn_;
  hold_(reader->connection, is_held);
}

}  // namespace kilokv::server
