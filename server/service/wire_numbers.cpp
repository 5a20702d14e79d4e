// The protocol (proto/kilokv/v1) and engine/txn/program.hpp number the kinds of guards, operations, operands, outcomes
// and lists alike, because decoders and encoders copy these numbers. This file only makes the compiler check it. Each
// switch is without `default`, so a new kind of the engine does not compile until it has its number in the protocol.
#include "engine/txn/program.hpp"
#include "kilokv/v1/columns.pb.h"
#include "kilokv/v1/transaction.pb.h"

namespace kilokv::server {
namespace {

using engine::FailedIn;
using engine::GuardKind;
using engine::OnFalse;
using engine::Operand;
using engine::OpKind;
using engine::Outcome;

constexpr int kNoNumber = -1;

constexpr int wire(GuardKind kind) {
  switch (kind) {
    case GuardKind::exists: return v1::GUARD_KIND_EXISTS;
    case GuardKind::absent: return v1::GUARD_KIND_ABSENT;
    case GuardKind::equal: return v1::GUARD_KIND_EQUAL;
    case GuardKind::not_equal: return v1::GUARD_KIND_NOT_EQUAL;
    case GuardKind::less: return v1::GUARD_KIND_LESS;
    case GuardKind::less_equal: return v1::GUARD_KIND_LESS_EQUAL;
    case GuardKind::greater: return v1::GUARD_KIND_GREATER;
    case GuardKind::greater_equal: return v1::GUARD_KIND_GREATER_EQUAL;
    case GuardKind::version_equal: return v1::GUARD_KIND_VERSION_EQUAL;
    case GuardKind::unchanged: return v1::GUARD_KIND_UNCHANGED;
    case GuardKind::bytes_equal: return v1::GUARD_KIND_BYTES_EQUAL;
    case GuardKind::range_unchanged: return v1::GUARD_KIND_RANGE_UNCHANGED;
    case GuardKind::time_before: return v1::GUARD_KIND_TIME_BEFORE;
    case GuardKind::time_after: return v1::GUARD_KIND_TIME_AFTER;
  }
  return kNoNumber;
}

constexpr int wire(OpKind kind) {
  switch (kind) {
    case OpKind::get: return v1::OPERATION_KIND_GET;
    case OpKind::put: return v1::OPERATION_KIND_PUT;
    case OpKind::del: return v1::OPERATION_KIND_DELETE;
    case OpKind::add: return v1::OPERATION_KIND_ADD;
    case OpKind::range_get: return v1::OPERATION_KIND_RANGE_GET;
    case OpKind::delete_range: return v1::OPERATION_KIND_DELETE_RANGE;
    case OpKind::range_get_reverse: return v1::OPERATION_KIND_RANGE_GET_REVERSE;
  }
  return kNoNumber;
}

constexpr int wire(Operand operand) {
  switch (operand) {
    case Operand::integer: return v1::OPERAND_KIND_INTEGER;
    case Operand::bytes: return v1::OPERAND_KIND_BYTES;
    case Operand::get: return v1::OPERAND_KIND_GET;
    case Operand::get_negated: return v1::OPERAND_KIND_GET_NEGATED;
    case Operand::commit_version: return v1::OPERAND_KIND_COMMIT_VERSION;
    case Operand::batch_time: return v1::OPERAND_KIND_BATCH_TIME;
  }
  return kNoNumber;
}

constexpr int wire(OnFalse on_false) {
  switch (on_false) {
    case OnFalse::fail: return v1::ON_FALSE_FAIL;
    case OnFalse::wait: return v1::ON_FALSE_WAIT;
  }
  return kNoNumber;
}

constexpr int wire(FailedIn list) {
  switch (list) {
    case FailedIn::none: return v1::FAILED_IN_NONE;
    case FailedIn::guards: return v1::FAILED_IN_GUARDS;
    case FailedIn::then_ops: return v1::FAILED_IN_THEN;
    case FailedIn::else_ops: return v1::FAILED_IN_ELSE;
  }
  return kNoNumber;
}

// `undecided` and `postponed` never reach a client. The protocol uses the number of `postponed` for CANCELLED, which is
// no outcome of the engine.
constexpr int wire(Outcome outcome) {
  switch (outcome) {
    case Outcome::undecided: return kNoNumber;
    case Outcome::committed: return v1::OUTCOME_COMMITTED;
    case Outcome::guard_failed: return v1::OUTCOME_GUARD_FAILED;
    case Outcome::wait_expired: return v1::OUTCOME_WAIT_EXPIRED;
    case Outcome::overflow: return v1::OUTCOME_OVERFLOW;
    case Outcome::type_mismatch: return v1::OUTCOME_TYPE_MISMATCH;
    case Outcome::postponed: return kNoNumber;
  }
  return kNoNumber;
}

// Whether the numbers from `first` to `last` mean the same in the protocol and in the engine, and no others are known.
template <class Kind>
constexpr bool same_numbers(int first, int last) {
  for (int number = 0; number < 256; ++number) {
    const int expected = number >= first && number <= last ? number : kNoNumber;
    if (wire(static_cast<Kind>(number)) != expected) return false;
  }
  return true;
}

static_assert(same_numbers<GuardKind>(engine::kGuardKindMin, v1::GuardKind_MAX));
static_assert(same_numbers<OpKind>(engine::kOpKindMin, v1::OperationKind_MAX));
static_assert(same_numbers<Operand>(0, v1::OperandKind_MAX));
static_assert(same_numbers<OnFalse>(0, v1::OnFalse_MAX));
static_assert(same_numbers<FailedIn>(0, v1::FailedIn_MAX));
static_assert(same_numbers<Outcome>(v1::OUTCOME_COMMITTED, v1::OUTCOME_CANCELLED - 1));
static_assert(v1::Outcome_MAX == v1::OUTCOME_CANCELLED);

}  // namespace
}  // namespace kilokv::server
