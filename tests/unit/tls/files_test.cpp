#include "tls/files.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/support/certificates.hpp"
#include "tests/support/test_folder.hpp"

namespace kilokv::tls {
namespace {

using test::Identity;
using test::TestFolder;

class FilesTest : public testing::Test {
 protected:
  std::string problem(const std::string& certificate, const std::string& key) {
    return read_pair(folder_.write("cert.pem", certificate), folder_.write("key.pem", key), &pair_);
  }
  TestFolder folder_;
  Identity alice_{{.name = "alice", .from = 1'000'000'000, .until = 2'000'000'000}}, bob_{{.name = "bob"}};
  Pair pair_;
};

TEST_F(FilesTest, APairIsRead) {
  EXPECT_EQ(problem(alice_.certificate() + bob_.certificate(), alice_.key()), "");
  EXPECT_EQ(pair_.certificates, alice_.certificate() + bob_.certificate());
  EXPECT_EQ(pair_.key, alice_.key());
  EXPECT_EQ(pair_.subject, "CN=alice");
  EXPECT_EQ(pair_.valid_from, 1'000'000'000);
  EXPECT_EQ(pair_.valid_until, 2'000'000'000);
}

TEST_F(FilesTest, AKeyMustBelongToTheFirstCertificate) {
  const std::string wanted =
      "the key in " + folder_.path("key.pem") + " does not match the first certificate in " + folder_.path("cert.pem");
  EXPECT_EQ(problem(alice_.certificate(), bob_.key()), wanted);
  EXPECT_EQ(problem(bob_.certificate() + alice_.certificate(), alice_.key()), wanted);
}

TEST_F(FilesTest, AFileThatCannotBeUsedIsNamed) {
  const auto expect = [](const std::string& problem, const std::string& part) {
    EXPECT_NE(problem.find(part), std::string::npos) << problem;
  };
  expect(problem("", alice_.key()), "cert.pem holds no certificate in PEM form");
  expect(problem(alice_.key(), alice_.key()), "cert.pem holds no certificate in PEM form");
  expect(problem(alice_.certificate(), alice_.certificate()), "key.pem holds no private key in PEM form");
  expect(read_pair(folder_.path("none"), folder_.path("key.pem"), &pair_),
         "cannot read " + folder_.path("none") + ": No such file or directory");
  std::string pem;
  expect(read_authorities(folder_.write("ca.pem", "no certificate"), &pem), "ca.pem holds no certificate");
  expect(read_authorities(folder_.path(""), &pem), "Is a directory");
}

TEST_F(FilesTest, ADamagedCertificateIsNotLeftOut) {
  std::string damaged = bob_.certificate();
  damaged.replace(damaged.size() / 2, 4, "!!!!");
  EXPECT_NE(problem(alice_.certificate() + damaged, alice_.key()), "");
}

TEST_F(FilesTest, AWeakKeyIsNamed) {
  const Identity weak({.name = "weak", .is_authority = true, .rsa_bits = 1024}), below({.name = "below"}, &weak);
  EXPECT_EQ(problem(weak.certificate(), weak.key()),
            folder_.path("cert.pem") + " holds a certificate that TLS does not take: ee key too small");
  EXPECT_EQ(problem(below.certificate() + weak.certificate(), below.key()),
            folder_.path("cert.pem") + " holds a certificate that TLS does not take: ca key too small");
}

TEST_F(FilesTest, OthersMayReadOnlyIfTheModeSaysSo) {
  const std::string file = folder_.write("key.pem", alice_.key());
  ::chmod(file.c_str(), 0640);
  EXPECT_FALSE(others_may_read(file));
  ::chmod(file.c_str(), 0644);
  EXPECT_TRUE(others_may_read(file));
}

TEST(TimeText, IsInUtc) { EXPECT_EQ(time_text(1'000'000'000), "2001-09-09T01:46:40Z"); }

}  // namespace
}  // namespace kilokv::tls
