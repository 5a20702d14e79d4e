#include "server/service/status_map.hpp"

#include <cstdlib>

#include "server/core/hex.hpp"

namespace kilokv::server {
namespace {

constexpr char kErrorDetailKey[] = "kilokv-error-bin";

}  // namespace

v1::ErrorReason to_proto_reason(ErrorReason reason) {
  switch (reason) {
    case ErrorReason::unspecified: return v1::ERROR_REASON_UNSPECIFIED;
    case ErrorReason::malformed_message: return v1::ERROR_REASON_MALFORMED_MESSAGE;
    case ErrorReason::unknown_field: return v1::ERROR_REASON_UNKNOWN_FIELD;
    case ErrorReason::missing_field: return v1::ERROR_REASON_MISSING_FIELD;
    case ErrorReason::not_allowed: return v1::ERROR_REASON_NOT_ALLOWED;
    case ErrorReason::out_of_range: return v1::ERROR_REASON_OUT_OF_RANGE;
    case ErrorReason::message_too_large: return v1::ERROR_REASON_MESSAGE_TOO_LARGE;
    case ErrorReason::answer_too_large: return v1::ERROR_REASON_ANSWER_TOO_LARGE;
    case ErrorReason::content_differs: return v1::ERROR_REASON_CONTENT_DIFFERS;
    case ErrorReason::unknown_method: return v1::ERROR_REASON_UNKNOWN_METHOD;
    case ErrorReason::queue_full: return v1::ERROR_REASON_QUEUE_FULL;
    case ErrorReason::parked_full: return v1::ERROR_REASON_PARKED_FULL;
    case ErrorReason::session_full: return v1::ERROR_REASON_SESSION_FULL;
    case ErrorReason::sessions_full: return v1::ERROR_REASON_SESSIONS_FULL;
    case ErrorReason::uploads_full: return v1::ERROR_REASON_UPLOADS_FULL;
    case ErrorReason::table_full: return v1::ERROR_REASON_TABLE_FULL;
    case ErrorReason::disk_full: return v1::ERROR_REASON_DISK_FULL;
    case ErrorReason::archive_late: return v1::ERROR_REASON_ARCHIVE_LATE;
    case ErrorReason::memory_full: return v1::ERROR_REASON_MEMORY_FULL;
    case ErrorReason::calls_full: return v1::ERROR_REASON_CALLS_FULL;
    case ErrorReason::scans_full: return v1::ERROR_REASON_SCANS_FULL;
    case ErrorReason::slow_reader: return v1::ERROR_REASON_SLOW_READER;
    case ErrorReason::session_unknown: return v1::ERROR_REASON_SESSION_UNKNOWN;
    case ErrorReason::session_fenced: return v1::ERROR_REASON_SESSION_FENCED;
    case ErrorReason::session_frozen: return v1::ERROR_REASON_SESSION_FROZEN;
    case ErrorReason::read_only: return v1::ERROR_REASON_READ_ONLY;
    case ErrorReason::number_acknowledged: return v1::ERROR_REASON_NUMBER_ACKNOWLEDGED;
    case ErrorReason::upload_missing: return v1::ERROR_REASON_UPLOAD_MISSING;
    case ErrorReason::snapshot_too_old: return v1::ERROR_REASON_SNAPSHOT_TOO_OLD;
    case ErrorReason::watch_too_old: return v1::ERROR_REASON_WATCH_TOO_OLD;
    case ErrorReason::recovering: return v1::ERROR_REASON_RECOVERING;
    case ErrorReason::draining: return v1::ERROR_REASON_DRAINING;
    case ErrorReason::cancelled: return v1::ERROR_REASON_CANCELLED;
    case ErrorReason::failed: return v1::ERROR_REASON_FAILED;
    case ErrorReason::corrupt: return v1::ERROR_REASON_CORRUPT;
    case ErrorReason::login_missing: return v1::ERROR_REASON_LOGIN_MISSING;
    case ErrorReason::login_wrong: return v1::ERROR_REASON_LOGIN_WRONG;
    case ErrorReason::right_missing: return v1::ERROR_REASON_RIGHT_MISSING;
    case ErrorReason::access_unknown: return v1::ERROR_REASON_ACCESS_UNKNOWN;
    case ErrorReason::access_full: return v1::ERROR_REASON_ACCESS_FULL;
    case ErrorReason::access_needs_admin: return v1::ERROR_REASON_ACCESS_NEEDS_ADMIN;
    case ErrorReason::access_overlaps: return v1::ERROR_REASON_ACCESS_OVERLAPS;
  }
  std::abort();  // not a value of the enum
}

namespace {

// Protobuf takes only texts in UTF-8. A text here may quote bytes of a key.
std::string in_ascii(const std::string& text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80) {
      out += c;
    } else {
      out += "\\x";
      append_hex(byte, &out);
    }
  }
  return out;
}

