// The errors between a client and the server. Outcomes of transactions are not errors (results.hpp).
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>

namespace kilokv::client {

enum class ErrorCode : std::uint8_t {
  none,
  cancelled,          // the caller cancelled the call
  invalid_argument,   // field, limit, actual and setting say what is wrong
  deadline_exceeded,  // the deadline passed; in a session, send again to learn the results
  not_found,
  permission_denied,
  resource_exhausted,   // the server stayed full until the deadline, or says that waiting does not help
  failed_precondition,  // for example an unknown or expired session, or an acknowledged number
  aborted,              // the snapshot is too old
  unimplemented,
  internal,
  unavailable,  // no server, or a server that starts or drains; without a session the outcome is unknown
  data_loss,
  unauthenticated,
  unknown,
};

// The name that gRPC uses, such as INVALID_ARGUMENT.
const char* to_string(ErrorCode code);

struct Error {
  ErrorCode code = ErrorCode::none;
  std::string message;
  std::string field, limit, actual, setting;  // as the server named them; empty: it did not
  std::uint64_t retry_after_us = 0;           // as the server named it; 0: waiting does not help, or it is not known
  std::string reason;                         // as the server named it, such as QUEUE_FULL; empty: it did not
  // Nothing of the request ran or will run: the server said so of each sending, or the request was never sent.
  bool not_run = false;
  // The request was sent more than once, or its stream ended, or its client lost its login or its rights meanwhile, and
  // a sending may have run. Then not_run is false, because a refusal is about its own sending only.
  bool may_have_run = false;
  std::uint64_t request = 0;   // the number of the request in its session, for resume(); 0: it has none
  std::uint32_t attempts = 0;  // how often the request with this number was sent
  explicit operator bool() const { return code != ErrorCode::none; }
};

// Whether the request that ended with `error` was refused each time that it was sent. If true, its transactions without
// an answer did not run. If false, it is unknown whether they ran.
bool never_ran(const Error& error);

// A value or an Error. Nothing in the library throws.
template <class T>
class [[nodiscard]] Expected {
 public:
  Expected(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Expected(Error error) : state_(std::in_place_index<1>, std::move(error)) {}
  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }
  T& value() { return std::get<0>(state_); }
  const T& value() const { return std::get<0>(state_); }
  T& operator*() { return value(); }
  const T& operator*() const { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  Error error() const { return ok() ? Error{} : std::get<1>(state_); }

 private:
  std::variant<T, Error> state_;
};

}  // namespace kilokv::client
