// Whom a server or a client trusts: certificates of authorities, and their revocation lists. It checks the certificate
// of a peer, and says in plain words why it is not accepted.
//
// gRPC reports every bad certificate with the same words. So both sides let gRPC accept any certificate, and check it
// here. gRPC still makes sure that the peer has the key of its certificate.
//
// Thread safety: check() is const, and any thread may call it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace kilokv::tls {

enum class Peer { server, client };

class Trust {
 public:
  // `authorities_file`: certificates in PEM form; empty: those of the system. `shown_as` names them in the texts of
  // check(). If `revocation_dir` is not empty, each file in it holds revocation lists in PEM form, and every authority
  // of a chain must have one. Returns what is wrong; empty: nothing.
  static std::string read(const std::string& authorities_file, const std::string& shown_as,
                          const std::string& revocation_dir, std::shared_ptr<const Trust>* trust);
  ~Trust();
  Trust(const Trust&) = delete;
  Trust& operator=(const Trust&) = delete;

  // Says why the peer's certificate is not accepted, such as "it expired on 2026-01-31T12:00:00Z". Empty: it is
  // accepted. `own`: the peer's certificate in PEM form; the peer has its key. `others`: the certificates that the peer
  // has sent with it. They may be anybody's: they only help to find the issuers. `name`: the host name or the IP
  // address that the certificate of a server must have; not used for a client. `good_until`, if not null, gets the
  // seconds since 1970 until which no clock changes the answer of an accepted certificate.
  std::string check(std::string_view own, std::string_view others, Peer peer, const std::string& name = {},
                    std::int64_t* good_until = nullptr) const;

  const std::string& authorities() const { return authorities_; }  // PEM; empty: those of the system
  const std::string& warning() const { return warning_; }          // about a revocation list that is too old

 private:
  struct Lists;
  Trust();
  std::string read_lists(const std::string& folder);

  std::unique_ptr<Lists> lists_;
  std::string authorities_, shown_as_, warning_;
};

}  // namespace kilokv::tls
