#include "server/service/tls_files.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "server/service/client_certificates.hpp"
#include "tests/support/certificates.hpp"
#include "tests/support/test_folder.hpp"

namespace kilokv::server {
namespace {

using test::Identity;
using test::TestFolder;

constexpr std::int64_t kDay = 86400;

class TlsFilesTest : public testing::Test {
 protected:
  TlsFilesTest() {
    put(first_);
    options_ = {.cert_file = folder_.path("cert.pem"), .key_file = folder_.path("key.pem")};
  }
  void put(const Identity& identity) {
    folder_.write("cert.pem", identity.certificate());
    put_key(identity);
  }
  void put_key(const Identity& identity) {
    folder_.write("key.pem", identity.key());
    ::chmod(folder_.path("key.pem").c_str(), 0600);
  }
  void open() {
    auto opened = TlsFiles::open(
        options_, [this] { return now_; },
        [this](TlsFiles::Level level, const std::string& what, const std::string& detail) {
          lines_.push_back(std::to_string(static_cast<int>(level)) + " " + what + ": " + detail);
        });
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    files_ = std::move(*opened);
  }
  std::string certificates() { return files_->current()->pair.certificates; }
  // The lines since the last call.
  std::vector<std::string> lines() { return std::exchange(lines_, {}); }
  static std::string expires(const std::string& what) { return "1 kilokvd has a certificate that " + what; }

  TestFolder folder_;
  std::int64_t now_ = 2'000'000'000;
  Identity first_{{.name = "first", .from = now_ - kDay, .until = now_ + 100 * kDay}};
  Identity second_{{.name = "second", .from = now_ - kDay, .until = now_ + 100 * kDay}};
  TlsOptions options_;
  std::unique_ptr<TlsFiles> files_;
  std::vector<std::string> lines_;
};

TEST_F(TlsFilesTest, ANewPairIsTakenAsAWhole) {
  open();
  EXPECT_EQ(lines(), std::vector<std::string>());
  const auto before = files_->current();
  files_->look();
  EXPECT_EQ(files_->current(), before) << "the files are the same";
  folder_.write("cert.pem", second_.certificate());
  files_->look();
  EXPECT_EQ(files_->current(), before) << "the key is still the old one";
  EXPECT_EQ(lines(), std::vector<std::string>()) << "it may be on its way";
  put_key(second_);
  files_->look();
  EXPECT_EQ(certificates(), second_.certificate());
  EXPECT_EQ(files_->current()->pair.key, second_.key());
  ASSERT_EQ(lines_.size(), 1u);
  EXPECT_EQ(lines_[0].find("0 kilokvd uses new TLS files; open connections stay: CN=second, valid until 20"), 0u)
      << lines_[0];
}

TEST_F(TlsFilesTest, AWrongPairIsLoggedOnceAndTheOldOneStays) {
  open();
  folder_.write("cert.pem", second_.certificate());
  for (int i = 0; i < 5; ++i) files_->look();
  EXPECT_EQ(certificates(), first_.certificate());
  const auto said = lines();
  ASSERT_EQ(said.size(), 1u);
  EXPECT_EQ(
      said[0].find("2 kilokvd keeps its old TLS files, because the new ones cannot be used: --tls-cert, --tls-key: "
                   "the key in "),
      0u)
      << said[0];
  std::filesystem::remove(folder_.path("key.pem"));
  for (int i = 0; i < 5; ++i) files_->look();
  const auto missing = lines();
  ASSERT_EQ(missing.size(), 1u) << "another problem is a line of its own";
  EXPECT_NE(missing[0].find("cannot read"), std::string::npos) << missing[0];
  put(first_);
  files_->look();
  EXPECT_EQ(lines().size(), 1u) << "the good pair is back";
  folder_.write("cert.pem", second_.certificate());
  for (int i = 0; i < 5; ++i) files_->look();
  EXPECT_EQ(lines().size(), 1u) << "the same problem, at another time";
}

TEST_F(TlsFilesTest, AWrongPairAtTheStartIsAnError) {
  put_key(second_);
  const auto refused = TlsFiles::open(options_, [] { return std::int64_t{0}; }, {});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), StatusCode::invalid_argument);
  EXPECT_EQ(refused.status().message().find("--tls-cert, --tls-key: the key in "), 0u) << refused.status().message();
  for (const Identity* identity : {&first_, &second_}) {
    EXPECT_EQ(refused.status().message().find(identity->key().substr(30, 40)), std::string::npos);
  }
}

TEST_F(TlsFilesTest, TheEndOfACertificateIsAnnouncedOnceADay) {
  now_ += 86 * kDay - 1;
  open();
  EXPECT_EQ(lines(), std::vector<std::string>()) << "fourteen days are left";
  now_ += 2;
  files_->look();
  EXPECT_EQ(lines().at(0).find(expires("expires soon: valid until ")), 0u);
  now_ += kDay - 1;
  files_->look();
  EXPECT_EQ(lines(), std::vector<std::string>());
  now_ += 1;
  files_->look();
  EXPECT_EQ(lines().size(), 1u);
  now_ += 13 * kDay;
  files_->look();
  EXPECT_EQ(lines().at(0).find(expires("has expired: clients refuse it: expired on ")), 0u);
}

