// How a key stands in a line of the log. Keys are data, and a log is often read by people, and stored in places, that
// may not see the data (--log-keys).
//
// The hash of a key is keyed with the secret of the database, so nobody without the secret can try keys until one fits.
// The same key always has the same hash in one database, so lines about it can be found.
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "engine/base/key_hash.hpp"

namespace kilokv::server {

enum class LogKeys : std::uint8_t { full, hash, none };

// `name`: full, hash or none. Empty: another text.
std::optional<LogKeys> parse_log_keys(std::string_view name);

// Such as #0123456789abcdef: the half of the 128 bits that places no key.
std::string key_hash_text(std::string_view key, const engine::KeyHashSecret& secret);

// A field of a line with a blank before it, such as ` key="account/7"`, ` key=#0123456789abcdef`, or nothing.
std::string shown_key(const char* field, std::string_view key, LogKeys how, const engine::KeyHashSecret& secret);

}  // namespace kilokv::server
