// The pauses of addresses that sent a flood. Such an address may connect again after its pause, which doubles with each
// flood. After kForgottenMs without a flood, the address is like any other.
//
// Times are in milliseconds, of a clock that never goes back. Thread safety: none; the caller locks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>

namespace kilokv::server {

class FloodPauses {
 public:
  static constexpr std::int64_t kPauseMs = 1000, kPauseMsMax = 60000;
  static constexpr std::int64_t kForgottenMs = 120000;
  static constexpr std::size_t kAddressesMax = 10000;

  // A flood of this address was cut off. `why`: what the flood was; refusal() repeats it. Floods of one moment count
  // once. Beyond kAddressesMax, further addresses get no pause.
  void add(const std::string& address, const std::string& why, std::int64_t now_ms);

  // Why the address may not connect now. Nothing if it may.
  std::optional<std::string> refusal(const std::string& address, std::int64_t now_ms) const;

  // The address has connected, and may do so again after its pause.
  void connected(const std::string& address, std::int64_t now_ms);

  void forget_quiet_ones(std::int64_t now_ms);

 private:
  struct Pause {
    std::int64_t lasts_ms = 0;  // between two connections
    std::int64_t until_ms = 0;
    std::int64_t flood_ms = 0;  // when the last flood was cut off
    std::string why;            // of the last flood
  };

  std::unordered_map<std::string, Pause> pauses_;  // by address
};

}  // namespace kilokv::server
