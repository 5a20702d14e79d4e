// The large read set of an interactive transaction. Its batch has no other transaction. The read set is made of the
// leading guards of kind `version ==` that FAIL when they are false, each with its own key.
// exec/validate/cooperative_validator.hpp checks these guards together, before the transaction runs. Their keys are not
// resolved one by one, because the rest of the transaction usually does not use them.
#pragma once

#include <cstdint>
#include <span>

#include "engine/base/types.hpp"
#include "engine/stm/validator.hpp"
#include "engine/table/record_table.hpp"
#include "engine/txn/columns.hpp"

namespace kilokv::engine {

// Check i: key ids[i] has the version versions[i]. Both spans have the same size. The table does not change while
// checks run.
struct ReadSet {
  const RecordTable& table;
  std::span<const KeyId> ids;
  std::span<const std::int64_t> versions;

  std::uint32_t size() const { return static_cast<std::uint32_t>(ids.size()); }
  // The first of the checks [begin, end) that fails. kAllValid: none fails. Any thread may call it.
  std::uint32_t first_stale(std::uint32_t begin, std::uint32_t end) const;
};

// How many leading guards make the read set: guard i names key i, has the kind `version ==`, and FAILs when it is
// false. 0 if the batch does not have exactly one transaction.
std::uint32_t count_read_set(const TransactionColumns& columns);

// How the back (stm/validator.hpp) checks a block on threads of the host. Each thread checks a run of neighbours.
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
