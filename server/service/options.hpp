// Settings of the gRPC face. Names are those of the flags, `-` for `_`.
#pragma once

#include <cstdint>

#include "engine/base/status.hpp"
#include "engine/txn/validate.hpp"

namespace kilokv::server {

struct ServiceOptions {
  std::uint64_t message_bytes_max = std::uint64_t{4} << 20;  // of one request, and of one answer
  std::uint64_t grpc_memory_max = std::uint64_t{1} << 30;    // of gRPC itself: calls, messages being received
  std::uint32_t stream_requests_max = 256;                   // in flight on one Session stream; reading pauses at it
  std::uint64_t stream_bytes_max = std::uint64_t{32} << 20;  // of requests in flight and answers unsent; likewise
  std::uint64_t stream_answer_bytes_max = std::uint64_t{256} << 20;  // unsent; a client that reads so slowly is cut off
  std::uint64_t answers_bytes_max = std::uint64_t{1} << 30;          // unsent, of all streams; likewise
  engine::TransactionLimits limits;

  Status validate() const;
};

// Calls open at once on one connection; gRPC lets the client's next one wait.
inline constexpr int kCallsPerConnectionMax = 1024;

// gRPC takes messages up to this many times message_bytes_max, so that the service can refuse them by name; beyond it
// gRPC refuses them in its own words and ends the stream.
inline constexpr std::uint64_t kMessageSlack = 16;

}  // namespace kilokv::server
