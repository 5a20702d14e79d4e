#include "engine/exec/resolve/equal_words.hpp"

#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>
#include <vector>

#include "engine/table/blob_store.hpp"

namespace kilokv::engine {
namespace {

// The key to look up a content. A word whose content has the same key is then compared byte by byte, once.
using ContentKey = std::tuple<std::uint64_t, std::uint64_t, std::size_t>;
ContentKey key_of(Hash128 hash, std::size_t size) { return {hash.high, hash.low, size}; }

struct Content {
  std::string_view bytes;
  std::vector<std::uint64_t> words;
  std::uint32_t begin = 0;  // of its words in words_
};

}  // namespace

void EqualWords::collect(const TransactionColumns& columns, const BatchResolver& resolver, const RecordTable& table) {
  words_.clear();
  begin_.assign(columns.value_end.size(), 0);
  end_.assign(columns.value_end.size(), 0);
  std::map<ContentKey, Content> contents;  // those that a guard compares with
  const auto for_guards = [&](const auto& f) {
    for (std::size_t g = 0; g < columns.guard_kind.size(); ++g) {
      if (columns.guard_kind[g] != static_cast<std::uint8_t>(GuardKind::bytes_equal)) continue;
      f(static_cast<std::size_t>(columns.guard_operand[g]));
    }
  };
  for_guards([&](std::size_t value) {
    const std::string_view bytes = columns.value(value);
    contents[key_of(BlobStore::hash_of(bytes), bytes.size())].bytes = bytes;
  });
  if (contents.empty()) return;
  const auto add = [&](std::uint64_t word) {
    const std::string_view bytes = BlobStore::bytes(word);
    const auto found = contents.find(key_of(BlobStore::content_hash(word), bytes.size()));
    if (found != contents.end() && found->second.bytes == bytes) found->second.words.push_back(word);
  };
  std::uint64_t last_word = 0;  // a hot record is often named many times in a row
  for (std::size_t k = 0; k < columns.key_id.size(); ++k) {
    const Cell cell = table[resolver.slot_of_key()[k]].cell;
    if (type_of(cell.tag) != ValueType::bytes || cell.word == last_word) continue;
    last_word = cell.word;
    add(cell.word);
  }
  for (std::size_t v = 0; v < end_.size(); ++v) {
    if (resolver.value_word()[v] != 0) add(resolver.value_word()[v]);
  }
  for (auto& [key, content] : contents) {
    std::sort(content.words.begin(), content.words.end());
    content.words.erase(std::unique(content.words.begin(), content.words.end()), content.words.end());
    content.begin = static_cast<std::uint32_t>(words_.size());
    words_.insert(words_.end(), content.words.begin(), content.words.end());
  }
  for_guards([&](std::size_t value) {
    const std::string_view bytes = columns.value(value);
    const Content& content = contents[key_of(BlobStore::hash_of(bytes), bytes.size())];
    begin_[value] = content.begin;
    end_[value] = content.begin + static_cast<std::uint32_t>(content.words.size());
  });
}

}  // namespace kilokv::engine
