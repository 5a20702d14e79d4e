// The large read set of an interactive transaction: the leading guards `version ==` that fail, each with a key of its
// own, of a batch that is this one transaction. They are checked all together ahead of it
// (exec/validate/cooperative_validator), and not resolved one by one: their keys have no part in the rest.
#pragma once

#include <cstdint>
#include <span>

#include "engine/base/types.hpp"
#include "engine/stm/validator.hpp"
#include "engine/table/record_table.hpp"
#include "engine/txn/columns.hpp"

namespace kilokv::engine {

// Check i: the key's version is this one. Spans of one size; the table does not change meanwhile.
struct ReadSet {
  const RecordTable& table;
  std::span<const KeyId> ids;
  std::span<const std::int64_t> versions;

  std::uint32_t size() const { return static_cast<std::uint32_t>(ids.size()); }
  // The first of the checks [begin, end) that fails; kAllValid: none. From any thread.
  std::uint32_t first_stale(std::uint32_t begin, std::uint32_t end) const;
};

// How many guards make the read set: guard i names key i and is a `version ==` that fails. 0: no batch of one.
std::uint32_t count_read_set(const TransactionColumns& columns);

// For the back (stm/validator.hpp) on threads of the host: a thread's share of a block is a run of neighbours.
class ReadSetCheck {
 public:
  explicit ReadSetCheck(const ReadSet& set) : set_(set) {}

  template <class P>
  std::uint32_t first_stale(P& p, std::uint64_t offset, std::uint32_t count) const {
    const std::uint32_t each = (count + p.threads() - 1) / p.threads();
    const std::uint32_t begin = p.thread() * each;
    if (begin >= count) return kAllValid;
    const auto at = static_cast<std::uint32_t>(offset);
    const std::uint32_t stale = set_.first_stale(at + begin, at + (begin + each < count ? begin + each : count));
    return stale == kAllValid ? kAllValid : stale - at;
  }

 private:
  const ReadSet& set_;
};

}  // namespace kilokv::engine
