#include "server/core/shown_key.hpp"

#include <gtest/gtest.h>

#include <set>
#include <sstream>
#include <string>

namespace kilokv::server {
namespace {

constexpr engine::KeyHashSecret kSecret{1, 2}, kOther{1, 3};

TEST(ShownKeyTest, IsWholeOrAHashOrNothing) {
  EXPECT_EQ(shown_key("key", "account/7", LogKeys::full, kSecret), " key=\"account/7\"");
  EXPECT_EQ(shown_key("key", "a\"b\n", LogKeys::full, kSecret), " key=\"a\\\"b\\n\"");
  EXPECT_EQ(shown_key("key", "account/7", LogKeys::hash, kSecret), " key=" + key_hash_text("account/7", kSecret));
  EXPECT_EQ(shown_key("key", "account/7", LogKeys::none, kSecret), "");
}

TEST(ShownKeyTest, TheHashNeedsTheSecretAndTellsKeysApart) {
  std::set<std::string> hashes;
  for (int i = 0; i < 1000; ++i) {
    const std::string key = "account/" + std::to_string(i);
    const std::string hash = key_hash_text(key, kSecret);
    ASSERT_EQ(hash.size(), 17u);
    EXPECT_EQ(hash.front(), '#');
    EXPECT_EQ(hash.find_first_not_of("0123456789abcdef", 1), std::string::npos) << hash;
    EXPECT_EQ(hash, key_hash_text(key, kSecret));
    EXPECT_NE(hash, key_hash_text(key, kOther));
    hashes.insert(hash);
    // The half that places the key in the table stays unknown.
    std::ostringstream place;
    place << std::hex << engine::hash_key(key, kSecret).high;
    EXPECT_EQ(hash.find(place.str()), std::string::npos);
  }
  EXPECT_EQ(hashes.size(), 1000u);
}

TEST(ShownKeyTest, NamesOfTheSetting) {
  EXPECT_EQ(parse_log_keys("full"), LogKeys::full);
  EXPECT_EQ(parse_log_keys("hash"), LogKeys::hash);
  EXPECT_EQ(parse_log_keys("none"), LogKeys::none);
  EXPECT_FALSE(parse_log_keys("Full"));
  EXPECT_FALSE(parse_log_keys(""));
}

}  // namespace
}  // namespace kilokv::server
