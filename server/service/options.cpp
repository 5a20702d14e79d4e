#include "server/service/options.hpp"

#include <string>
#include <utility>

#include "server/core/unit_text.hpp"

namespace kilokv::server {
namespace {

enum class Unit : bool { count, size };

Status check_range(const char* setting, std::uint64_t actual, std::uint64_t min, std::uint64_t max, Unit unit) {
  if (actual >= min && actual <= max) return {};
  const auto text = [unit](std::uint64_t value) {
    return unit == Unit::size ? format_size(value) : std::to_string(value);
  };
  return Status::invalid(
      {.field = setting, .limit = text(min) + " to " + text(max), .actual = text(actual), .setting = setting});
}

}  // namespace

Status TlsOptions::validate() const {
  const auto needs = [](const char* given, const char* missing, const char* why) {
    return Status(StatusCode::invalid_argument, std::string(given) + " needs " + missing + ", " + why);
  };
  if (!cert_file.empty() && key_file.empty()) return needs("--tls-cert", "--tls-key", "the key of the certificate");
  if (!key_file.empty() && cert_file.empty()) return needs("--tls-key", "--tls-cert", "the certificate of the key");
  if (!client_ca_file.empty() && cert_file.empty()) {
    return needs("--tls-client-ca", "--tls-cert", "because a client shows its certificate only over TLS");
  }
  if (!crl_dir.empty() && client_ca_file.empty()) {
    return needs("--tls-crl-dir", "--tls-client-ca", "the authorities whose certificates can be revoked");
  }
  return {};
}

Status ServiceOptions::validate() const {
  // gRPC measures messages with an int, and accepts messages of up to kMessageSlack times this length.
  constexpr std::uint64_t kMessageBytesMax = std::uint64_t{64} << 20;
  struct Setting {
    const char* name;
    std::uint64_t value, min, max;
    Unit unit = Unit::count;
  };
  for (const Setting& setting :
       {Setting{"--message-bytes-max", message_bytes_max, 1024, kMessageBytesMax, Unit::size},
        {"--grpc-memory-max", grpc_memory_max, 1 << 20, std::uint64_t{1} << 40, Unit::size},
        {"--streams-max", streams_max, 1, 1u << 24},
        {"--stream-requests-max", stream_requests_max, 1, 1u << 20},
        {"--stream-bytes-max", stream_bytes_max, 1024, std::uint64_t{1} << 40, Unit::size},
        {"--stream-answer-bytes-max", stream_answer_bytes_max, 1 << 20, std::uint64_t{1} << 40, Unit::size},
        {"--calls-bytes-max", calls_bytes_max, 1 << 20, std::uint64_t{1} << 40, Unit::size},
        {"--answers-bytes-max", answers_bytes_max, 1 << 20, std::uint64_t{1} << 40, Unit::size},
        {"--backup-rate-max", backup_rate_max, std::uint64_t{64} << 10, std::uint64_t{1} << 40, Unit::size},
        {"--connections-max", connections_max, 1, 1u << 20},
        {"--connections-per-address-max", connections_per_address_max, 1, 1u << 20},
        {"--connection-cancels-max", connection_cancels_max, 64, 1u << 30},
        {"--connection-opens-max", connection_opens_max, 1, 1u << 30},
        {"--key-bytes-max", limits.key_bytes_max, 1, engine::kKeyBytesMax, Unit::size},
        {"--value-bytes-max", limits.value_bytes_max, 1, 1u << 30, Unit::size},
        {"--guards-max", limits.guards_max, 1, 1u << 20},
        {"--operations-max", limits.operations_max, 1, 1u << 20},
        {"--transaction-keys-max", limits.transaction_keys_max, 1, 1u << 20},
        {"--range-keys-max", limits.range_keys_max, 1, limits.transaction_keys_max},
        {"--request-transactions-max", limits.request_transactions_max, 1, 1u << 24}}) {
    Status status = check_range(setting.name, setting.value, setting.min, setting.max, setting.unit);
    if (!status.ok()) return status;
  }
  if (Status status = tls.validate(); !status.ok()) return status;
  // gRPC counts milliseconds with an int.
  constexpr DurationUs kDayUs = DurationUs{24} * 3600 * 1000000;
  for (const auto& [name, actual] :
       {std::pair{"--handshake-timeout", handshake_us_max}, std::pair{"--connection-idle-max", connection_idle_us_max},
        std::pair{"--answer-timeout", answer_us_max}, std::pair{"--backup-age-max", backup_age_us_max}}) {
    if (actual >= 100000 && actual <= kDayUs) continue;
    return Status::invalid(
        {.field = name, .limit = "100ms to 24h", .actual = format_duration(actual), .setting = name});
  }
  // It is added to stamps.
  constexpr DurationUs kLongestTtlUs = DurationUs{100} * 366 * kDayUs;
  if (limits.ttl_us_max < 1 || limits.ttl_us_max > kLongestTtlUs) {
    return Status::invalid({.field = "--ttl-max",
                            .limit = "1us to " + format_duration(kLongestTtlUs),
                            .actual = format_duration(limits.ttl_us_max),
                            .setting = "--ttl-max"});
  }
  // Each operation of a transaction can write a value of the largest length. All of them must fit into a log record.
  return check_range("--value-bytes-max x --operations-max",
                     std::uint64_t{limits.value_bytes_max} * limits.operations_max, 1, std::uint64_t{1} << 31,
                     Unit::size);
}

}  // namespace kilokv::server
