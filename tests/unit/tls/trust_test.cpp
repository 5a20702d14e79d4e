#include "tls/trust.hpp"

#include <gtest/gtest.h>

#include <ctime>
#include <filesystem>

#include "tests/support/certificates.hpp"
#include "tests/support/test_folder.hpp"

namespace kilokv::tls {
namespace {

using test::Identity;
using test::TestFolder;

constexpr std::int64_t kDay = 86400;

class TrustTest : public testing::Test {
 protected:
  TrustTest() { std::filesystem::create_directory(folder_.path("lists")); }

  std::shared_ptr<const Trust> trust(bool with_lists = false) {
    std::shared_ptr<const Trust> made;
    const std::string file = folder_.write("ca.pem", authority_.certificate());
    EXPECT_EQ(Trust::read(file, "the test's", with_lists ? folder_.path("lists") : "", &made), "");
    return made;
  }
  std::string check_server(const std::string& own, const std::string& name, const std::string& others = "") {
    return trust()->check(own, others, Peer::server, name);
  }
  std::string check_client(const Identity& client, const std::string& others = "") {
    return trust()->check(client.certificate(), others, Peer::client);
  }

  TestFolder folder_;
  Identity authority_{{.name = "CA", .is_authority = true}}, other_authority_{{.name = "Other", .is_authority = true}};
  Identity server_{{.name = "s", .alternative_names = "DNS:*.db.example,DNS:localhost,IP:10.0.0.1"}, &authority_};
  Identity client_{{.name = "c", .use = "clientAuth"}, &authority_};
  Identity rsa_authority_{{.name = "RSA", .is_authority = true, .rsa_bits = 2048}};
  std::int64_t now_ = std::time(nullptr);
};

TEST_F(TrustTest, AServerHasTheNameOrTheAddress) {
  for (const char* name : {"localhost", "a.db.example", "10.0.0.1"})
    EXPECT_EQ(check_server(server_.certificate(), name), "");
  for (const char* name : {"db.example", "a.b.db.example", "10.0.0.2", "other", "0.1"}) {
    EXPECT_EQ(check_server(server_.certificate(), name),
              std::string("it is for DNS:*.db.example, DNS:localhost, IP Address:10.0.0.1, and not for ") + name);
  }
}

TEST_F(TrustTest, AnIssuerMustBeKnownByItsKey) {
  const Identity stranger({.name = "x"}, &other_authority_), alone({.name = "alone"});
  const Identity forger({.name = "CA", .is_authority = true});
  const Identity forged({.name = "x"}, &forger);
  EXPECT_EQ(check_client(stranger), "its issuer \"CN=Other\" is not one of the test's");
  EXPECT_EQ(check_client(stranger, other_authority_.certificate()), "its issuer \"CN=Other\" is not one of the test's");
  EXPECT_EQ(check_client(alone), "it is self-signed, and not one of the test's");
  EXPECT_NE(check_client(forged), "");
  EXPECT_NE(check_client(forged, forger.certificate()), "");
  EXPECT_EQ(trust()->check("", client_.certificate(), Peer::client), "it cannot be read");
}

TEST_F(TrustTest, TheCertificatesThatAPeerAddsProveNothing) {
  const Identity stranger({.name = "x"}, &other_authority_);
  EXPECT_NE(check_client(stranger, client_.certificate()), "");
  EXPECT_NE(check_client(stranger, authority_.certificate()), "");
  EXPECT_NE(check_client(stranger, client_.certificate() + authority_.certificate()), "");
}

TEST_F(TrustTest, ACertificateThatIsNoAuthorityIssuesNothing) {
  const Identity issued_by_client({.name = "x"}, &client_);
  EXPECT_NE(check_client(issued_by_client, client_.certificate()), "");
}

TEST_F(TrustTest, AMiddleAuthorityIsFoundAmongTheOthers) {
  const Identity middle({.name = "Middle", .is_authority = true}, &authority_);
  const Identity below({.name = "x"}, &middle);
  EXPECT_EQ(check_client(below, middle.certificate()), "");
  EXPECT_EQ(check_client(below), "its issuer \"CN=Middle\" is not one of the test's");
  const Identity old({.name = "Old", .from = now_ - 9 * kDay, .until = now_ - kDay, .is_authority = true}, &authority_);
  const Identity below_old({.name = "x"}, &old);
  EXPECT_EQ(check_client(below_old, old.certificate()).find("the certificate of its issuer \"CN=Old\" expired on "),
            0u);
}

TEST_F(TrustTest, TheDatesHold) {
  const Identity old({.name = "x", .from = 1'000'000'000, .until = 1'100'000'000}, &authority_);
  EXPECT_EQ(check_client(old), "it expired on 2004-11-09T11:33:20Z");
  const Identity early({.name = "x", .from = 4'000'000'000, .until = 4'100'000'000}, &authority_);
  EXPECT_EQ(check_client(early), "it is not valid before 2096-10-02T07:06:40Z");
}

TEST_F(TrustTest, TheUseHolds) {
  EXPECT_EQ(check_client(client_), "");
  EXPECT_EQ(check_server(client_.certificate(), "c"), "it is not made for this use (extendedKeyUsage, keyUsage)");
  const Identity server({.name = "s", .use = "serverAuth"}, &authority_);
  EXPECT_EQ(check_client(server), "it is not made for this use (extendedKeyUsage, keyUsage)");
}

TEST_F(TrustTest, ARevokedCertificateIsRefused) {
  const Identity other({.name = "d"}, &authority_);
  folder_.write("lists/ca.crl", authority_.revocation_list({&client_}, now_ + kDay));
  const auto with_lists = trust(true);
  EXPECT_EQ(with_lists->warning(), "");
  EXPECT_EQ(with_lists->check(client_.certificate(), "", Peer::client), "it was revoked by \"CN=CA\"");
  EXPECT_EQ(with_lists->check(other.certificate(), "", Peer::client), "");
  EXPECT_EQ(check_client(client_), "") << "without lists, nothing is revoked";
}

// Nothing that a clock changes comes before the first end in the chain, or of a list.
TEST_F(TrustTest, ItSaysUntilWhenACertificateIsGood) {
  const Identity middle({.name = "Middle", .until = now_ + 5 * kDay, .is_authority = true}, &authority_);
  const Identity below({.name = "x", .until = now_ + 9 * kDay}, &middle);
  const Identity shorter({.name = "y", .until = now_ + 2 * kDay}, &middle);
  const auto good_until = [&](bool with_lists, const Identity& client) {
    std::int64_t until = 0;
    EXPECT_EQ(trust(with_lists)->check(client.certificate(), middle.certificate(), Peer::client, {}, &until), "");
    return until;
  };
  EXPECT_EQ(good_until(false, below), now_ + 5 * kDay);
  EXPECT_EQ(good_until(false, shorter), now_ + 2 * kDay);
  folder_.write("lists/middle.crl", middle.revocation_list({}, now_ + 3 * kDay));
  folder_.write("lists/ca.crl", authority_.revocation_list({}, now_ + 4 * kDay));
  folder_.write("lists/other.crl", other_authority_.revocation_list({}, now_ - kDay));
  EXPECT_EQ(good_until(true, below), now_ + 3 * kDay) << "a list that has ended is not waited for";
  EXPECT_EQ(good_until(true, shorter), now_ + 2 * kDay);
}

TEST_F(TrustTest, ARevokedMiddleAuthorityIsRefused) {
  const Identity middle({.name = "Middle", .is_authority = true}, &authority_);
  const Identity below({.name = "x"}, &middle);
  folder_.write("lists/middle.crl", middle.revocation_list({}, now_ + kDay));
  folder_.write("lists/ca.crl", authority_.revocation_list({&middle}, now_ + kDay));
  EXPECT_EQ(trust(true)->check(below.certificate(), middle.certificate(), Peer::client),
            "the certificate of its issuer \"CN=Middle\" was revoked by \"CN=CA\"");
}

TEST_F(TrustTest, WithoutAListThatIsValidNobodyIsAccepted) {
  folder_.write("lists/other.crl", other_authority_.revocation_list({}, now_ + kDay));
  EXPECT_EQ(trust(true)->check(client_.certificate(), "", Peer::client),
            "there is no revocation list of its issuer \"CN=CA\"");
  folder_.write("lists/ca.crl", authority_.revocation_list({}, now_ - kDay));
  const auto old = trust(true);
  EXPECT_NE(old->warning().find("ca.crl was valid until "), std::string::npos) << old->warning();
  EXPECT_EQ(old->check(client_.certificate(), "", Peer::client),
            "the revocation list of its issuer \"CN=CA\" is too old");
  folder_.write("lists/forged.crl", Identity({.name = "CA", .is_authority = true}).revocation_list({}, now_ + kDay));
  EXPECT_NE(trust(true)->check(client_.certificate(), "", Peer::client), "")
      << "a list with another key does not count";
}

TEST_F(TrustTest, WrongListsAreNamed) {
  std::shared_ptr<const Trust> made;
  const std::string ca = folder_.write("ca.pem", authority_.certificate()), lists = folder_.path("lists");
  EXPECT_EQ(Trust::read(ca, "", lists, &made), "the folder " + lists + " holds no revocation list");
  EXPECT_EQ(Trust::read(ca, "", folder_.path("none"), &made),
            "cannot read the folder " + folder_.path("none") + ": No such file or directory");
  const std::string wrong = folder_.write("lists/ca.crl", authority_.certificate());
  EXPECT_EQ(Trust::read(ca, "", lists, &made), wrong + " holds no revocation list in PEM form, or a damaged one");
  EXPECT_EQ(made, nullptr);
}

TEST_F(TrustTest, AWeakKeyIsRefused) {
  const Identity weak({.name = "x", .rsa_bits = 1024}, &authority_);
  const std::string key =
      " has a key that is too weak, RSA with 1024 bits: RSA needs 2048 bits, and elliptic curves 224";
  EXPECT_EQ(check_client(weak), "it" + key);
  const Identity weak_server({.name = "s", .alternative_names = "DNS:s", .rsa_bits = 512}, &authority_);
  EXPECT_EQ(check_server(weak_server.certificate(), "s").find("it has a key that is too weak, RSA with 512 bits"), 0u);
  const Identity middle({.name = "Middle", .is_authority = true, .rsa_bits = 1024}, &authority_);
  EXPECT_EQ(check_client(Identity({.name = "x"}, &middle), middle.certificate()),
            "the certificate of its issuer \"CN=Middle\"" + key);
  EXPECT_EQ(check_client(Identity({.name = "x", .rsa_bits = 2048}, &authority_)), "");
}

TEST_F(TrustTest, AWeakHashIsRefused) {
  for (const char* hash : {"MD5", "SHA1"}) {
    const Identity weak({.name = "x", .alternative_names = "DNS:x", .hash = hash}, &rsa_authority_);
    std::shared_ptr<const Trust> made;
    ASSERT_EQ(Trust::read(folder_.write("rsa.pem", rsa_authority_.certificate()), "the test's", "", &made), "");
    const std::string text = std::string("it has a signature that is too weak, ") +
                             (hash == std::string("MD5") ? "md5" : "sha1") +
                             "WithRSAEncryption: it needs SHA-256, or another hash as strong";
    EXPECT_EQ(made->check(weak.certificate(), "", Peer::client), text);
    EXPECT_EQ(made->check(weak.certificate(), "", Peer::server, "x"), text);
  }
}

TEST_F(TrustTest, ANameOfAPeerIsNoLineOfALog) {
  const Identity issuer({.name = "a\nb" + std::string(1, '\x1b') + "\"", .is_authority = true});
  const Identity peer({.name = "x"}, &issuer);
  const std::string problem = check_client(peer);
  EXPECT_EQ(problem.find_first_of("\n\x1b"), std::string::npos) << problem;
}

}  // namespace
}  // namespace kilokv::tls
