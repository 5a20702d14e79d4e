// Role: see client_certificates.hpp.
#include "server/service/client_certificates.hpp"

namespace kilokv::server {
namespace {

constexpr std::chrono::seconds kKept{1};
constexpr std::size_t kKnownMax = 4096;

}  // namespace

std::string ClientCertificates::check(const std::shared_ptr<const tls::Trust>& trust, std::string_view own,
                                      std::string_view others, Time now) {
  if (own.empty()) {
    return "the client has shown no certificate, and this server needs one: give the client a certificate and its key "
           "(--tls-cert, --tls-key)";
  }
  // The first of them is always the client's own. So no other list of certificates gives the same text.
  const std::string key = std::string(own) + std::string(others);
  {
    const std::lock_guard lock(mutex_);
    if (trust_ != trust || known_.size() > kKnownMax) known_.clear();
    trust_ = trust;
    const auto found = known_.find(key);
    if (found != known_.end() && now < found->second.until) return found->second.problem;
  }
  std::string problem = trust->check(own, others, tls::Peer::client);
  if (!problem.empty()) problem = "the server does not accept the certificate of the client: " + problem;
  const std::lock_guard lock(mutex_);
  if (trust_ == trust) known_[key] = {problem, now + kKept};
  return problem;
}

}  // namespace kilokv::server
