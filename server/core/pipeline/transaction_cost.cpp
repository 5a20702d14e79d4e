#include "server/core/pipeline/transaction_cost.hpp"

#include <algorithm>
#include <limits>

#include "engine/txn/kinds.hpp"
#include "engine/txn/program.hpp"
#include "engine/txn/validate.hpp"
#include "server/core/sessions/stored_results.hpp"

namespace kilokv::server {
namespace {

using engine::GuardKind;
using engine::Operand;
using engine::OpKind;

// The longest forms of what docs/log-format.md and stored_results.cpp describe. The fixed parts of a record and of a
// session entry count for each transaction, because each may be alone in its batch.
constexpr std::uint64_t kRecord =
    96 + 5 * 9 + 4 + 2 * 9 + 4;  // header, a least value and width per column, number of expiries, checksum
constexpr std::uint64_t kWrite = 1 + 4 + 8 + 2;  // type, rank step, integer, key length
constexpr std::uint64_t kValueLength = 4;
constexpr std::uint64_t kExpiry = 4 + 8;  // write step, time
constexpr std::uint64_t kSessionEntry = 1 + 16 + 8 + 8 + 16 + 4 + 4;
constexpr std::uint64_t kSlice = 1 + 5 + 10 + 10 + 1;            // version, size, batch, time, end
constexpr std::uint64_t kRow = 1 + 5 + 10 + 1 + 1 + 5 + 10 + 5;  // head, index, admitted, extension, failed, base, rank
constexpr std::uint64_t kItem = 1 + 5 + 2 + 10 + 9;              // tag, operation, key length, integer, version
constexpr std::uint64_t kDeletedKey = kWrite + engine::kKeyBytesMax;

// The most records that `range unchanged` may read, whatever its range: those of three chunks of the engine's ordered
// index.
constexpr std::uint64_t kRangeGuardReads = std::uint64_t{3} * 128;

// Finding both ends of a range in the ordered index takes as long as this many reads.
constexpr std::uint64_t kRangeSteps = 16;
// A key that is not there is made before the batch runs, and removed after it if nobody has written it. That takes as
// long as this many reads.
constexpr std::uint64_t kWriteSteps = 2;
// The key of a GET is looked up before the batch runs, also where the GET does not run and so is no read.
constexpr std::uint64_t kLookUpSteps = 1;
// The passes of a batch may evaluate the guards of a postponed transaction again (kWaitPassesMax). Most do so less
// often.
constexpr std::uint64_t kGuardsOfWaiting = 4;

// How BatchParts counts values that may be returned.
constexpr std::uint64_t kBytesPerRead = std::uint64_t{16} << 10;
constexpr std::uint64_t kReturnedReadsMax = (std::uint64_t{4} << 20) / kBytesPerRead;

// The cost of one list of operations: the list of a committed transaction, or that of a transaction whose guard failed.
struct ListCost {
  std::uint64_t written_bytes = 0, copied_values = 0, stored_bytes = 0, stored_values = 0, reads = 0, steps = 0;
  std::uint64_t look_ups = 0;    // of GETs
  std::uint64_t kept_bytes = 0;  // stored, at the largest value that is known
  std::uint64_t named_bytes = 0;
  NewData data;  // of PUTs and ADDs
};

std::uint64_t value_bytes(const engine::TransactionColumns& columns, std::int64_t i) {
  return columns.value(static_cast<std::size_t>(i)).size();
}

std::uint64_t range_bytes(const engine::TransactionColumns& columns, std::uint32_t range) {
  return columns.range_from(range).size() + columns.range_to(range).size();
}

// The length of a guard's other key, or of the value that it compares with.
std::uint64_t guard_constant_bytes(const engine::TransactionColumns& columns, std::uint32_t guard) {
  if (columns.guard_other[guard] != engine::kNone) return columns.key(columns.guard_other[guard]).size();
  if (static_cast<GuardKind>(columns.guard_kind[guard]) != GuardKind::bytes_equal) return 0;
  return value_bytes(columns, columns.guard_operand[guard]);
}

void add_new_key(std::size_t key_bytes, NewData* data) {
  ++data->records;
  data->bytes += engine::new_key_bytes(key_bytes);
  const std::uint64_t entry = engine::key_entry_bytes(key_bytes);
  data->entry_bytes += entry;
  data->longest_entry = std::max(data->longest_entry, entry);
}

ListCost list_cost(const engine::TransactionColumns& columns, std::uint32_t begin, std::uint32_t end,
                   std::uint64_t kept_value, std::uint64_t result_bytes_max) {
  ListCost cost;
  auto expiry = std::lower_bound(columns.expiry_op.begin(), columns.expiry_op.end(), begin);
  for (std::uint32_t i = begin; i < end; ++i) {
    const std::uint32_t key = columns.op_key[i];
    const bool sets_expiry = expiry != columns.expiry_op.end() && *expiry == i;
    if (sets_expiry) {
      ++expiry;
      cost.written_bytes += kExpiry;
      cost.data.bytes += engine::expiry_bytes();
    }
    const bool of_range = uses_range(static_cast<OpKind>(columns.op_kind[i]));
    cost.named_bytes += of_range ? range_bytes(columns, key) : columns.key(key).size();
    if (of_range) cost.steps += kRangeSteps;
    switch (static_cast<OpKind>(columns.op_kind[i])) {
      case OpKind::get:
        cost.stored_bytes += kItem + columns.key(key).size();
        cost.kept_bytes += kItem + columns.key(key).size() + kept_value;
        ++cost.stored_values;
        ++cost.reads;
        ++cost.look_ups;
        break;
      case OpKind::range_get:
      case OpKind::range_get_reverse:
        cost.stored_bytes += result_bytes_max;
        cost.kept_bytes +=
            std::min(result_bytes_max, columns.range_limit[key] * (kItem + engine::kKeyBytesMax + kept_value));
        cost.reads += columns.range_limit[key];
        break;
      case OpKind::delete_range:
        cost.written_bytes += columns.range_limit[key] * kDeletedKey;
        cost.reads += columns.range_limit[key];
        break;
      case OpKind::put:
        cost.steps += kWriteSteps;
        add_new_key(columns.key(key).size(), &cost.data);
        if (columns.op_operand[i] == static_cast<std::uint8_t>(Operand::bytes)) {
          const std::uint64_t bytes = value_bytes(columns, columns.op_value[i]);
          cost.written_bytes += kValueLength + bytes;
          cost.named_bytes += bytes;
          cost.data.bytes += engine::new_value_bytes(bytes);
        } else if (columns.op_operand[i] == static_cast<std::uint8_t>(Operand::get)) {
          cost.written_bytes += kValueLength;
          ++cost.copied_values;
          ++cost.data.copied_values;
        }
        cost.written_bytes += kWrite + columns.key(key).size();
        break;
      case OpKind::add:
        add_new_key(columns.key(key).size(), &cost.data);
        if (!sets_expiry) cost.written_bytes += kExpiry;  // the key may keep the one that it has
        [[fallthrough]];
      case OpKind::del:
        cost.steps += kWriteSteps;
        cost.written_bytes += kWrite + columns.key(key).size();
        break;
    }
  }
  return cost;
}

// Adds the keys, ranges and constants of the guards to `named_bytes`. `waits`: whether one of them may wait.
std::uint64_t guard_reads(const engine::TransactionColumns& columns, std::size_t t, std::uint64_t* named_bytes,
                          bool* waits) {
  std::uint64_t reads = 0;
  for (std::uint32_t g = columns.guard_begin(t); g < columns.guard_end[t]; ++g) {
    const bool of_range = uses_range(static_cast<GuardKind>(columns.guard_kind[g]));
    reads += of_range ? kRangeGuardReads : 1;
    *named_bytes += of_range ? range_bytes(columns, columns.guard_key[g]) : columns.key_of_guard(g).size();
    *named_bytes += guard_constant_bytes(columns, g);
    *waits |= columns.guard_on_false[g] == static_cast<std::uint8_t>(engine::OnFalse::wait);
  }
  return reads;
}

// Adds the deciding guard's value, which is stored with the results of the else-operations and of WAIT_EXPIRED.
void add_guard_value(const engine::TransactionColumns& columns, std::size_t t, std::uint64_t kept_value,
                     ListCost* cost) {
  std::size_t key_bytes = 0;
  bool shown = false;
  for (std::uint32_t g = columns.guard_begin(t); g < columns.guard_end[t]; ++g) {
    if (uses_range(static_cast<GuardKind>(columns.guard_kind[g]))) continue;
    shown = true;
    key_bytes = std::max(key_bytes, columns.key_of_guard(g).size());
  }
  if (!shown) return;
  cost->stored_bytes += kItem + key_bytes;
  cost->kept_bytes += kItem + key_bytes + kept_value;
  ++cost->stored_values;
}

}  // namespace

// A transaction may be alone in its batch, and so in its slice. One byte says that the reads are dropped.
const std::uint64_t kStoredTransactionBytes = kSlice + kRow + 1 + kSliceBytes;

TransactionCost cost_of(const engine::TransactionColumns& columns, std::size_t t, bool in_session,
                        std::uint64_t largest_value, std::uint64_t result_bytes_max) {
  const std::uint64_t kept_value = std::min(largest_value, result_bytes_max);
  ListCost list = list_cost(columns, columns.then_begin(t), columns.then_end[t], kept_value, result_bytes_max);
  std::uint64_t named_bytes = 0;
  bool waits = false;
  const std::uint64_t guards = guard_reads(columns, t, &named_bytes, &waits);
  // A batch looks up and makes the keys of both lists before it runs, also those of else-operations that cannot run.
  if (columns.else_end[t] > columns.then_end[t]) {
    const ListCost other = list_cost(columns, columns.then_end[t], columns.else_end[t], 0, 0);
    named_bytes += other.named_bytes;
    list.data += other.data;
    list.steps += other.steps + kLookUpSteps * other.look_ups;
  }
  if (guards > 0) {  // otherwise the else-operations cannot run
    ListCost other = list_cost(columns, columns.then_end[t], columns.else_end[t], kept_value, result_bytes_max);
    if (in_session) add_guard_value(columns, t, kept_value, &other);
    list = {std::max(list.written_bytes, other.written_bytes),
            std::max(list.copied_values, other.copied_values),
            std::max(list.stored_bytes, other.stored_bytes),
            std::max(list.stored_values, other.stored_values),
            std::max(list.reads, other.reads),
            list.steps,
            list.look_ups,
            std::max(list.kept_bytes, other.kept_bytes),
            list.named_bytes,
            list.data};
  }
  TransactionCost cost{{kRecord + list.written_bytes, list.copied_values, 0},
                       guards,
                       list.reads,
                       list.steps + (waits ? (kGuardsOfWaiting - 1) * guards : 0),
                       0,
                       named_bytes + list.named_bytes,
                       list.data.records > 0 ? LogUse::new_data : LogUse::reads_and_deletes,
                       list.data};
  if (!in_session) return cost;
  cost.log.bytes += kSessionEntry + kSlice + kRow;
  // Reads beyond the limit are dropped; the note of that takes a byte.
  const std::uint64_t stored = list.stored_bytes + list.stored_values * kept_value;
  cost.stored_bytes = kStoredTransactionBytes + std::min(list.kept_bytes, result_bytes_max);
  if (stored >= result_bytes_max && kept_value == result_bytes_max && result_bytes_max > 0) {
    cost.log.stored_values = 1;  // no value is stored with more than the limit
  } else if (stored >= result_bytes_max) {
    cost.log.bytes += std::max<std::uint64_t>(result_bytes_max, 1);
  } else {
    cost.log.bytes += list.stored_bytes;
    cost.log.stored_values = list.stored_values;
  }
  return cost;
}

bool costs_as_before(const engine::TransactionColumns& columns, std::size_t t) {
  if (!columns.expiry_op.empty()) return false;
  const std::uint32_t guard = columns.guard_begin(t), guards = columns.guard_end[t] - guard;
  const std::uint32_t guard_before = columns.guard_begin(t - 1);
  const std::uint32_t op = columns.then_begin(t), then = columns.then_end[t] - op, ops = columns.else_end[t] - op;
  const std::uint32_t op_before = columns.then_begin(t - 1);
  if (guards != guard - guard_before || then != columns.then_end[t - 1] - op_before || ops != op - op_before) {
    return false;
  }
  const auto key_size = [&](std::uint32_t key) { return columns.key(key).size(); };
  for (std::uint32_t i = 0; i < guards; ++i) {
    const std::uint8_t kind = columns.guard_kind[guard + i];
    if (kind != columns.guard_kind[guard_before + i]) return false;
    if (guard_constant_bytes(columns, guard + i) != guard_constant_bytes(columns, guard_before + i)) return false;
    if (uses_range(static_cast<GuardKind>(kind))
            ? range_bytes(columns, columns.guard_key[guard + i]) !=
                  range_bytes(columns, columns.guard_key[guard_before + i])
            : columns.key_of_guard(guard + i).size() != columns.key_of_guard(guard_before + i).size()) {
      return false;
    }
  }
  for (std::uint32_t i = 0; i < ops; ++i) {
    const std::uint8_t kind = columns.op_kind[op + i], operand = columns.op_operand[op + i];
    if (kind != columns.op_kind[op_before + i] || operand != columns.op_operand[op_before + i]) return false;
    const std::uint32_t key = columns.op_key[op + i], key_before = columns.op_key[op_before + i];
    if (uses_range(static_cast<OpKind>(kind))) {
      if (columns.range_limit[key] != columns.range_limit[key_before]) return false;
      if (range_bytes(columns, key) != range_bytes(columns, key_before)) return false;
      continue;
    }
    if (key_size(key) != key_size(key_before)) return false;
    if (operand == static_cast<std::uint8_t>(Operand::bytes) &&
        value_bytes(columns, columns.op_value[op + i]) != value_bytes(columns, columns.op_value[op_before + i])) {
      return false;
    }
  }
  return true;
}

BatchParts::BatchParts(std::uint64_t largest_value, const DatabaseOptions& options)
    : copied_bytes_(largest_value),
      stored_bytes_(std::min(largest_value, options.result_bytes_max) / kStoredValueParts),
      reads_per_read_(largest_value / kBytesPerRead),
      least_(std::max(1.0, static_cast<double>(kWholeBatch) / static_cast<double>(options.batch_max_transactions))),
      parts_per_byte_(static_cast<double>(kWholeBatch) / static_cast<double>(options.batch_max_bytes)),
      parts_per_read_(static_cast<double>(kWholeBatch) / static_cast<double>(options.batch_max_reads)),
      parts_per_step_(static_cast<double>(kWholeBatch) /
                      static_cast<double>(std::max(options.batch_max_reads, kBatchWorkMax))) {}

std::uint32_t BatchParts::of(const TransactionCost& cost) const {
  const std::uint64_t bytes =
      cost.log.bytes + cost.log.copied_values * copied_bytes_ + cost.log.stored_values * stored_bytes_;
  const std::uint64_t reads = cost.guards + cost.reads + std::min(cost.reads * reads_per_read_, kReturnedReadsMax);
  const double part = std::max({least_, static_cast<double>(std::max(bytes, cost.named_bytes)) * parts_per_byte_,
                                static_cast<double>(reads) * parts_per_read_,
                                static_cast<double>(cost.guards + cost.reads + cost.steps) * parts_per_step_});
  return static_cast<std::uint32_t>(std::min<double>(part, std::numeric_limits<std::uint32_t>::max()));
}

}  // namespace kilokv::server
