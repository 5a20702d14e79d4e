// What the calls of the conformance test have in them (README.md), as the arguments of the C++ client.
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <stdexcept>
#include <string>
#include <utility>

#include "kilokv/client.hpp"
#include "kilokv/interactive.hpp"
#include "kilokv/watch.hpp"

namespace kilokv::conformance {

using Json = nlohmann::json;

// The call was refused before anything was sent: a type of the library cannot hold the argument, or the library says
// so.
struct Misuse : std::runtime_error {
  using std::runtime_error::runtime_error;
};

std::string to_bytes(const Json& form);      // of a key, or of a value of bytes
std::int64_t to_integer(const Json& form);   // of a string of digits
std::uint64_t to_version(const Json& form);  // the same, without a sign
client::Value to_value(const Json& form);
client::Expiry to_expiry(const Json& call);  // of the fields `ttl_us` and `expires_at_us` of a call
client::WatchPosition to_position(const Json& form);
// The fields `from` and `to` of a call.
std::pair<std::string, std::string> to_range(const Json& call);
// The fields `timeout_ms`, `encoding` and `detached` of a call.
client::CallOptions to_call_options(const Json& call);
// `forms` is the list `transactions` of a call.
client::Batch to_batch(const Json& forms);
// A field in milliseconds; `otherwise` if there is none.
std::uint64_t to_us(const Json& call, const char* field, std::uint64_t otherwise);

}  // namespace kilokv::conformance
