// Compares SipHash-1-3-128 with a byte-by-byte reference, and checks the properties that the table relies on.

#include "engine/base/key_hash.hpp"

#include <array>
#include <bit>
#include <string>

#include "tests/unit/engine/harness.hpp"

namespace kilokv::engine {
namespace {

// The paper's description, one byte at a time, any number of rounds.
KeyId reference(const std::string& key, KeyHashSecret secret, int block_rounds, int final_rounds) {
  std::array<std::uint64_t, 4> v{secret.low ^ 0x736f6d6570736575u, secret.high ^ 0x646f72616e646f6du,
                                 secret.low ^ 0x6c7967656e657261u, secret.high ^ 0x7465646279746573u};
  v[1] ^= 0xee;
  const auto rounds = [&](int count) {
    for (; count > 0; --count) {
      v[0] += v[1], v[2] += v[3];
      v[1] = std::rotl(v[1], 13), v[3] = std::rotl(v[3], 16);
      v[1] ^= v[0], v[3] ^= v[2];
      v[0] = std::rotl(v[0], 32);
      v[2] += v[1], v[0] += v[3];
      v[1] = std::rotl(v[1], 17), v[3] = std::rotl(v[3], 21);
      v[1] ^= v[2], v[3] ^= v[0];
      v[2] = std::rotl(v[2], 32);
    }
  };
  std::string padded = key;
  while (padded.size() % 8 != 7) padded.push_back('\0');
  padded.push_back(static_cast<char>(key.size() & 0xff));
  for (std::size_t at = 0; at < padded.size(); at += 8) {
    std::uint64_t word = 0;
    for (std::size_t i = 0; i < 8; ++i) word |= std::uint64_t{static_cast<unsigned char>(padded[at + i])} << (8 * i);
    v[3] ^= word;
    rounds(block_rounds);
    v[0] ^= word;
  }
  v[2] ^= 0xee;
  rounds(final_rounds);
  KeyId id;
  id.low = v[0] ^ v[1] ^ v[2] ^ v[3];
  v[1] ^= 0xdd;
  rounds(final_rounds);
  id.high = v[0] ^ v[1] ^ v[2] ^ v[3];
  return id;
}

constexpr KeyHashSecret kPaperSecret{0x0706050403020100u, 0x0f0e0d0c0b0a0908u};

// The published vectors are of 2-4 rounds: they vouch for the reference (SipHash-2-4-128, vectors_sip128 of its
// authors: the empty input, and the single byte 0).
TEST(reference_gives_the_published_vectors) {
  const KeyId empty = reference("", kPaperSecret, 2, 4);
  EXPECT_EQ(empty.low, 0xe6a825ba047f81a3u);
  EXPECT_EQ(empty.high, 0x930255c71472f66du);
  const KeyId one = reference(std::string(1, '\0'), kPaperSecret, 2, 4);
  EXPECT_EQ(one.low, 0x44af996bd8c187dau);
  EXPECT_EQ(one.high, 0x45fc229b11597634u);
}

TEST(hash_equals_the_reference_at_every_length) {
  std::string key;
  for (int length = 0; length <= 1024; ++length) {
    const KeyId expected = reference(key, kPaperSecret, 1, 3);
    const KeyId met = hash_key(key, kPaperSecret);
    ASSERT_EQ(met.low, expected.low);
    ASSERT_EQ(met.high, expected.high);
    key.push_back(static_cast<char>(length * 37 + 11));
  }
}

TEST(another_secret_gives_other_ids) {
  EXPECT_TRUE(hash_key("account", {1, 2}) != hash_key("account", {1, 3}));
  EXPECT_TRUE(hash_key("account", {1, 2}) != hash_key("account", {2, 2}));
  EXPECT_TRUE(hash_key("account", {1, 2}) != hash_key(std::string("account\0", 8), {1, 2}));
}

}  // namespace
}  // namespace kilokv::engine
