// Identifies a request. The same identity goes with a request from its decoding to its stored results.
//
// Thread safety: plain data.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>

#include "engine/base/types.hpp"
#include "server/core/hex.hpp"

namespace kilokv::server {

struct SessionId {
  std::array<unsigned char, 16> bytes{};
  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy takes the literal 0 that std::array compares with for a pointer
  friend auto operator<=>(const SessionId&, const SessionId&) = default;
};

// The begin of a session's id, which lists and logs show. Who knows the whole id can attach to the session, so it is a
// secret.
inline constexpr std::size_t kShownSessionBytes = 4;

// The same as hexadecimal digits.
inline std::string shown(const SessionId& session) {
  return hex_of(std::span(session.bytes).first(kShownSessionBytes));
}

// A session, and who calls in it: its holder. 0 is the client that opened the session, n the client of its n-th attach.
// Only the newest holder may use a session.
struct HeldSession {
  HeldSession(const SessionId& session_id, std::uint64_t number_of_holder = 0)
      : id(session_id), holder(number_of_holder) {}
  SessionId id;
  std::uint64_t holder;
};

// Session and number name the request for as long as the session lives.
struct RequestName {
  SessionId session;
  std::uint64_t number = 0;
  friend bool operator==(const RequestName&, const RequestName&) = default;
};
struct RequestNameHash {
  std::size_t operator()(const RequestName& name) const noexcept {
    std::uint64_t id = 0;  // sessions are random bytes
    std::memcpy(&id, name.session.bytes.data(), sizeof id);
    return id ^ name.number * 0x9E3779B97F4A7C15u;
  }
};

struct RequestIdentity {
  std::optional<SessionId> session;        // none: if the answer is lost, the client never learns the outcome
  std::uint64_t number = 0;                // in its session, from 1
  std::uint64_t acknowledged_through = 0;  // the client has the results of all numbers up to this
  Hash128 digest;                          // of the content, in a session: tells a retry from another request
  std::uint64_t holder = 0;                // of the session: who sends it (HeldSession)
};

}  // namespace kilokv::server
