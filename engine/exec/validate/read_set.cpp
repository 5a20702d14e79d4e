#include "engine/exec/validate/read_set.hpp"

#include <algorithm>
#include <array>

namespace kilokv::engine {

std::uint32_t ReadSet::first_stale(std::uint32_t begin, std::uint32_t end) const {
  // So many keys are looked up together. Their slots are then still in the caches when their versions are compared.
  constexpr std::uint32_t kChunk = 512;
  std::array<std::uint32_t, kChunk> slots;
  for (std::uint32_t at = begin; at < end;) {
    const std::uint32_t count = std::min(kChunk, end - at);
    table.find_all(ids.subspan(at, count), slots.data());
    for (std::uint32_t i = 0; i < count; ++i) {
      if (version_of(table[slots[i]].cell.tag) != static_cast<Version>(versions[at + i])) return at + i;
    }
    at += count;
  }
  return kAllValid;
}

std::uint32_t count_read_set(const TransactionColumns& columns) {
  if (columns.size() != 1) return 0;
  const std::uint32_t guards = columns.guard_end[0];
  std::uint32_t count = 0;
  while (count < guards && columns.guard_kind[count] == static_cast<std::uint8_t>(GuardKind::version_equal) &&
         columns.guard_on_false[count] == static_cast<std::uint8_t>(OnFalse::fail) &&
         columns.guard_key[count] == count) {
    ++count;
  }
  return count;
}

}  // namespace kilokv::engine
