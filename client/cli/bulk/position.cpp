// Role: see position.hpp.
#include "client/cli/bulk/position.hpp"

#define XXH_STATIC_LINKING_ONLY  // for the definition of the state
#include <xxhash.h>

#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <random>

namespace kilokv::client {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kFormat = "kilokv-import-1";

std::string text_of(const PositionOptions& options, std::uint64_t line, std::uint64_t bytes,
                    const std::string& digest) {
  const Json fields = {{"format", kFormat},
                       {"records", options.records},
                       {"existing", options.existing},
                       {"line", line},
                       {"bytes", bytes},
                       {"digest", digest},
                       {"run", options.run}};
  return fields.dump();
}

std::string hexadecimal(std::uint64_t number) {
  std::array<char, 17> digits = {};
  static_cast<void>(std::snprintf(digits.data(), digits.size(), "%016llx", static_cast<unsigned long long>(number)));
  return digits.data();
}

}  // namespace

struct Digest::State {
  XXH3_state_t hash;
};

Digest::Digest() : state_(std::make_unique<State>()) { XXH3_128bits_reset(&state_->hash); }
Digest::Digest(const Digest& other) : state_(std::make_unique<State>(*other.state_)) {}
Digest& Digest::operator=(const Digest& other) {
  if (this != &other) *state_ = *other.state_;
  return *this;
}
Digest::~Digest() = default;

void Digest::add(std::string_view bytes) { XXH3_128bits_update(&state_->hash, bytes.data(), bytes.size()); }

std::string Digest::text() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(&state_->hash);
  return hexadecimal(hash.high64) + hexadecimal(hash.low64);
}

std::string position_text(const PositionOptions& options, const InputPlace& place) {
  return text_of(options, place.line, place.bytes, place.digest.text());
}

std::string position_text(const Position& position, const std::string& run) {
  PositionOptions options = position.options;
  options.run = run;
  return text_of(options, position.line, position.bytes, position.digest);
}

std::optional<Position> parse_position(std::string_view text) {
  const Json fields = Json::parse(text, nullptr, false);
  if (!fields.is_object()) return std::nullopt;
  const auto has_text = [&](const char* name) { return fields.contains(name) && fields[name].is_string(); };
  const auto has_number = [&](const char* name) { return fields.contains(name) && fields[name].is_number_unsigned(); };
  for (const char* name : {"format", "records", "existing", "digest", "run"}) {
    if (!has_text(name)) return std::nullopt;
  }
  if (!has_number("line") || !has_number("bytes") || fields["format"] != kFormat) return std::nullopt;
  Position position;
  position.options = {fields["records"], fields["existing"], fields["run"]};
  position.line = fields["line"];
  position.bytes = fields["bytes"];
  position.digest = fields["digest"];
  return position;
}

std::string new_run() {
  std::random_device device;
  std::uniform_int_distribution<std::uint64_t> any;
  return hexadecimal(any(device));
}

}  // namespace kilokv::client
