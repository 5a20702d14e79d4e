// Checks the certificates of clients, for each call. A result is kept for a second, so that calls in quick succession
// cost one check.
// Thread safety: any thread.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "tls/trust.hpp"

namespace kilokv::server {

class ClientCertificates {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // Says why a call is refused, in words for the client. Empty: the call may run. `own`: the client's certificate in
  // PEM form; empty: it has shown none. `others`: those that it has sent with it.
  std::string check(const std::shared_ptr<const tls::Trust>& trust, std::string_view own, std::string_view others,
                    Time now);

 private:
  struct Known {
    std::string problem;
    Time until;
  };

  std::mutex mutex_;                              // of these:
  std::shared_ptr<const tls::Trust> trust_;       // the results are for this one
  std::unordered_map<std::string, Known> known_;  // by all certificates
};

}  // namespace kilokv::server
