// A Status reports a failure whose reason is outside of the program: input, disk, network or limits. The result of a
// transaction is an outcome, not a Status (txn/program.hpp). A broken invariant is a failed check (base/check.hpp). No
// exception leaves a module.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace kilokv {

// The meanings are those of the gRPC codes of the same names. service/ maps the codes one to one.
enum class StatusCode : std::uint8_t {
  ok,
  cancelled,
  invalid_argument,
  deadline_exceeded,
  not_found,
  permission_denied,
  resource_exhausted,
  failed_precondition,
  aborted,
  unimplemented,
  internal,
  unavailable,
  data_loss,
  unauthenticated,
};

// Why a request was refused, in a form that programs can read. ErrorReason in the proto says what each reason means.
// service/ maps the reasons one to one. `unspecified`: no client gets the status.
enum class ErrorReason : std::uint8_t {
  unspecified,
  malformed_message,
  unknown_field,
  missing_field,
  not_allowed,
  out_of_range,
  message_too_large,
  answer_too_large,
  content_differs,
  unknown_method,
  queue_full,
  parked_full,
  session_full,
  sessions_full,
  uploads_full,
  table_full,
  disk_full,
  archive_late,
  memory_full,
  calls_full,
  scans_full,
  slow_reader,
  session_unknown,
  session_fenced,
  session_frozen,
  read_only,
  number_acknowledged,
  upload_missing,
  snapshot_too_old,
  watch_too_old,
  recovering,
  draining,
  cancelled,
  failed,
  corrupt,
  login_missing,
  login_wrong,
  right_missing,
  access_unknown,
  access_full,
  access_needs_admin,
  access_overlaps,
};

// The reason that the code alone gives. `unspecified`: the code has several reasons.
constexpr ErrorReason usual_reason(StatusCode code) {
  switch (code) {
    case StatusCode::invalid_argument: return ErrorReason::out_of_range;
    case StatusCode::unimplemented: return ErrorReason::unknown_method;
    case StatusCode::cancelled: return ErrorReason::cancelled;
    case StatusCode::internal: return ErrorReason::failed;
    case StatusCode::data_loss: return ErrorReason::corrupt;
    case StatusCode::ok:
    case StatusCode::deadline_exceeded:
    case StatusCode::not_found:
    case StatusCode::permission_denied:
    case StatusCode::resource_exhausted:
    case StatusCode::failed_precondition:
    case StatusCode::aborted:
    case StatusCode::unavailable:
    case StatusCode::unauthenticated: return ErrorReason::unspecified;
  }
  return ErrorReason::unspecified;
}

// A code that has a usual reason. The conversion from another code does not compile. So nobody can forget the reason.
struct CodeWithReason {
  consteval CodeWithReason(StatusCode with_reason) : code(with_reason) {
    if (usual_reason(with_reason) == ErrorReason::unspecified) throw "this code needs an ErrorReason";
  }
  StatusCode code;
};

// Which input broke which limit, and which setting sets this limit. A string is empty if it does not apply.
struct Violation {
  std::string field;    // path of the field, such as transactions[3].guards[0].key
  std::string limit;    // with its unit, such as "1024 bytes"
  std::string actual;   // the actual value, with its unit
  std::string setting;  // the flag that sets the limit, such as --key-bytes-max
};

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(StatusCode code, ErrorReason reason, std::string message)
      : rep_(std::make_shared<Rep>(Rep{code, reason, std::move(message), {}, {}, false})) {}
  // With the usual reason of the code.
  Status(CodeWithReason code, std::string message) : Status(code.code, usual_reason(code.code), std::move(message)) {}

  // INVALID_ARGUMENT, with its usual reason. The message names each part of `violation` that is not empty. It names a
  // setting that is the field itself only once.
  static Status invalid(Violation violation);
  // RESOURCE_EXHAUSTED. A retry is worthwhile after the given delay, in microseconds. kNoRetry: waiting does not help,
  // and clients do not send again. The message says whether to raise or to lower the setting.
  static constexpr std::nullopt_t kNoRetry = std::nullopt;
  static Status exhausted(ErrorReason reason, Violation violation, std::optional<std::int64_t> retry_after_us);
  // Any other code with a violation, which the message does not name by itself.
  static Status violating(StatusCode code, ErrorReason reason, std::string message, Violation violation);
  // This status with another reason. Requires: !ok().
  Status because(ErrorReason reason) const;
  // This status with a promise: no part of the request has run, and no part will run. Requires: !ok().
  Status as_not_run() const;

  bool ok() const { return rep_ == nullptr; }
  StatusCode code() const { return rep_ ? rep_->code : StatusCode::ok; }
  ErrorReason reason() const { return rep_ ? rep_->reason : ErrorReason::unspecified; }
  const std::string& message() const;
  // Null, unless invalid(), exhausted() or violating() made this status.
  const Violation* violation() const { return rep_ && rep_->violation ? &*rep_->violation : nullptr; }
  std::optional<std::int64_t> retry_after_us() const { return rep_ ? rep_->retry_after_us : std::nullopt; }
  bool not_run() const { return rep_ && rep_->not_run; }

 private:
  struct Rep {
    StatusCode code;
    ErrorReason reason;
    std::string message;
    std::optional<Violation> violation;
    std::optional<std::int64_t> retry_after_us;
    bool not_run;
  };
  std::shared_ptr<const Rep> rep_;  // null: ok. So a success never allocates
};

// The name as gRPC writes it, such as INVALID_ARGUMENT.
const char* to_string(StatusCode code);

// A value, or the Status that says why there is no value.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Status status) : state_(std::in_place_index<1>, std::move(status)) {}

  bool ok() const { return state_.index() == 0; }
  const Status& status() const {
    static const Status fine;
    return ok() ? fine : std::get<1>(state_);
  }
  // All require: ok().
  T& value() { return std::get<0>(state_); }
  const T& value() const { return std::get<0>(state_); }
  T& operator*() { return value(); }
  const T& operator*() const { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

 private:
  std::variant<T, Status> state_;
};

}  // namespace kilokv
