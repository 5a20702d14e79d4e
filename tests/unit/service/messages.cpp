#include "tests/unit/service/messages.hpp"

#include <span>

#include "engine/txn/kinds.hpp"

namespace kilokv::server::test {
namespace {

using engine::GuardKind;
using engine::GuardOperand;
using engine::OpKind;

std::uint64_t below(Generator* generator, std::uint64_t bound) { return (*generator)() % bound; }

std::string random_key(Generator* generator) {
  return std::string(1 + below(generator, 20), static_cast<char>('a' + below(generator, 26)));
}

void random_range(Generator* generator, v1::KeyRange* range) {
  range->set_from(random_key(generator));
  if (below(generator, 2) == 0) range->set_to(range->from() + "z");
}

void random_guard(Generator* generator, v1::Guard* guard) {
  const auto kind = static_cast<GuardKind>(engine::kGuardKindMin +
                                           below(generator, engine::kGuardKindMax - engine::kGuardKindMin + 1));
  guard->set_kind(static_cast<v1::GuardKind>(kind));
  guard->set_on_false(may_wait(kind) ? static_cast<v1::OnFalse>(below(generator, 2)) : v1::ON_FALSE_FAIL);
  const bool has_time = compares_time(kind) && below(generator, 2) == 0;
  if (uses_range(kind)) {
    random_range(generator, guard->mutable_range());
  } else if (!has_time) {
    guard->set_key(random_key(generator));
  }
  switch (operand_of(kind)) {
    case GuardOperand::nothing: break;
    case GuardOperand::integer_or_key:
      if (below(generator, 2) == 0) {
        guard->set_other_key(random_key(generator));
      } else {
        guard->set_integer(static_cast<std::int64_t>((*generator)()));
      }
      break;
    case GuardOperand::version: guard->set_version(below(generator, kVersionMax)); break;
    case GuardOperand::bytes: guard->set_bytes(random_key(generator)); break;
    case GuardOperand::time_or_key:
      if (has_time) guard->set_time_us((*generator)() >> 1);
      break;
  }
}

// `get`: index of an earlier GET of the list, or -1.
void random_operand(Generator* generator, bool bytes_allowed, int get, v1::Operand* operand) {
  switch (below(generator, 6)) {
    case 0: operand->set_commit_version(true); return;
    case 1: operand->set_batch_time(true); return;
    case 2:
      if (get < 0) break;
      operand->set_get(static_cast<std::uint32_t>(get));
      return;
    case 3:
      if (get < 0) break;
      operand->set_get_negated(static_cast<std::uint32_t>(get));
      return;
    case 4:
      if (!bytes_allowed) break;
      operand->set_bytes(random_key(generator));
      return;
    default: break;
  }
  operand->set_integer(static_cast<std::int64_t>((*generator)()));
}

void random_list(Generator* generator, std::uint64_t operations,
                 google::protobuf::RepeatedPtrField<v1::Operation>* list) {
  int get = -1;
  for (std::uint64_t i = 0; i < operations; ++i) {
    v1::Operation* operation = list->Add();
    const auto kind =
        static_cast<OpKind>(engine::kOpKindMin + below(generator, engine::kOpKindMax - engine::kOpKindMin + 1));
    operation->set_kind(static_cast<v1::OperationKind>(kind));
    if (uses_range(kind)) {
      random_range(generator, operation->mutable_range());
      operation->set_limit(static_cast<std::uint32_t>(1 + below(generator, 100)));
      continue;
    }
    operation->set_key(random_key(generator));
    if (may_be_operand(kind)) get = static_cast<int>(i);
    if (takes_operand(kind)) {
      random_operand(generator, takes_bytes(kind), get, operation->mutable_operand());
    }
  }
}

template <class T, class Field>
void copy(const engine::Column<T>& from, Field* to) {
  for (const T& value : from) to->Add(static_cast<typename Field::value_type>(value));
}

template <class T>
void copy(const engine::Column<T>& from, std::string* to) {
  to->assign(reinterpret_cast<const char*>(from.data()), from.size());
}

}  // namespace

v1::Transaction transfer(const std::string& from, const std::string& to, std::int64_t amount) {
  v1::Transaction transaction;
  v1::Guard* guard = transaction.add_guards();
  guard->set_kind(v1::GUARD_KIND_GREATER_EQUAL);
  guard->set_key(from);
  guard->set_integer(amount);
  for (const auto& [key, delta] : {std::pair(from, -amount), std::pair(to, amount)}) {
    v1::Operation* add = transaction.add_then();
    add->set_kind(v1::OPERATION_KIND_ADD);
    add->set_key(key);
    add->mutable_operand()->set_integer(delta);
  }
  return transaction;
}

v1::TransactionRows random_rows(Generator* generator, int transactions) {
  v1::TransactionRows rows;
  for (int i = 0; i < transactions; ++i) {
    v1::Transaction* transaction = rows.add_transactions();
    transaction->set_precedence(static_cast<std::uint32_t>(below(generator, 256)));
    transaction->set_wait_timeout_us(below(generator, 1000000));
    transaction->set_expire_runs_else(below(generator, 2) == 1);
    for (std::uint64_t g = below(generator, 4); g > 0; --g) random_guard(generator, transaction->add_guards());
    random_list(generator, 1 + below(generator, 4), transaction->mutable_then());
    random_list(generator, below(generator, 3), transaction->mutable_else_());
  }
  return rows;
}

v1::TransactionColumns to_message(const engine::TransactionColumns& c) {
  v1::TransactionColumns m;
  copy(c.guard_end, m.mutable_guard_ends());
  copy(c.then_end, m.mutable_then_ends());
  copy(c.else_end, m.mutable_else_ends());
  copy(c.precedence, m.mutable_precedence());
  copy(c.wait_timeout_us, m.mutable_wait_timeout_us());
  copy(c.expire_runs_else, m.mutable_expire_runs_else());
  copy(c.key_end, m.mutable_key_ends());
  copy(c.key_bytes, m.mutable_key_bytes());
  copy(c.guard_kind, m.mutable_guard_kind());
  copy(c.guard_on_false, m.mutable_guard_on_false());
  copy(c.guard_key, m.mutable_guard_key());
  copy(c.guard_other, m.mutable_guard_other_key());
  copy(c.guard_operand, m.mutable_guard_operand());
  copy(c.op_kind, m.mutable_operation_kind());
  copy(c.op_operand, m.mutable_operation_operand());
  copy(c.op_key, m.mutable_operation_key());
  copy(c.op_value, m.mutable_operation_value());
  copy(c.range_from_end, m.mutable_range_from_ends());
  copy(c.range_to_end, m.mutable_range_to_ends());
  copy(c.range_limit, m.mutable_range_limit());
  copy(c.range_bytes, m.mutable_range_bytes());
  copy(c.value_end, m.mutable_value_ends());
  copy(c.value_bytes, m.mutable_value_bytes());
  return m;
}

bool equal(const engine::TransactionColumns& a, const engine::TransactionColumns& b) {
  return a.precedence == b.precedence && a.wait_timeout_us == b.wait_timeout_us &&
         a.expire_runs_else == b.expire_runs_else && a.guard_end == b.guard_end && a.then_end == b.then_end &&
         a.else_end == b.else_end && a.key_id == b.key_id && a.key_end == b.key_end && a.key_bytes == b.key_bytes &&
         a.guard_kind == b.guard_kind && a.guard_on_false == b.guard_on_false && a.guard_key == b.guard_key &&
         a.guard_other == b.guard_other && a.guard_operand == b.guard_operand && a.op_kind == b.op_kind &&
         a.op_operand == b.op_operand && a.op_key == b.op_key && a.op_value == b.op_value &&
         a.range_from_end == b.range_from_end && a.range_to_end == b.range_to_end && a.range_limit == b.range_limit &&
         a.range_bytes == b.range_bytes && a.value_end == b.value_end && a.value_bytes == b.value_bytes;
}

}  // namespace kilokv::server::test
