// Clients with certificates against the service with TLS: which name logs in, what is refused, and what is kept of it.
#include "server/service/client_certificates.hpp"

#include <gtest/gtest.h>
#include <malloc.h>
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#include <sanitizer/allocator_interface.h>
#endif
#include <sys/stat.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "server/service/grpc_server.hpp"
#include "tests/support/certificates.hpp"
#include "tests/support/test_folder.hpp"
#include "tests/unit/service/audit_lines.hpp"
#include "tests/unit/service/service_fixture.hpp"

namespace kilokv::server {
namespace {

using kilokv::test::Identity;
using kilokv::test::TestFolder;

// What the program has taken and not given back. A sanitizer brings an allocator of its own.
std::size_t heap_bytes() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return __sanitizer_get_current_allocated_bytes();
#else
  return ::mallinfo2().uordblks;
#endif
}

class ClientCertificatesMemoryTest : public testing::Test {
 protected:
  ClientCertificatesMemoryTest() {
    EXPECT_EQ(tls::Trust::read(folder_.write("ca.pem", authority_.certificate()), "the test's", "", &trust_), "");
  }
  // What `count` strangers leave behind, each with other certificates.
  std::size_t bytes_kept(int count, ClientCertificates::Time now) {
    const std::size_t before = heap_bytes();
    for (int i = 0; i < count; ++i) {
      const std::string others(8000, static_cast<char>('a' + i % 26));
      EXPECT_NE(certificates_.check(trust_, stranger_.certificate(), others + std::to_string(i), now), "");
    }
    const std::size_t after = heap_bytes();
    return after > before ? after - before : 0;
  }

  TestFolder folder_;
  Identity authority_{{.name = "CA", .is_authority = true}}, other_{{.name = "Other", .is_authority = true}};
  Identity stranger_{{.name = "x"}, &other_};
  std::shared_ptr<const tls::Trust> trust_;
  ClientCertificates certificates_;
  const ClientCertificates::Time now_{};
};

TEST_F(ClientCertificatesMemoryTest, AResultTakesLittleHoweverLongTheCertificatesAre) {
  EXPECT_LT(bytes_kept(1000, now_), 1000u * 1000);
}

TEST_F(ClientCertificatesMemoryTest, OldResultsAreDropped) {
  bytes_kept(1000, now_);
  const std::size_t full = heap_bytes();
  bytes_kept(1, now_ + std::chrono::seconds(2));
  EXPECT_LE(heap_bytes() + 1000 * sizeof(tls::Sha256), full);
}

TEST_F(ClientCertificatesMemoryTest, WhoResumesNeedsNotSendItsIssuersAgain) {
  const Identity middle({.name = "Middle", .is_authority = true}, &authority_);
  const Identity client({.name = "c"}, &middle), other({.name = "d"}, &middle);
  const std::string own = client.certificate();
  EXPECT_NE(certificates_.check(trust_, own, "", now_), "");
  EXPECT_NE(certificates_.check(trust_, own, other_.certificate(), now_), "");
  const auto later = now_ + std::chrono::seconds(2);
  EXPECT_NE(certificates_.check(trust_, own, "", later), "") << "what did not help is not kept";
  EXPECT_EQ(certificates_.check(trust_, own, middle.certificate(), later), "");
  EXPECT_EQ(certificates_.check(trust_, own, "", later + std::chrono::hours(1)), "");
  EXPECT_NE(certificates_.check(trust_, other.certificate(), "", later), "");
}

class CertificateLoginTest : public testing::Test {
 protected:
  CertificateLoginTest() {
    options_.login = true;
    options_.tls = {.cert_file = folder_.write("cert.pem", own_.certificate()),
                    .key_file = folder_.write("key.pem", own_.key()),
                    .client_ca_file = folder_.write("ca.pem", authority_.certificate())};
    ::chmod(options_.tls.key_file.c_str(), S_IRUSR | S_IWUSR);
    service_ = std::make_unique<KiloKvService>(options_, kInfo);
    auto started = GrpcServer::start("127.0.0.1:0", service_.get(), options_);
    EXPECT_TRUE(started.ok()) << started.status().message();
    server_ = std::move(*started);
    server_->accept();
    service_->serve(&database_);
    change({.kind = AccessChange::Kind::put_role, .role = {"all", {}, {}, false, true}, .user = {}, .token = {}});
    change({.kind = AccessChange::Kind::put_user, .role = {}, .user = {"u", {"all"}, {"alice"}}, .token = {}});
  }
  void change(const AccessChange& change) {
    database_.change_access(
        nullptr, [&](const AccessTable&) -> Result<AccessChange> { return change; }, [](const auto&) {});
  }
  // A client with this certificate; null: it has none.
  std::unique_ptr<v1::KiloKV::Stub> stub_of(const Identity* client) {
    const grpc::SslCredentialsOptions options{.pem_root_certs = authority_.certificate(),
                                              .pem_private_key = client == nullptr ? "" : client->key(),
                                              .pem_cert_chain = client == nullptr ? "" : client->certificate()};
    return v1::KiloKV::NewStub(grpc::CreateChannel(server_->endpoint(), grpc::SslCredentials(options)));
  }
  static std::string last_peer_of(const std::string& line) {
    const std::size_t begin = line.find(" last_peer=") + 11;
    return line.substr(begin, line.find(' ', begin) - begin);
  }
  grpc::Status call(const Identity* client) {
    const auto stub = stub_of(client);
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kDeadline);
    v1::StatusResponse response;
    return stub->Status(&context, {}, &response);
  }

