#include "server/edge/flood_pauses.hpp"

#include <algorithm>

namespace kilokv::server {

void FloodPauses::add(const std::string& address, const std::string& why, std::int64_t now_ms) {
  if (pauses_.size() >= kAddressesMax && !pauses_.contains(address)) return;
  Pause& pause = pauses_[address];
  const bool is_next = now_ms - pause.flood_ms >= pause.lasts_ms;  // not one more of the same moment
  if (is_next) pause.lasts_ms = std::clamp(2 * pause.lasts_ms, kPauseMs, kPauseMsMax);
  pause.until_ms = now_ms + pause.lasts_ms;
  pause.flood_ms = now_ms;
  pause.why = why;
}

std::optional<std::string> FloodPauses::refusal(const std::string& address, std::int64_t now_ms) const {
  const auto found = pauses_.find(address);
  if (found == pauses_.end() || now_ms >= found->second.until_ms) return std::nullopt;
  return "a flood came from this address; it may connect once in " + std::to_string(found->second.lasts_ms) +
         " ms. The last one: " + found->second.why;
}

void FloodPauses::connected(const std::string& address, std::int64_t now_ms) {
  const auto found = pauses_.find(address);
  if (found != pauses_.end()) found->second.until_ms = now_ms + found->second.lasts_ms;
}

void FloodPauses::forget_quiet_ones(std::int64_t now_ms) {
  std::erase_if(pauses_, [now_ms](const auto& item) { return now_ms - item.second.flood_ms >= kForgottenMs; });
}

}  // namespace kilokv::server
