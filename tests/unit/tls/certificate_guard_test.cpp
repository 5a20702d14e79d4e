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
bool handshake(SSL_CTX* of_server, SSL_CTX* of_client) {
  const Session one(SSL_new(of_server)), other(SSL_new(of_client));
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
  SSL_shutdown(other.get());  // OpenSSL forgets the session of a connection without this end
  SSL_shutdown(one.get());
  ERR_clear_error();
  return of_one == 1 && of_other == 1;
}

bool handshake(const Identity& server, const Identity& client) {
  const Context of_server = context_of(server), of_client = context_of(client);
  return handshake(of_server.get(), of_client.get());
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

// For a server, whose clients are strangers.
TEST_F(CertificateGuardTest, WhatAClientShowsIsBounded) {
  const auto with_names = [](std::size_t count) {
    std::string all = "DNS:a";
    for (std::size_t i = 1; i < count; ++i) all += ",DNS:a" + std::to_string(i);
    return Identity({.name = "x", .alternative_names = all});
  };
  const Identity few = with_names(CertificateBounds::kNamesMax), many = with_names(CertificateBounds::kNamesMax + 1);
  const Identity long_one({.name = "x", .alternative_names = "DNS:" + std::string(3000, 'a')});
  for (const Identity* client : {&few, &many, &long_one}) EXPECT_TRUE(handshake(good_, *client)) << "without bounds";
  bound_certificates({.bytes_max = 3000});
  EXPECT_TRUE(handshake(good_, few));
  EXPECT_FALSE(handshake(good_, many));
  EXPECT_FALSE(handshake(good_, long_one));
  EXPECT_TRUE(handshake(many, good_)) << "names of a server are not bounded";
  bound_certificates({});
  EXPECT_TRUE(handshake(good_, many));
}

// With TLS 1.2 and without tickets, OpenSSL would keep a session, with the certificate of the peer, for each of them.
TEST_F(CertificateGuardTest, NoSessionStaysAfterItsConnection) {
  const Context of_server = context_of(good_), of_client = context_of(good_);
  SSL_CTX_set_session_id_context(of_server.get(), reinterpret_cast<const unsigned char*>("test"), 4);  // as gRPC does
  SSL_CTX_set_max_proto_version(of_client.get(), TLS1_2_VERSION);
  SSL_CTX_set_options(of_client.get(), SSL_OP_NO_TICKET);
  ASSERT_TRUE(handshake(of_server.get(), of_client.get()));
  EXPECT_EQ(SSL_CTX_sess_number(of_server.get()), 0);
}

}  // namespace
}  // namespace kilokv::tls