  TestFolder folder_;
  test::AuditLines audit_;
  Identity authority_{{.name = "CA", .is_authority = true}}, other_{{.name = "Other", .is_authority = true}};
  Identity own_{{.name = "s", .alternative_names = "IP:127.0.0.1", .use = "serverAuth"}, &authority_};
  ServiceOptions options_;
  test::FakeDatabase database_;
  std::unique_ptr<KiloKvService> service_;
  std::unique_ptr<GrpcServer> server_;
};

TEST_F(CertificateLoginTest, TheCommonNameCountsOnlyIfItIsTheOnlyName) {
  const Identity by_common_name({.name = "alice"}, &authority_);
  const Identity by_alternative_name({.name = "other", .alternative_names = "DNS:bob,DNS:alice"}, &authority_);
  const Identity with_another_name({.name = "alice", .alternative_names = "DNS:bob"}, &authority_);
  EXPECT_TRUE(call(&by_common_name).ok());
  EXPECT_TRUE(call(&by_alternative_name).ok());
  const grpc::Status status = call(&with_another_name);
  EXPECT_EQ(status.error_code(), grpc::UNAUTHENTICATED);
  EXPECT_NE(status.error_message().find("\"bob\""), std::string::npos) << status.error_message();
}

TEST_F(CertificateLoginTest, ARefusedCertificateIsCountedAndLogged) {
  const Identity stranger({.name = "mallory"}, &other_);
  EXPECT_EQ(call(&stranger).error_code(), grpc::UNAUTHENTICATED);
  EXPECT_EQ(service_->logins().refused(), 1u);
  const std::string said = audit_.take();
  EXPECT_EQ(said.substr(0, said.find(" last_peer=")) + said.substr(said.find(" last_certificate=")),
            "kilokvd refused logins refused=1 last_certificate=\"CN=mallory\" reason=\"the server does not accept the "
            "certificate of the client: its issuer \\\"CN=Other\\\" is not one of the authorities of the server "
            "(--tls-client-ca)\"\n");
  EXPECT_EQ(call(nullptr).error_code(), grpc::UNAUTHENTICATED);
  EXPECT_EQ(service_->logins().refused(), 2u);
  EXPECT_EQ(audit_.take(), "") << "at most one line a second";
}

// As a call with a wrong token does.
TEST_F(CertificateLoginTest, ARefusedCertificateCountsAsACallWithoutALogin) {
  const Identity stranger({.name = "mallory"}, &other_), alice({.name = "alice"}, &authority_);
  const auto stub = stub_of(&stranger);
  std::string peer;
  for (std::uint64_t calls = 1; calls <= 3; ++calls) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kDeadline);
    v1::StatusResponse response;
    EXPECT_EQ(stub->Status(&context, {}, &response).error_code(), grpc::UNAUTHENTICATED);
    EXPECT_EQ(detail_of(context).reason(), v1::ERROR_REASON_LOGIN_WRONG);
    EXPECT_TRUE(detail_of(context).not_run());
    if (calls == 1) peer = last_peer_of(audit_.take());
    EXPECT_EQ(service_->logins().use_of(peer).calls_without_login, calls);
  }
  EXPECT_TRUE(call(&alice).ok());
}

}  // namespace
}  // namespace kilokv::server
