// Output of kilokv (output.hpp).
#include "client/cli/output.hpp"

#include <absl/strings/escaping.h>

#include <ctime>
#include <iostream>

#include "client/command_line/arguments.hpp"
#include "client/command_line/error_report.hpp"
#include "kilokv/history.hpp"

namespace kilokv::client {
namespace {

// The value of --timeout as report() tells it.
std::string& timeout_text() {
  static std::string text;
  return text;
}

std::string escape(std::string_view bytes) { return absl::CHexEscape(absl::string_view(bytes.data(), bytes.size())); }

}  // namespace

std::string value_text(const ValueView& value) {
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return std::to_string(*integer);
  if (const auto* bytes = std::get_if<std::string_view>(&value))
    return std::string("\"").append(escape(*bytes)).append("\"");
  return "(absent)";
}

std::string key_text(std::string_view key) { return escape(key); }

std::string read_json(std::string_view key, const ValueView& value, std::optional<std::uint64_t> version,
                      std::int64_t expires_at_us) {
  std::string out = "{\"key\": ";
  append_history_key(key, &out);
  out.append(", \"value\": ");
  if (const auto* bytes = std::get_if<std::string_view>(&value)) {
    append_history_bytes(*bytes, &out);
  } else if (const auto* integer = std::get_if<std::int64_t>(&value)) {
    out.append(std::to_string(*integer));
  } else {
    out.append("null");
  }
  out.append(", \"version\": ").append(version ? std::to_string(*version) : "null");
  if (expires_at_us != 0) out.append(", \"expires_at_us\": ").append(std::to_string(expires_at_us));
  return out.append("}");
}

ValueView view_of(const Pair& pair) {
  if (const auto* integer = std::get_if<std::int64_t>(&pair.value)) return *integer;
  return std::string_view(std::get<std::string>(pair.value));
}

std::string utc_text(std::int64_t unix_us, int decimals) {
  constexpr std::int64_t kSecond = 1'000'000;
  const auto seconds = static_cast<std::time_t>(unix_us / kSecond);
  std::tm parts{};
  char text[32] = {};
  if (::gmtime_r(&seconds, &parts) == nullptr) return "?";
  std::string utc(text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts));
  utc += '.';
  utc.append(std::to_string(kSecond + unix_us % kSecond), 1, static_cast<std::size_t>(decimals));
  return utc + 'Z';
}

void tell_timeouts(const ClientOptions& server, std::uint64_t timeout_us) {
  const auto text = [](std::uint64_t us) { return format_duration(static_cast<std::int64_t>(us)); };
  timeout_text() = text(timeout_us);
  if (server.wait_for_server_us != 0) timeout_text() += ", and --wait " + text(server.wait_for_server_us);
}

ExitCode report(const Error& error) {
  const ExitCode code = report_error("kilokv", "--timeout", error, timeout_text());
  if (error.reason == "SESSION_UNKNOWN" || error.reason == "SESSION_FROZEN" || error.reason == "NUMBER_ACKNOWLEDGED") {
    std::cerr << "  hint: run the command again: it opens a new session\n";
  }
  return code;
}

ExitCode report(const ResultView& result) {
  std::cerr << "kilokv: not committed: " << to_string(result.outcome);
  if (result.failed_in != FailedIn::none) {
    constexpr const char* kLists[] = {"", "guard", "then-operation", "else-operation"};
    std::cerr << " at " << kLists[static_cast<int>(result.failed_in)] << ' ' << result.failed_index;
  }
  if (result.guard_value) {
    std::cerr << ": " << key_text(result.guard_value->key) << " is " << value_text(result.guard_value->value);
  }
  std::cerr << '\n';
  return ExitCode::not_done;
}

}  // namespace kilokv::client