TEST_F(TlsFilesTest, ACertificateOfTheFutureAndAnOpenKeyAreTold) {
  now_ -= 2 * kDay;
  ::chmod(folder_.path("key.pem").c_str(), 0604);
  open();
  const auto said = lines();
  ASSERT_EQ(said.size(), 2u);
  EXPECT_NE(said[0].find("all users of the machine may read the key"), std::string::npos) << said[0];
  EXPECT_EQ(said[1].find(expires("is not valid yet: clients refuse it: valid from ")), 0u) << said[1];
}

TEST_F(TlsFilesTest, NewRevocationListsAreNoticed) {
  const std::int64_t today = std::time(nullptr);
  const Identity authority({.name = "CA", .is_authority = true}), client({.name = "c"}, &authority);
  std::filesystem::create_directory(folder_.path("lists"));
  options_.client_ca_file = folder_.write("ca.pem", authority.certificate());
  options_.crl_dir = folder_.path("lists");
  folder_.write("lists/ca.crl", authority.revocation_list({}, today + kDay));
  open();
  const auto check = [&] { return files_->current()->clients->check(client.certificate(), "", tls::Peer::client); };
  EXPECT_EQ(check(), "");
  folder_.write("lists/ca.crl", authority.revocation_list({&client}, today + 2 * kDay));
  files_->look();
  EXPECT_EQ(check(), "it was revoked by \"CN=CA\"");
  std::ofstream(folder_.path("lists/ca.crl")) << authority.revocation_list({}, today + 3 * kDay);  // in its place
  files_->look();
  EXPECT_EQ(check(), "");
  lines();
  folder_.write("lists/other.crl", "no list");
  files_->look();
  files_->look();
  EXPECT_EQ(check(), "");
  EXPECT_NE(lines().at(0).find("--tls-client-ca, --tls-crl-dir: " + folder_.path("lists/other.crl")),
            std::string::npos);
  const auto problem = [&] {
    for (int i = 0; i < 3; ++i) files_->look();
    const auto said = lines();
    return said.size() == 1 ? said[0].substr(said[0].find("the folder")) : std::to_string(said.size()) + " lines";
  };
  for (const char* list : {"lists/ca.crl", "lists/other.crl"}) std::filesystem::remove(folder_.path(list));
  EXPECT_EQ(problem(), "the folder " + options_.crl_dir + " holds no revocation list");
  std::filesystem::remove(options_.crl_dir);
  EXPECT_EQ(problem(), "the folder " + options_.crl_dir + ": No such file or directory");
}

TEST(ClientCertificatesTest, AResultHoldsForASecondAndForItsAuthorities) {
  const TestFolder folder;
  const Identity authority({.name = "CA", .is_authority = true}), other({.name = "Other", .is_authority = true});
  const Identity client({.name = "c"}, &authority), stranger({.name = "x"}, &other);
  std::shared_ptr<const tls::Trust> trust, other_trust;
  ASSERT_EQ(tls::Trust::read(folder.write("ca.pem", authority.certificate()), "the test's", "", &trust), "");
  ASSERT_EQ(tls::Trust::read(folder.write("ca.pem", other.certificate()), "the test's", "", &other_trust), "");
  ClientCertificates certificates;
  const ClientCertificates::Time now{};
  EXPECT_EQ(certificates.check(trust, client.certificate(), "", now), "");
  EXPECT_EQ(certificates.check(trust, client.certificate(), "", now), "");
  EXPECT_EQ(
      certificates.check(trust, stranger.certificate(), "", now),
      "the server does not accept the certificate of the client: its issuer \"CN=Other\" is not one of the test's");
  EXPECT_NE(certificates.check(trust, stranger.certificate(), client.certificate(), now), "");
  EXPECT_NE(certificates.check(trust, "", client.certificate(), now).find("has shown no certificate"),
            std::string::npos);
  EXPECT_NE(certificates.check(other_trust, client.certificate(), "", now), "") << "the authorities have changed";
  EXPECT_EQ(certificates.check(other_trust, stranger.certificate(), "", now), "");
}

TEST(ClientCertificatesTest, ACertificateIsCheckedAgainAfterASecond) {
  const TestFolder folder;
  const Identity authority({.name = "CA", .is_authority = true});
  const Identity client({.name = "c", .until = std::time(nullptr) + 2}, &authority);
  std::shared_ptr<const tls::Trust> trust;
  ASSERT_EQ(tls::Trust::read(folder.write("ca.pem", authority.certificate()), "", "", &trust), "");
  ClientCertificates certificates;
  const ClientCertificates::Time now{};
  EXPECT_EQ(certificates.check(trust, client.certificate(), "", now), "");
  while (trust->check(client.certificate(), "", tls::Peer::client).empty()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  EXPECT_EQ(certificates.check(trust, client.certificate(), "", now + std::chrono::milliseconds(999)), "");
  EXPECT_NE(certificates.check(trust, client.certificate(), "", now + std::chrono::milliseconds(1000)), "");
}

}  // namespace
}  // namespace kilokv::server
