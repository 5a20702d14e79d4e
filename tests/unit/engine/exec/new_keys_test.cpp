// The new keys of a batch against a std::map.

#include "engine/exec/resolve/new_keys.hpp"

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "engine/base/key_hash.hpp"
#include "engine/exec/resolve/resolver.hpp"
#include "engine/table/record_store.hpp"
#include "engine/txn/columns.hpp"
#include "tests/unit/engine/harness.hpp"

namespace kilokv::engine {
namespace {

constexpr KeyHashSecret kSecret{3, 5};

void check(NewKeys* new_keys, const std::vector<std::string>& keys) {
  std::map<std::string, std::uint32_t> expected;
  new_keys->clear();
  for (const std::string& key : keys) {
    expected[key] = 0;
    new_keys->add(hash_key(key, kSecret), key);
  }
  new_keys->sort();
  ASSERT_EQ(new_keys->keys().size(), expected.size());
  std::uint32_t position = 0;
  for (auto& [key, at] : expected) {
    ASSERT_TRUE(new_keys->keys()[position].key == key);
    ASSERT_TRUE(new_keys->keys()[position].id == hash_key(key, kSecret));
    at = position++;
  }
  ASSERT_EQ(new_keys->positions().size(), keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) ASSERT_EQ(new_keys->positions()[i], expected[keys[i]]);
}

TEST(new_keys_are_sorted_and_each_is_there_once) {
  std::mt19937 random(20261128);
  NewKeys new_keys;
  check(&new_keys, {});
  check(&new_keys, {"one"});
  check(&new_keys, {"b", "a", "b", "a"});
  for (int round = 0; round < 200 && !test::has_failed(); ++round) {
    const std::string prefix(random() % 3 * 20, 'p');
    const unsigned kinds = round % 3 == 0 ? 2 : 256;
    std::vector<std::string> keys;
    for (std::size_t left = 1 + random() % (round % 2 == 0 ? 100 : 3000); left > 0; --left) {
      std::string key = prefix;
      for (std::size_t bytes = 1 + random() % 12; bytes > 0; --bytes)
        key.push_back(static_cast<char>(random() % kinds));
      keys.push_back(random() % 4 == 0 && !keys.empty() ? keys[random() % keys.size()] : key);
    }
    check(&new_keys, keys);
    std::sort(keys.begin(), keys.end());
    check(&new_keys, keys);
  }
}

// A batch may create many keys that it never writes. Its ranges must not look at each of them.
TEST(ranges_do_not_look_at_keys_that_are_not_written_yet) {
  RecordStore store(kSecret, 0, 1000);
  TransactionColumns columns;
  ColumnsBuilder builder(&columns, kSecret);
  builder.begin();
  for (int i = 0; i < 100; ++i) builder.op(OpKind::put, builder.key(std::to_string(i)), Operand::integer, i);
  builder.range_op(OpKind::range_get, "", "", 1);
  builder.end();
  BatchResolver resolver;
  ASSERT_TRUE(resolver.resolve(columns, 1, &store).ok());
  ASSERT_EQ(store.table().size(), std::size_t{100});
  std::size_t looked = 0;
  store.scan_live("", "", [&](std::uint32_t, std::string_view) {
    ++looked;
    return true;
  });
  EXPECT_EQ(looked, std::size_t{0});
  resolver.forget_unwritten(&store);
  EXPECT_EQ(store.table().size(), std::size_t{0});
}

}  // namespace
}  // namespace kilokv::engine
