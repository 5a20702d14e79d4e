// Role: see position_claim.hpp.
#include "client/cli/bulk/position_claim.hpp"

#include <variant>

#include "client/cli/output.hpp"

namespace kilokv::client {
namespace {

// Each attempt fails only if the position has moved meanwhile, because requests of an earlier run are still on their
// way.
constexpr int kAttemptsMax = 1000;

Error refusal(const std::string& key, const std::string& problem) {
  Error error;
  error.code = ErrorCode::failed_precondition;
  error.message = "the position key " + key_text(key) + " " + problem;
  return error;
}

std::string option_text(const PositionOptions& options) {
  return options.records + " with --existing " + options.existing;
}

// The position in the value that the key has. Empty: the key is absent.
Expected<std::optional<Position>> position_in(const std::string& key, const ValueView& value,
                                              const PositionOptions& options) {
  if (std::holds_alternative<std::monostate>(value)) return std::optional<Position>();
  const auto* bytes = std::get_if<std::string_view>(&value);
  auto position = bytes != nullptr ? parse_position(*bytes) : std::nullopt;
  if (!position) return refusal(key, "holds a value that is no position; name another key");
  if (option_text(position->options) != option_text(options)) {
    return refusal(key, "is that of an import of " + option_text(position->options) + ", and this is one of " +
                            option_text(options) + "; use the same flags, or another key");
  }
  return position;
}

}  // namespace

Expected<std::optional<Position>> read_position(Client* client, const std::string& key,
                                                const PositionOptions& options) {
  const auto read = client->get({key});
  if (!read) return read.error();
  return position_in(key, read->read(0, 0).value, options);
}

Expected<std::optional<Position>> claim_position(Client* client, Session* session, const std::string& key,
                                                 const PositionOptions& options, const CallOptions& call) {
  for (int i = 0; i < kAttemptsMax; ++i) {
    const auto read = client->get({key});
    if (!read) return read.error();
    const ValueView value = read->read(0, 0).value;
    auto position = position_in(key, value, options);
    if (!position) return position.error();
    Batch batch;
    batch.begin();
    const Key at = batch.key(key);
    if (*position) {
      batch.guard_bytes(at, std::get<std::string_view>(value));
      batch.put(at, position_text(**position, options.run));
      (*position)->options.run = options.run;
    } else {
      batch.guard_absent(at);
      batch.put(at, position_text(options, InputPlace{}));
    }
    batch.end();
    const auto written = session->execute(batch, call);
    if (!written) return written.error();
    if (written->results.outcome(0) == Outcome::committed) return position;
  }
  return refusal(key, "changes all the time: another import uses it");
}

}  // namespace kilokv::client
