#include "engine/base/status.hpp"

namespace kilokv {
namespace {

// Says whether to raise or to lower the setting of a limit that was reached: raise a maximum, lower a reserve.
std::string direction(const std::string& setting) {
  if (setting.ends_with("-max") || setting.ends_with("-limit")) return "raise ";
  return setting.ends_with("-reserve") ? "lower " : "";
}

std::string describe(const Violation& v, const std::string& turn = {}) {
  std::string text = v.field;
  if (!v.actual.empty()) text += " is " + v.actual;
  if (!v.limit.empty()) text += (v.actual.empty() ? ": " : "; ") + std::string("the limit is ") + v.limit;
  const bool is_said = v.setting == v.field && turn.empty();
  if (!v.setting.empty() && !is_said) text += " (" + turn + v.setting + ")";
  return text;
}

}  // namespace

Status Status::invalid(Violation violation) {
  Status status(StatusCode::invalid_argument, describe(violation));
  auto rep = std::make_shared<Rep>(*status.rep_);
  rep->violation = std::move(violation);
  status.rep_ = std::move(rep);
  return status;
}

Status Status::exhausted(ErrorReason reason, Violation violation, std::optional<std::int64_t> retry_after_us) {
  Status status(StatusCode::resource_exhausted, reason, describe(violation, direction(violation.setting)));
  auto rep = std::make_shared<Rep>(*status.rep_);
  rep->violation = std::move(violation);
  rep->retry_after_us = retry_after_us;
  status.rep_ = std::move(rep);
  return status;
}

Status Status::violating(StatusCode code, ErrorReason reason, std::string message, Violation violation) {
  Status status(code, reason, std::move(message));
  auto rep = std::make_shared<Rep>(*status.rep_);
  rep->violation = std::move(violation);
  status.rep_ = std::move(rep);
  return status;
}

Status Status::because(ErrorReason reason) const {
  Status status = *this;
  auto rep = std::make_shared<Rep>(*rep_);
  rep->reason = reason;
  status.rep_ = std::move(rep);
  return status;
}

Status Status::as_not_run() const {
  Status status = *this;
  auto rep = std::make_shared<Rep>(*rep_);
  rep->not_run = true;
  status.rep_ = std::move(rep);
  return status;
}

const std::string& Status::message() const {
  static const std::string empty;
  return rep_ ? rep_->message : empty;
}

const char* to_string(StatusCode code) {
  switch (code) {
    case StatusCode::ok: return "OK";
    case StatusCode::cancelled: return "CANCELLED";
    case StatusCode::invalid_argument: return "INVALID_ARGUMENT";
    case StatusCode::deadline_exceeded: return "DEADLINE_EXCEEDED";
    case StatusCode::not_found: return "NOT_FOUND";
    case StatusCode::permission_denied: return "PERMISSION_DENIED";
    case StatusCode::resource_exhausted: return "RESOURCE_EXHAUSTED";
    case StatusCode::failed_precondition: return "FAILED_PRECONDITION";
    case StatusCode::aborted: return "ABORTED";
    case StatusCode::unimplemented: return "UNIMPLEMENTED";
    case StatusCode::internal: return "INTERNAL";
    case StatusCode::unavailable: return "UNAVAILABLE";
    case StatusCode::data_loss: return "DATA_LOSS";
    case StatusCode::unauthenticated: return "UNAUTHENTICATED";
  }
  return "UNKNOWN";
}

}  // namespace kilokv
