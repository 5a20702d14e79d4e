#include "server/service/refusal_log.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <string>

#include "kilokv/v1/kilokv.pb.h"
#include "server/core/one_line.hpp"
#include "server/service/status_map.hpp"

namespace kilokv::server {
namespace {

// Whether the message may quote a key, or the bounds of a range.
bool may_name_keys(ErrorReason reason) {
  return reason == ErrorReason::right_missing || reason == ErrorReason::access_unknown ||
         reason == ErrorReason::access_overlaps;
}

spdlog::level::level_enum level_of(StatusCode code) {
  if (code == StatusCode::internal || code == StatusCode::data_loss) return spdlog::level::err;
  return code == StatusCode::resource_exhausted ? spdlog::level::warn : spdlog::level::info;
}

std::string reason_name(const Status& status) {
  constexpr std::size_t kPrefix = sizeof "ERROR_REASON_" - 1;
  v1::Error error;
  fill_error(status, &error);
  return v1::ErrorReason_Name(error.detail().reason()).substr(kPrefix);
}

// The fields of a line after its counts.
std::string details(const Status& status, const Client& client) {
  std::string text = " last_client=\"" + one_line(client.name) + '"';
  if (!may_name_keys(status.reason())) return text + " error=\"" + one_line(status.message()) + '"';
  const Violation* const violation = status.violation();
  return violation == nullptr ? text : text + " field=\"" + one_line(violation->field) + '"';
}

}  // namespace

bool is_refused_status_call(const Status& status) {
  const Violation* const violation = status.violation();
  return status.reason() == ErrorReason::right_missing && violation != nullptr && violation->field == "Status";
}

// What stops a client from being served by its own fault, or because it lacks a login, has its own lines.
void RefusalLog::refused(const Status& status, const Client& client) {
  const ErrorReason reason = status.reason();
  if (reason == ErrorReason::login_missing || reason == ErrorReason::login_wrong) return;
  Kind& kind = kinds_[std::min(static_cast<std::size_t>(reason), kReasonsMax - 1)];
  const std::uint64_t times = kind.count();
  const bool tells_each = spdlog::should_log(spdlog::level::debug);
  if (times == 0 && !tells_each) return;
  const char* const what =
      reason == ErrorReason::slow_reader ? "cut off clients that do not take their answers" : "refused requests";
  if (times != 0) {
    spdlog::log(level_of(status.code()), "kilokvd {} reason={} code={} times={}{}", what, reason_name(status),
                to_string(status.code()), times, details(status, client));
  } else {
    spdlog::debug("kilokvd refused a request reason={} code={}{}", reason_name(status), to_string(status.code()),
                  details(status, client));
  }
}

void RefusalLog::note_timeout(const Client& client) {
  if (const std::uint64_t times = timeouts_.count()) {
    spdlog::warn(
        "kilokvd cut off calls whose clients did not take an answer, or did not send a message, in time times={} "
        "last_client=\"{}\" hint=\"--answer-timeout, --handshake-timeout\"",
        times, one_line(client.name));
  }
}

}  // namespace kilokv::server
