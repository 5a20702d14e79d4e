#include "engine/exec/collect/write_back.hpp"

#include "engine/base/prefetch.hpp"
#include "engine/table/cell_digest.hpp"

namespace kilokv::engine {
namespace {

constexpr std::uint32_t kPrefetchAhead = 16;  // operations

}  // namespace

void WriteBack::write(std::uint32_t first, std::uint32_t last) {
  const TransactionColumns& columns = *writes_.columns;
  // Plain pointers, because the compiler would read the members again after each write of a flag.
  const std::uint32_t* const key_of = columns.op_key.data();
  const std::uint32_t* const slot_of_key = writes_.slot_of_key;
  const KeyId* const ids = columns.key_id.data();
  std::uint8_t* const flags_of = results_->op_flags.data();
  Cell* const after_of = results_->op_cell.data();
  Cell* const before_of = before_;
  Slot* const slots = slots_;
  const auto operations = static_cast<std::uint32_t>(columns.op_kind.size());
  std::uint64_t change = 0;
  bool has_new = false, has_bytes = false, is_wrong = false;
  writes_.order->for_each(*results_, first, last, [&](std::uint32_t t) {
    const OperationRange ran = operations_run(columns, *results_, t);
    const Version version = writes_.header.first_version + results_->rank[t];
    for (std::uint32_t op = ran.begin; op < ran.end; ++op) {
      if (op + kPrefetchAhead < operations) {
        prefetch_for_write(slots + slot_of_key[key_of[op + kPrefetchAhead]]);
      }
      const std::uint8_t flags = flags_of[op];
      if ((flags & BatchResults::kWrote) == 0) continue;
      const std::uint32_t key = key_of[op];
      const std::uint32_t at = slot_of_key[key];
      const Cell before = slots[at].cell;
      Cell after = after_of[op];
      if ((flags & BatchResults::kDelta) != 0) {
        after.word += before.word;
        after_of[op] = after;
        flags_of[op] = BatchResults::kWrote;
      }
      before_of[op] = before;
      slots[at].cell = after;
      change += change_digest(ids[key], before, after);
      has_new |= before.tag == 0;
      has_bytes |= type_of(after.tag) == ValueType::bytes;
      is_wrong |= version_of(after.tag) != version || at == RecordTable::absent_slot();
    }
  });
  written_ = last;
  change_ += change;
  has_new_ |= has_new;
  has_bytes_ |= has_bytes;
  is_wrong_ |= is_wrong;
}

void WriteBack::take_back() const {
  const TransactionColumns& columns = *writes_.columns;
  writes_.order->for_each_back(*results_, written_, [&](std::uint32_t t) {
    const OperationRange ran = operations_run(columns, *results_, t);
    for (std::uint32_t op = ran.end; op-- > ran.begin;) {
      const bool wrote = (results_->op_flags[op] & BatchResults::kWrote) != 0;
      if (wrote) slots_[writes_.slot_of_key[columns.op_key[op]]].cell = before_[op];
    }
  });
}

}  // namespace kilokv::engine
