// Handshakes in memory, with certificates whose names cannot be read.
#include "tls/certificate_guard.hpp"

#include <gtest/gtest.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>

#include <string>
#include <utility>

#include "tests/support/certificates.hpp"
#include "tls/openssl.hpp"

namespace kilokv::tls {
namespace {

using test::Identity;

using Context = std::unique_ptr<SSL_CTX, Free<SSL_CTX_free>>;
using Session = std::unique_ptr<SSL, Free<SSL_free>>;

// Takes any certificate, as gRPC does for us.
Context context_of(const Identity& own) {
  Context context(SSL_CTX_new(TLS_method()));
  const Certificate certificate(PEM_read_bio_X509(memory_bio(own.certificate()).get(), nullptr, nullptr, nullptr));
  const PrivateKey key(PEM_read_bio_PrivateKey(memory_bio(own.key()).get(), nullptr, nullptr, nullptr));
  EXPECT_EQ(SSL_CTX_use_certificate(context.get(), certificate.get()), 1);
  EXPECT_EQ(SSL_CTX_use_PrivateKey(context.get(), key.get()), 1);
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, [](int, X509_STORE_CTX*) { return 1; });
  return context;
}

// Whether both sides take each other.
bool handshake(const Identity& server, const Identity& client) {
  const Context of_server = context_of(server), of_client = context_of(client);
  const Session one(SSL_new(of_server.get())), other(SSL_new(of_client.get()));
  BIO *first = nullptr, *second = nullptr;
  BIO_new_bio_pair(&first, 0, &second, 0);
  SSL_set_bio(one.get(), first, first);
  SSL_set_bio(other.get(), second, second);
  SSL_set_accept_state(one.get());
  SSL_set_connect_state(other.get());
  int of_one = 0, of_other = 0;
  for (int i = 0; i < 20 && (of_one != 1 || of_other != 1); ++i) {
    of_other = SSL_do_handshake(other.get());
    of_one = SSL_do_handshake(one.get());
  }
  ERR_clear_error();
  return of_one == 1 && of_other == 1;
}

class CertificateGuardTest : public testing::Test {
 protected:
  CertificateGuardTest() { guard_handshakes(); }
  Identity good_{{.name = "good", .alternative_names = "DNS:localhost,IP:127.0.0.1,IP:::1,URI:a:b,email:a@b.example"}};
};

TEST_F(CertificateGuardTest, ANameThatCanBeReadIsNotLookedAt) {
  const Identity none({.name = ""}), other({.name = "x", .alternative_names = "otherName:1.2.3.4;UTF8:x,RID:1.2.3"});
  for (const Identity* client : {&std::as_const(good_), &none, &other}) EXPECT_TRUE(handshake(good_, *client));
}

TEST_F(CertificateGuardTest, ANameThatCannotBeReadEndsTheHandshake) {
  // IP addresses of 5 and of 0 bytes, the second one after a name that can be read.
  const Identity long_address({.name = "x", .alternative_names = "DER:30:07:87:05:01:02:03:04:05"});
  const Identity no_address({.name = "x", .alternative_names = "DER:30:05:82:01:61:87:00"});
  const Identity odd_name({.name = "abc", .is_name_unreadable = true});
  for (const Identity* bad : {&long_address, &no_address, &odd_name}) {
    EXPECT_FALSE(handshake(good_, *bad)) << "a client: " << bad->certificate();
    EXPECT_FALSE(handshake(*bad, good_)) << "a server: " << bad->certificate();
  }
}

}  // namespace
}  // namespace kilokv::tls
