#include "engine/base/key_hash.hpp"

#include <bit>
#include <cstring>

namespace kilokv::engine {
namespace {

static_assert(std::endian::native == std::endian::little, "the hash reads keys in little-endian words");

struct SipState {
  std::uint64_t v0, v1, v2, v3;

  void round() {
    v0 += v1;
    v1 = std::rotl(v1, 13) ^ v0;
    v0 = std::rotl(v0, 32);
    v2 += v3;
    v3 = std::rotl(v3, 16) ^ v2;
    v0 += v3;
    v3 = std::rotl(v3, 21) ^ v0;
    v2 += v1;
    v1 = std::rotl(v1, 17) ^ v2;
    v2 = std::rotl(v2, 32);
  }
  void absorb(std::uint64_t word) {
    v3 ^= word;
    round();
    v0 ^= word;
  }
  std::uint64_t squeeze() {
    round();
    round();
    round();
    return v0 ^ v1 ^ v2 ^ v3;
  }
};

std::uint64_t load_word(const char* from) {
  std::uint64_t word = 0;
  std::memcpy(&word, from, sizeof(word));
  return word;
}

}  // namespace

KeyId hash_key(std::string_view key, const KeyHashSecret& secret) {
  SipState state{secret.low ^ 0x736f6d6570736575u, secret.high ^ 0x646f72616e646f6du ^ 0xee,
                 secret.low ^ 0x6c7967656e657261u, secret.high ^ 0x7465646279746573u};
  const char* at = key.data();
  const char* const words_end = at + key.size() / 8 * 8;
  for (; at != words_end; at += 8) state.absorb(load_word(at));
  std::uint64_t last = std::uint64_t{key.size()} << 56;
  for (std::size_t i = 0; i < key.size() % 8; ++i) {
    last |= std::uint64_t{static_cast<unsigned char>(at[i])} << (8 * i);
  }
  state.absorb(last);
  state.v2 ^= 0xee;
  KeyId id;
  id.low = state.squeeze();
  state.v1 ^= 0xdd;
  id.high = state.squeeze();
  if (id == KeyId{}) id.low = 1;  // the id of all zeros marks an empty slot of the table
  return id;
}

}  // namespace kilokv::engine
