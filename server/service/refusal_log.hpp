// Writes to the log that requests are refused, and that clients are cut off: the first of a kind at once, and then how
// many there were, at most one line in ten seconds for each kind. At the level debug, each has a line of its own.
//
// A kind is a reason of the protocol (ErrorReason). A message of an error that may quote a key is not written: keys are
// data. Refused logins have lines of their own (logins.hpp).
//
// Thread safety: all members. What is no refusal costs a comparison.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>

#include "engine/base/status.hpp"
#include "server/core/clients/client.hpp"
#include "server/service/rare_line.hpp"

namespace kilokv::server {

// Whether a call of Status was refused, because its user lacks the metrics right. The libraries of clients make this
// call first, to see whether the server is ready, and go on without an answer. So it counts for nothing. That includes
// a person who asks for the status and may not see it: nothing in the call tells the two apart.
bool is_refused_status_call(const Status& status);

class RefusalLog {
 public:
  static constexpr std::chrono::seconds kInterval{10};

  // A request, or a call, of this client ended with the status.
  void note(const Status& status, const Client& client) {
    if (!status.ok() && status.code() != StatusCode::cancelled) refused(status, client);
  }
  // A call was cancelled, because its client did not take its answer, or did not send its message, in time.
  void note_timeout(const Client& client);

 private:
  struct Kind : RareLine {
    Kind() : RareLine(kInterval) {}
  };
  static constexpr std::size_t kReasonsMax = 64;

  void refused(const Status& status, const Client& client);

  std::array<Kind, kReasonsMax> kinds_;  // by ErrorReason
  Kind timeouts_;
};

}  // namespace kilokv::server
