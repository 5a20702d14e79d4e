// Role: see client_certificates.hpp.
#include "server/service/client_certificates.hpp"

#include <grpc/grpc_security_constants.h>

#include <ctime>
#include <vector>

namespace kilokv::server {
namespace {

constexpr std::chrono::seconds kKept{1};
constexpr std::size_t kKnownMax = 4096;
constexpr std::size_t kSentBytesMax = std::size_t{4} << 20;

// The first value of a property; empty: there is none. The context holds the bytes.
std::string_view property(const grpc::AuthContext& context, const char* name) {
  const std::vector<grpc::string_ref> values = context.FindPropertyValues(name);
  return values.empty() ? std::string_view() : std::string_view(values.front().data(), values.front().size());
}

}  // namespace

std::string ClientCertificates::check(const std::shared_ptr<const tls::Trust>& trust, std::string_view own,
                                      std::string_view others, Time now) {
  return look(trust, own, others, now).problem;
}

// On a server, the chain does not begin with the client's own certificate. A client chooses all of the chain.
std::string ClientCertificates::check(const std::shared_ptr<const tls::Trust>& trust, const grpc::AuthContext& peer,
                                      Time now) {
  return check(trust, property(peer, GRPC_X509_PEM_CERT_PROPERTY_NAME),
               property(peer, GRPC_X509_PEM_CERT_CHAIN_PROPERTY_NAME), now);
}

std::string ClientCertificates::check_again(const std::shared_ptr<const tls::Trust>& trust, ClientCertificate* shown,
                                            Time now) {
  if (shown->trust_ == trust && std::time(nullptr) < shown->good_until_) return {};
  Known known = look(trust, property(*shown->peer_, GRPC_X509_PEM_CERT_PROPERTY_NAME),
                     property(*shown->peer_, GRPC_X509_PEM_CERT_CHAIN_PROPERTY_NAME), now);
  if (known.problem.empty()) {
    shown->trust_ = trust;
    shown->good_until_ = known.good_until;
  }
  return std::move(known.problem);
}

ClientCertificates::Known ClientCertificates::look(const std::shared_ptr<const tls::Trust>& trust, std::string_view own,
                                                   std::string_view others, Time now) {
  if (own.empty()) {
    return {.problem =
                "the client has shown no certificate, and this server needs one: give the client a certificate "
                "and its key (--tls-cert, --tls-key)",
            .until = now};
  }
  const std::string before = others.empty() ? sent_before(own) : std::string();
  if (others.empty()) others = before;
  // The first of them is always the client's own. So no other list of certificates gives the same text.
  const tls::Sha256 key = tls::sha256({own, others});
  {
    const std::lock_guard lock(mutex_);
    if (trust_ != trust || known_.size() > kKnownMax) known_.clear();
    trust_ = trust;
    const auto found = known_.find(key);
    if (found != known_.end() && now < found->second.until) return found->second;
  }
  Known known{.until = now + kKept};
  known.problem = trust->check(own, others, tls::Peer::client, {}, &known.good_until);
  if (!known.problem.empty()) {
    known.problem = "the server does not accept the certificate of the client: " + known.problem;
  }
  const std::lock_guard lock(mutex_);
  std::erase_if(known_, [now](const auto& entry) { return now >= entry.second.until; });
  if (trust_ == trust) known_[key] = known;
  if (known.problem.empty() && !others.empty()) remember(own, others);
  return known;
}

std::string ClientCertificates::sent_before(std::string_view own) {
  const tls::Sha256 key = tls::sha256({own});
  const std::lock_guard lock(mutex_);
  const auto found = sent_.find(key);
  return found == sent_.end() ? std::string() : found->second;
}

// Only accepted clients get here, and each has one entry. If they are too many, those who resume are refused until they
// make a whole handshake again.
void ClientCertificates::remember(std::string_view own, std::string_view others) {
  if (sent_bytes_ > kSentBytesMax) {
    sent_.clear();
    sent_bytes_ = 0;
  }
  std::string& sent = sent_[tls::sha256({own})];
  sent_bytes_ += others.size() - sent.size();
  sent = others;
}

}  // namespace kilokv::server
