#include "server/core/digest.hpp"

#define XXH_STATIC_LINKING_ONLY  // for the definition of the state, which lives on the stack
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <string_view>

#include "engine/txn/kinds.hpp"

namespace kilokv::server {
namespace {

using engine::GuardKind;
using engine::kNone;
using engine::Operand;
using engine::OpKind;
using engine::TransactionColumns;

// Gathers small fields into blocks, because an update of the hash costs more than the few bytes of a field.
class DigestWriter {
 public:
  DigestWriter() { XXH3_128bits_reset(&state_); }

  template <class... T>
  void put(T... values) {
    make_room((sizeof values + ...));
    (copy(&values, sizeof values), ...);
  }

  void put_bytes(std::string_view bytes) {
    put(bytes.size());
    if (bytes.empty()) return;  // there may be no pointer, either
    if (bytes.size() == kUsualKeyBytes) {
      make_room(kUsualKeyBytes);
      copy(bytes.data(), kUsualKeyBytes);  // the compiler inlines this copy
      return;
    }
    make_room(bytes.size());
    if (bytes.size() > block_.size()) {
      XXH3_128bits_update(&state_, bytes.data(), bytes.size());
      return;
    }
    copy(bytes.data(), bytes.size());
  }

  Hash128 finish() {
    flush();
    const XXH128_hash_t hash = XXH3_128bits_digest(&state_);
    return {hash.low64, hash.high64};
  }

 private:
  static constexpr std::size_t kUsualKeyBytes = 16;

  void make_room(std::size_t bytes) {
    if (used_ + bytes > block_.size()) [[unlikely]]
      flush();
  }
  void copy(const void* from, std::size_t bytes) {
    std::memcpy(block_.data() + used_, from, bytes);
    used_ += bytes;
  }
  void flush() {
    XXH3_128bits_update(&state_, block_.data(), used_);
    used_ = 0;
  }

  XXH3_state_t state_;
  std::array<char, 4096> block_;
  std::size_t used_ = 0;
};

void put_guard(const TransactionColumns& columns, std::size_t g, DigestWriter* writer) {
  const auto kind = static_cast<GuardKind>(columns.guard_kind[g]);
  writer->put(columns.guard_kind[g], columns.guard_on_false[g]);
  if (uses_range(kind)) {
    writer->put_bytes(columns.range_from(columns.guard_key[g]));
    writer->put_bytes(columns.range_to(columns.guard_key[g]));
    writer->put(columns.guard_operand[g]);
    return;
  }
  writer->put_bytes(columns.key_of_guard(g));  // no key is empty
  if (operand_of(kind) == engine::GuardOperand::nothing) {
    return;
  }
  if (operand_of(kind) == engine::GuardOperand::time_or_key) {
    if (columns.guard_key[g] == kNone) writer->put(columns.guard_operand[g]);
    return;
  }
  const std::uint32_t other = columns.guard_other[g];
  writer->put(static_cast<std::uint8_t>(other != kNone));
  if (other != kNone) {
    writer->put_bytes(columns.key(other));
  } else if (takes_bytes(kind)) {
    writer->put_bytes(columns.value(static_cast<std::size_t>(columns.guard_operand[g])));
  } else {
    writer->put(columns.guard_operand[g]);
  }
}

void put_operand(const TransactionColumns& columns, std::size_t m, DigestWriter* writer) {
  const std::uint8_t operand = columns.op_operand[m];
  switch (static_cast<Operand>(operand)) {
    case Operand::bytes:
      writer->put(operand);
      writer->put_bytes(columns.value(static_cast<std::size_t>(columns.op_value[m])));
      break;
    case Operand::integer:
    case Operand::get:
    case Operand::get_negated: writer->put(operand, columns.op_value[m]); break;
    case Operand::commit_version:
    case Operand::batch_time: writer->put(operand); break;
  }
}

void put_operation(const TransactionColumns& columns, std::size_t m, DigestWriter* writer) {
  writer->put(columns.op_kind[m]);
  switch (static_cast<OpKind>(columns.op_kind[m])) {
    case OpKind::get:
    case OpKind::del: writer->put_bytes(columns.key(columns.op_key[m])); break;
    case OpKind::put:
    case OpKind::add:
      writer->put_bytes(columns.key(columns.op_key[m]));
      put_operand(columns, m, writer);
      break;
    case OpKind::range_get:
    case OpKind::delete_range:
    case OpKind::range_get_reverse:
      writer->put_bytes(columns.range_from(columns.op_key[m]));
      writer->put_bytes(columns.range_to(columns.op_key[m]));
      writer->put(columns.range_limit[columns.op_key[m]]);
      break;
  }
}

// Of the operations [begin, end).
std::span<const std::uint32_t> expiries_of(const TransactionColumns& columns, std::uint32_t begin, std::uint32_t end) {
  if (columns.expiry_op.empty()) return {};
  const auto first = std::lower_bound(columns.expiry_op.begin(), columns.expiry_op.end(), begin);
  return {first, std::lower_bound(first, columns.expiry_op.end(), end)};
}

void put_expiries(const TransactionColumns& columns, std::span<const std::uint32_t> expiries, std::uint32_t begin,
                  DigestWriter* writer) {
  writer->put(static_cast<std::uint32_t>(expiries.size()));
  for (const std::uint32_t& op : expiries) {
    const auto i = static_cast<std::size_t>(&op - columns.expiry_op.data());
    writer->put(op - begin, columns.expiry_kind[i], columns.expiry_us[i]);
  }
}

}  // namespace

Hash128 digest_of(const TransactionColumns& columns) {
  DigestWriter writer;
  writer.put(columns.size());
  for (std::size_t t = 0; t < columns.size(); ++t) {
    const std::uint32_t guard_begin = columns.guard_begin(t), then_begin = columns.then_begin(t);
    // A timeout is never negative. So a negative number stands for a timeout with expire_runs_else. No list has 2^31
    // operations. So the highest bit of a count says that the expiries follow.
    const std::span<const std::uint32_t> expiries = expiries_of(columns, then_begin, columns.else_end[t]);
    const std::uint32_t has_expiries = expiries.empty() ? 0 : std::uint32_t{1} << 31;
    const DurationUs timeout_us = columns.wait_timeout_us[t];
    writer.put(columns.precedence[t], columns.expire_runs_else[t] != 0 ? -1 - timeout_us : timeout_us,
               columns.guard_end[t] - guard_begin, (columns.then_end[t] - then_begin) | has_expiries,
               columns.else_end[t] - columns.then_end[t]);
    if (!expiries.empty()) put_expiries(columns, expiries, then_begin, &writer);
    for (std::uint32_t g = guard_begin; g < columns.guard_end[t]; ++g) {
      put_guard(columns, g, &writer);
    }
    for (std::uint32_t m = then_begin; m < columns.else_end[t]; ++m) {
      put_operation(columns, m, &writer);
    }
  }
  return writer.finish();
}

Hash128 digest_of(std::string_view bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return {hash.low64, hash.high64};
}

}  // namespace kilokv::server
