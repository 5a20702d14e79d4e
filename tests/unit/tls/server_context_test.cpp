#include "tls/server_context.hpp"

#include <gtest/gtest.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/support/certificates.hpp"
#include "tls/certificate_guard.hpp"

namespace kilokv::tls {
namespace {

using test::Identity;
using Session = std::unique_ptr<SSL, decltype(&SSL_free)>;
using Context = std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)>;

class ServerContextTest : public testing::Test {
 protected:
  ServerContextTest() { bound_certificates({.bytes_max = 8192}); }
  ~ServerContextTest() override { bound_certificates({}); }

  // A client that shows this certificate; null: none. `version`: of TLS, at most.
  static Context client(const Identity* shown, int version = TLS1_3_VERSION) {
    Context context(SSL_CTX_new(TLS_client_method()), &SSL_CTX_free);
    SSL_CTX_set_verify(context.get(), SSL_VERIFY_NONE, nullptr);
    SSL_CTX_set_max_proto_version(context.get(), version);
    if (shown != nullptr) {
      const std::string certificate_text = shown->certificate(), key_text = shown->key();
      BIO* const certificate = BIO_new_mem_buf(certificate_text.c_str(), -1);
      X509* const parsed = PEM_read_bio_X509(certificate, nullptr, nullptr, nullptr);
      BIO* const key = BIO_new_mem_buf(key_text.c_str(), -1);
      EVP_PKEY* const private_key = PEM_read_bio_PrivateKey(key, nullptr, nullptr, nullptr);
      EXPECT_EQ(SSL_CTX_use_certificate(context.get(), parsed), 1);
      EXPECT_EQ(SSL_CTX_use_PrivateKey(context.get(), private_key), 1);
      X509_free(parsed);
      EVP_PKEY_free(private_key);
      BIO_free(certificate);
      BIO_free(key);
    }
    return context;
  }

  // Both ends of a handshake in memory. Returns whether it ended well.
  static bool shake_hands(SSL* server, SSL* client) {
    BIO *of_server = nullptr, *of_client = nullptr;
    BIO_new_bio_pair(&of_server, 0, &of_client, 0);
    SSL_set_bio(server, of_server, of_server);
    SSL_set_bio(client, of_client, of_client);
    SSL_set_accept_state(server);
    SSL_set_connect_state(client);
    for (int i = 0; i < 20; ++i) {
      const int at_client = SSL_do_handshake(client), at_server = SSL_do_handshake(server);
      if (at_client == 1 && at_server == 1) return true;
    }
    return false;
  }

  const Identity authority_{{.name = "authority", .is_authority = true}};
  const Identity server_{{.name = "server", .use = "serverAuth"}, &authority_};
  const Pair pair_{.certificates = server_.certificate(), .key = server_.key(), .subject = {}};
};

TEST_F(ServerContextTest, AClientWithoutACertificateIsTaken) {
  for (const std::string& authorities : {std::string(), authority_.certificate()}) {
    const ServerContext context = server_context(pair_, authorities);
    ASSERT_NE(context, nullptr);
    const Context of_client = client(nullptr);
    const Session server(SSL_new(context.get()), &SSL_free), peer(SSL_new(of_client.get()), &SSL_free);
    ASSERT_TRUE(shake_hands(server.get(), peer.get()));
    EXPECT_TRUE(shown_by(server.get()).own.empty());
  }
}

TEST_F(ServerContextTest, WhatAClientShowsIsKnownWithItsNames) {
  const ServerContext context = server_context(pair_, authority_.certificate());
  const Identity watcher(
      {.name = "watcher", .alternative_names = "DNS:a.example,IP:127.0.0.1,IP:::1,URI:urn:x,email:a@b"}, &authority_);
  const Context of_client = client(&watcher);
  const Session server(SSL_new(context.get()), &SSL_free), peer(SSL_new(of_client.get()), &SSL_free);
  ASSERT_TRUE(shake_hands(server.get(), peer.get()));
  const ShownCertificate shown = shown_by(server.get());
  EXPECT_EQ(shown.own, watcher.certificate());
  EXPECT_EQ(shown.common_names, std::vector<std::string>{"watcher"});
  EXPECT_EQ(shown.alternative_names, (std::vector<std::string>{"a.example", "127.0.0.1", "::1", "urn:x", "a@b"}));
}

// The server checks it later, so that the client hears why it gets nothing.
TEST_F(ServerContextTest, ACertificateOfAnotherAuthorityDoesNotEndTheHandshake) {
  const ServerContext context = server_context(pair_, authority_.certificate());
  const Identity stranger({.name = "stranger"});
  const Context of_client = client(&stranger);
  const Session server(SSL_new(context.get()), &SSL_free), peer(SSL_new(of_client.get()), &SSL_free);
  ASSERT_TRUE(shake_hands(server.get(), peer.get()));
  EXPECT_EQ(shown_by(server.get()).own, stranger.certificate());
}

TEST_F(ServerContextTest, AnOldVersionIsRefused) {
  const ServerContext context = server_context(pair_, {});
  const Context old = client(nullptr, TLS1_1_VERSION), current = client(nullptr, TLS1_2_VERSION);
  const Session refused(SSL_new(context.get()), &SSL_free), of_old(SSL_new(old.get()), &SSL_free);
  EXPECT_FALSE(shake_hands(refused.get(), of_old.get()));
  const Session taken(SSL_new(context.get()), &SSL_free), of_current(SSL_new(current.get()), &SSL_free);
  EXPECT_TRUE(shake_hands(taken.get(), of_current.get()));
}

TEST_F(ServerContextTest, NoSessionCanBeResumed) {
  const ServerContext context = server_context(pair_, {});
  const Context of_client = client(nullptr, TLS1_2_VERSION);
  const Session server(SSL_new(context.get()), &SSL_free), peer(SSL_new(of_client.get()), &SSL_free);
  ASSERT_TRUE(shake_hands(server.get(), peer.get()));
  SSL_SESSION* const session = SSL_get1_session(peer.get());
  const Session again(SSL_new(context.get()), &SSL_free), resuming(SSL_new(of_client.get()), &SSL_free);
  SSL_set_session(resuming.get(), session);
  ASSERT_TRUE(shake_hands(again.get(), resuming.get()));
  EXPECT_EQ(SSL_session_reused(resuming.get()), 0);
  SSL_SESSION_free(session);
}

TEST_F(ServerContextTest, APairThatDoesNotMatchGivesNoContext) {
  const Identity other({.name = "other"});
  EXPECT_EQ(server_context({.certificates = server_.certificate(), .key = other.key(), .subject = {}}, {}), nullptr);
  EXPECT_EQ(server_context({.certificates = "", .key = other.key(), .subject = {}}, {}), nullptr);
}

}  // namespace
}  // namespace kilokv::tls
