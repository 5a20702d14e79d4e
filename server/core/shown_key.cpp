#include "server/core/shown_key.hpp"

#include "server/core/one_line.hpp"

namespace kilokv::server {

std::optional<LogKeys> parse_log_keys(std::string_view name) {
  if (name == "full") return LogKeys::full;
  if (name == "hash") return LogKeys::hash;
  if (name == "none") return LogKeys::none;
  return {};
}

std::string key_hash_text(std::string_view key, const engine::KeyHashSecret& secret) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  // The other half says where the key is in the table (engine/table/record_table.hpp). Nobody may find keys that
  // collide.
  const std::uint64_t half = engine::hash_key(key, secret).low;
  std::string text(1, '#');
  for (int shift = 60; shift >= 0; shift -= 4) text += kDigits[half >> shift & 15];
  return text;
}

std::string shown_key(const char* field, std::string_view key, LogKeys how, const engine::KeyHashSecret& secret) {
  const std::string begin = std::string(" ") + field + '=';
  switch (how) {
    case LogKeys::full: return begin + '"' + one_line(key) + '"';
    case LogKeys::hash: return begin + key_hash_text(key, secret);
    case LogKeys::none: break;
  }
  return {};
}

}  // namespace kilokv::server
