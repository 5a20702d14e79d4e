#include "engine/exec/equal_words.hpp"

#include <algorithm>
#include <map>
#include <string_view>
#include <vector>

#include "engine/table/blob_store.hpp"

namespace kilokv::engine {

void EqualWords::collect(const TransactionColumns& columns, const BatchResolver& resolver,
                         const BatchRecords& records) {
  words_.clear();
  begin_.assign(columns.value_end.size(), 0);
  end_.assign(columns.value_end.size(), 0);
  std::map<std::string_view, std::vector<std::uint64_t>> words_of;  // by the contents that are asked for
  const auto for_guards = [&](const auto& f) {
    for (std::size_t g = 0; g < columns.guard_kind.size(); ++g) {
      if (columns.guard_kind[g] != static_cast<std::uint8_t>(GuardKind::bytes_equal)) continue;
      f(static_cast<std::size_t>(columns.guard_operand[g]));
    }
  };
  for_guards([&](std::size_t value) { words_of[columns.value(value)]; });
  if (words_of.empty()) return;
  const auto add = [&](std::uint64_t word) {
    const auto found = words_of.find(BlobStore::bytes(word));
    if (found != words_of.end()) found->second.push_back(word);
  };
  const std::vector<std::uint64_t>& cells = records.cells();
  for (std::size_t d = 0; d < records.size(); ++d) {
    if (type_of(cells[2 * d + 1]) == ValueType::bytes) add(cells[2 * d]);
  }
  for (std::size_t v = 0; v < end_.size(); ++v) {
    if (resolver.value_word()[v] != 0) add(resolver.value_word()[v]);
  }
  std::map<std::string_view, std::uint32_t> begin_of;
  for (auto& [content, words] : words_of) {
    std::sort(words.begin(), words.end());
    words.erase(std::unique(words.begin(), words.end()), words.end());
    begin_of[content] = static_cast<std::uint32_t>(words_.size());
    words_.insert(words_.end(), words.begin(), words.end());
  }
  for_guards([&](std::size_t value) {
    const std::string_view content = columns.value(value);
    begin_[value] = begin_of[content];
    end_[value] = begin_[value] + static_cast<std::uint32_t>(words_of[content].size());
  });
}

}  // namespace kilokv::engine
