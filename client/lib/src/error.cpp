// Errors (error.hpp).
#include "client/lib/src/error.hpp"

#include <array>
#include <cstddef>
#include <string>

namespace kilokv::client {
namespace {

constexpr const char* kDetailKey = "kilokv-error-bin";
constexpr const char* kMessageField = "message";  // as a whole

struct CodeName {
  ErrorCode code;
  const char* name;
};
// In the order of gRPC's codes, 0 to 16.
constexpr std::array<CodeName, 17> kCodes = {{{ErrorCode::none, "OK"},
                                              {ErrorCode::cancelled, "CANCELLED"},
                                              {ErrorCode::unknown, "UNKNOWN"},
                                              {ErrorCode::invalid_argument, "INVALID_ARGUMENT"},
                                              {ErrorCode::deadline_exceeded, "DEADLINE_EXCEEDED"},
                                              {ErrorCode::not_found, "NOT_FOUND"},
                                              {ErrorCode::unknown, "ALREADY_EXISTS"},
                                              {ErrorCode::permission_denied, "PERMISSION_DENIED"},
                                              {ErrorCode::resource_exhausted, "RESOURCE_EXHAUSTED"},
                                              {ErrorCode::failed_precondition, "FAILED_PRECONDITION"},
                                              {ErrorCode::aborted, "ABORTED"},
                                              {ErrorCode::invalid_argument, "OUT_OF_RANGE"},
                                              {ErrorCode::unimplemented, "UNIMPLEMENTED"},
                                              {ErrorCode::internal, "INTERNAL"},
                                              {ErrorCode::unavailable, "UNAVAILABLE"},
                                              {ErrorCode::data_loss, "DATA_LOSS"},
                                              {ErrorCode::unauthenticated, "UNAUTHENTICATED"}}};

// Explains a message that gRPC refused as too long, before the service saw it. gRPC says: "Received message larger than
// max (4194305 vs. 4194304)". Its code is RESOURCE_EXHAUSTED, although nothing is full, and to send again does not
// help.
void explain_too_large(Error* error) {
  constexpr std::string_view kWords = "Received message larger than max (";
  const std::size_t at = error->message.find(kWords);
  if (error->code != ErrorCode::resource_exhausted || at == std::string::npos) return;
  const std::string sizes = error->message.substr(at + kWords.size());
  const std::size_t middle = sizes.find(" vs. "), end = sizes.find(')');
  error->code = ErrorCode::invalid_argument;
  error->not_run = true;
  error->field = kMessageField;
  if (middle != std::string::npos && end != std::string::npos && middle < end) {
    error->actual = sizes.substr(0, middle) + " bytes";
    error->limit = sizes.substr(middle + 5, end - middle - 5) + " bytes (4 times the setting)";
  }
  error->setting = "--message-bytes-max";
  error->message = error->message.substr(0, at) + "the message is too large for the server: " + error->actual +
                   ", at most " + error->limit + "; send less at once, or raise " + error->setting;
}

std::string words(const grpc::Status& status) {
  const bool of_grpc = status.error_message().empty() || status.error_message() == "Deadline Exceeded";
  if (!of_grpc) return status.error_message();
  return status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED ? "no answer in time" : "refused without a reason";
}

void set_detail(const v1::ErrorDetail& detail, Error* error) {
  error->field = detail.field();
  error->limit = detail.limit();
  error->actual = detail.actual();
  error->setting = detail.setting();
  error->retry_after_us = detail.retry_after_us();
  // A newer server may send a reason that this client does not know. Then the name is empty.
  const std::string& reason = v1::ErrorReason_Name(detail.reason());
  if (detail.reason() != v1::ERROR_REASON_UNSPECIFIED && !reason.empty()) {
    error->reason = reason.substr(std::string_view("ERROR_REASON_").size());
  }
  error->not_run = detail.not_run();
  // With these two codes, the server can also end a call that runs, because its client may make no calls any more.
  const bool ends_calls = error->code == ErrorCode::permission_denied || error->code == ErrorCode::unauthenticated;
  if (ends_calls && !error->not_run) error->may_have_run = true;
}

}  // namespace

const char* to_string(ErrorCode code) {
  for (const CodeName& entry : kCodes) {
    if (entry.code == code) return entry.name;
  }
  return "UNKNOWN";
}

// The codes are those of docs/transactions.md, section 15.1, and of tests/judge/history.py. RESOURCE_EXHAUSTED alone is
// not enough: a stream that is cut for too many unsent answers ends with it, too, after its transactions ran.
// FAILED_PRECONDITION alone is not enough: a session that ends while a request runs gives it.
bool never_ran(const Error& error) {
  if (error.may_have_run) return false;
  if (error.not_run) return true;
  switch (error.code) {
    case ErrorCode::invalid_argument:
    case ErrorCode::permission_denied:
    case ErrorCode::unauthenticated:
    case ErrorCode::unimplemented: return true;
    default: return false;
  }
}

ErrorCode error_code(std::uint32_t grpc_code) {
  return grpc_code < kCodes.size() ? kCodes[grpc_code].code : ErrorCode::unknown;
}

Error make_error(ErrorCode code, std::string message) {
  Error error;
  error.code = code;
  error.message = std::move(message);
  return error;
}

Error without_promise(Error error) {
  error.not_run = false;
  error.may_have_run = true;
  return error;
}

Error of_many_sendings(Error error) {
  switch (error.code) {
    case ErrorCode::invalid_argument:
    case ErrorCode::resource_exhausted:
    case ErrorCode::failed_precondition:
    case ErrorCode::permission_denied:
    case ErrorCode::unauthenticated:
    case ErrorCode::unimplemented: error.message += kOtherSending; break;
    default: break;
  }
  return without_promise(std::move(error));
}

Error to_error(const grpc::Status& status, const grpc::ClientContext& context, std::string_view where) {
  Error error;
  error.code = error_code(static_cast<std::uint32_t>(status.error_code()));
  error.message = std::string(where) + ": " + words(status);
  const auto& metadata = context.GetServerTrailingMetadata();
  const auto found = metadata.find(kDetailKey);
  v1::ErrorDetail detail;
  if (found != metadata.end() && detail.ParseFromArray(found->second.data(), static_cast<int>(found->second.size()))) {
    set_detail(detail, &error);
  } else {
    explain_too_large(&error);
  }
  return error;
}

bool is_too_large_for_grpc(const Error& error) {
  return error.code == ErrorCode::invalid_argument && error.field == kMessageField;
}

Error to_error(const v1::Error& error) {
  Error out;
  out.code = error_code(error.code());
  if (out.code == ErrorCode::none) out.code = ErrorCode::unknown;
  out.message = error.message();
  set_detail(error.detail(), &out);
  return out;
}

}  // namespace kilokv::client