v1::ErrorDetail detail_of(const Status& status) {
  v1::ErrorDetail detail;
  detail.set_reason(to_proto_reason(status.reason()));
  if (const Violation* violation = status.violation()) {
    detail.set_field(in_ascii(violation->field));
    detail.set_limit(in_ascii(violation->limit));
    detail.set_actual(in_ascii(violation->actual));
    detail.set_setting(in_ascii(violation->setting));
  }
  if (const auto retry_after_us = status.retry_after_us()) {
    detail.set_retry_after_us(static_cast<std::uint64_t>(*retry_after_us));
  }
  detail.set_not_run(status.not_run());
  return detail;
}

}  // namespace

grpc::StatusCode to_grpc_code(StatusCode code) {
  switch (code) {
    case StatusCode::ok: return grpc::StatusCode::OK;
    case StatusCode::cancelled: return grpc::StatusCode::CANCELLED;
    case StatusCode::invalid_argument: return grpc::StatusCode::INVALID_ARGUMENT;
    case StatusCode::deadline_exceeded: return grpc::StatusCode::DEADLINE_EXCEEDED;
    case StatusCode::not_found: return grpc::StatusCode::NOT_FOUND;
    case StatusCode::permission_denied: return grpc::StatusCode::PERMISSION_DENIED;
    case StatusCode::resource_exhausted: return grpc::StatusCode::RESOURCE_EXHAUSTED;
    case StatusCode::failed_precondition: return grpc::StatusCode::FAILED_PRECONDITION;
    case StatusCode::aborted: return grpc::StatusCode::ABORTED;
    case StatusCode::unimplemented: return grpc::StatusCode::UNIMPLEMENTED;
    case StatusCode::internal: return grpc::StatusCode::INTERNAL;
    case StatusCode::unavailable: return grpc::StatusCode::UNAVAILABLE;
    case StatusCode::data_loss: return grpc::StatusCode::DATA_LOSS;
    case StatusCode::unauthenticated: return grpc::StatusCode::UNAUTHENTICATED;
  }
  std::abort();  // not a value of the enum
}

StatusCode from_grpc_code(grpc::StatusCode code) {
  for (auto value = static_cast<int>(StatusCode::ok); value <= static_cast<int>(StatusCode::unauthenticated); ++value) {
    if (to_grpc_code(static_cast<StatusCode>(value)) == code) return static_cast<StatusCode>(value);
  }
  return StatusCode::internal;
}

v1::ErrorDetail detail_of(const grpc::ClientContext& context) {
  v1::ErrorDetail detail;
  const auto& trailing = context.GetServerTrailingMetadata();
  if (const auto found = trailing.find(kErrorDetailKey); found != trailing.end()) {
    detail.ParseFromArray(found->second.data(), static_cast<int>(found->second.size()));
  }
  return detail;
}

grpc::Status to_grpc(const Status& status, grpc::ServerContextBase* context) {
  if (status.ok()) return grpc::Status::OK;
  context->AddTrailingMetadata(kErrorDetailKey, detail_of(status).SerializeAsString());
  return grpc::Status(to_grpc_code(status.code()), in_ascii(status.message()));
}

void fill_error(const Status& status, v1::Error* error) {
  error->set_code(static_cast<std::uint32_t>(to_grpc_code(status.code())));
  error->set_message(in_ascii(status.message()));
  *error->mutable_detail() = detail_of(status);
}

}  // namespace kilokv::server
