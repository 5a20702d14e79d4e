// Random batches at the limits, without ranges, for tests:
//   - integers at the ends of 64 bits, and at the largest delta of an adder;
//   - records that change their type;
//   - deltas from commit versions and stamps;
//   - lists that are too long for a transaction with adders;
//   - waits, and many precedences.
// The same source of random numbers gives the same batches. Thread safety: none.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "engine/stm/ordered_arguments.hpp"
#include "engine/txn/columns.hpp"
#include "engine/txn/kinds.hpp"
#include "engine/workloads/random.hpp"

namespace kilokv::engine {

// The properties that the batches of a chain share.
struct EdgeShape {
  std::uint64_t keys = 2, transactions_max = 1, guards_max = 0, operations_max = 1;
  bool mostly_adds = false;
  double own_delta_chance = 0;   // of an ADD: the chance that its delta is the commit version or the stamp
  double precedence_chance = 0;  // of a transaction: the chance that it has a precedence
};

inline EdgeShape draw_edge_shape(Random* random) {
  EdgeShape shape;
  shape.keys = 2 + random->below(random->chance(0.3) ? 100 : 10);
  shape.transactions_max = 1 + random->below(random->chance(0.05) ? 1000 : 80);
  shape.guards_max = random->below(4);
  shape.operations_max = 1 + random->below(4);
  shape.mostly_adds = random->chance(0.5);
  shape.own_delta_chance = random->chance(0.3) ? 0.9 : 0.1;
  shape.precedence_chance = random->chance(0.3) ? 1 : 0.2;
  if (random->chance(0.1)) {  // the longest lists
    shape.operations_max = 1024;
    shape.guards_max = 40;
    shape.transactions_max = 12;
    shape.keys = 50 + random->below(1000);
  } else if (random->chance(0.2)) {  // about the longest lists that an adder's transaction may have
    shape.operations_max = 80;
    shape.guards_max = 15;
    shape.transactions_max = 30;
  }
  return shape;
}

class EdgeBatches {
 public:
  EdgeBatches(Random* random, const EdgeShape& shape) : random_(*random), shape_(shape) {}

  static std::string name(std::uint64_t key) { return "k" + std::to_string(key); }
  const EdgeShape& shape() const { return shape_; }

  // Adds n transactions. `now`: guards ask for versions near it.
  void generate(ColumnsBuilder* builder, std::uint64_t n, Version now) {
    builder_ = builder;
    now_ = now;
    delta_max_ = static_cast<std::int64_t>(ordered_delta_max(n * (shape_.operations_max + 1) / 2));
    for (std::uint64_t i = 0; i < n; ++i) transaction();
  }

  std::int64_t draw_integer() {
    constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
    constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
    const auto near = static_cast<std::int64_t>(random_.below(3));
    switch (random_.below(14)) {
      case 0: return kMax - near;
      case 1: return kMin + near;
      case 2: return delta_max_ - near;
      case 3: return near - delta_max_;
      case 4: return delta_max_ + near;
      case 5: return (std::int64_t{1} << 62) - near;
      case 6: return -(std::int64_t{1} << 62) - near;
      case 7: return random_.chance(0.5) ? kMax / 2 : kMin / 2;
      default: return random_.between(-8, 8);
    }
  }

 private:
  static constexpr std::uint64_t kListShort = 5;  // most lists have fewer operations

  std::uint32_t key() { return builder_->key(name(random_.below(shape_.keys))); }
  std::uint32_t bytes() {
    return builder_->value(std::string(random_.below(3) * 4, static_cast<char>('a' + random_.below(2))));
  }
  std::int64_t version() {
    if (random_.chance(0.3)) return 0;
    return static_cast<std::int64_t>(now_ - std::min<Version>(now_, random_.below(200)) + random_.below(100));
  }

  void transaction() {
    const bool has_precedence = random_.chance(shape_.precedence_chance);
    builder_->begin(has_precedence ? static_cast<std::uint8_t>(random_.below(256)) : 0, random_.chance(0.4) ? 1000 : 0);
    const std::uint64_t guards = shape_.mostly_adds && random_.chance(0.6) ? 0 : random_.below(shape_.guards_max + 1);
    for (std::uint64_t i = 0; i < guards; ++i) guard();
    const std::uint64_t list_max =
        random_.chance(0.6) ? std::min(shape_.operations_max, kListShort) : shape_.operations_max;
    list((guards == 0 ? 1 : 0) + random_.below(list_max));
    if (random_.chance(0.4)) {
      builder_->begin_else();
      list(random_.below(shape_.operations_max));
    }
    builder_->end();
  }

  void guard() {
    const GuardKind kind = guard_kinds_[random_.below(guard_kinds_.size())];
    const OnFalse on_false = random_.chance(0.4) ? OnFalse::wait : OnFalse::fail;
    const std::uint32_t guarded = key();
    switch (kind) {
      case GuardKind::bytes_equal: builder_->guard(kind, on_false, guarded, bytes()); break;
      case GuardKind::version_equal:
      case GuardKind::unchanged: builder_->guard(kind, on_false, guarded, version()); break;
      case GuardKind::exists:
      case GuardKind::absent: builder_->guard(kind, on_false, guarded, 0); break;
      case GuardKind::equal:
      case GuardKind::not_equal:
      case GuardKind::less:
      case GuardKind::less_equal:
      case GuardKind::greater:
      case GuardKind::greater_equal:
        if (random_.chance(0.3)) {
          builder_->guard(kind, on_false, guarded, 0, key());
        } else {
          builder_->guard(kind, on_false, guarded, draw_integer());
        }
        break;
      case GuardKind::time_before:
      case GuardKind::time_after: time_guard(kind, may_wait(kind) ? on_false : OnFalse::fail, guarded); break;
      case GuardKind::range_unchanged: break;  // not among guard_kinds_
    }
  }

  // The times are before and after the stamps that the tests give their batches. A key may hold the stamp of a batch.
  void time_guard(GuardKind kind, OnFalse on_false, std::uint32_t guarded) {
    switch (random_.below(4)) {
      case 0: return builder_->guard(kind, on_false, kNone, random_.between(0, 8));
      case 1: return builder_->guard(kind, on_false, kNone, kNever);
      default: return builder_->guard(kind, on_false, guarded, 0);
    }
  }

  void list(std::uint64_t n) {
    last_get_ = -1;
    for (std::uint64_t i = 0; i < n; ++i) {
      if (shape_.mostly_adds && random_.chance(0.85)) {
        add();
      } else {
        operation(static_cast<std::int64_t>(i));
      }
    }
  }
  void add() {
    if (random_.chance(shape_.own_delta_chance)) {
      builder_->op(OpKind::add, key(), random_.chance(0.5) ? Operand::commit_version : Operand::batch_time);
    } else {
      builder_->op(OpKind::add, key(), Operand::integer, draw_integer());
    }
  }
  void operation(std::int64_t i) {
    const OpKind kind = op_kinds_[random_.below(op_kinds_.size())];
    const std::uint32_t used = key();
    if (may_be_operand(kind) && (last_get_ < 0 || random_.chance(0.5))) last_get_ = i;
    if (!takes_operand(kind)) return builder_->op(kind, used);
    const std::uint64_t operand = random_.below(7);
    if (operand == 0 && last_get_ >= 0) return builder_->op(kind, used, Operand::get, last_get_);
    if (operand == 1 && last_get_ >= 0) return builder_->op(kind, used, Operand::get_negated, last_get_);
    if (operand == 2 && takes_bytes(kind)) return builder_->op(kind, used, Operand::bytes, bytes());
    if (operand == 3) return builder_->op(kind, used, Operand::commit_version);
    if (operand == 4) return builder_->op(kind, used, Operand::batch_time);
    builder_->op(kind, used, Operand::integer, draw_integer());
  }

  Random& random_;
  const EdgeShape shape_;
  const std::vector<GuardKind> guard_kinds_ = guard_kinds(/*with_ranges=*/false);
  const std::vector<OpKind> op_kinds_ = op_kinds(/*with_ranges=*/false);
  ColumnsBuilder* builder_ = nullptr;
  Version now_ = 0;
  std::int64_t delta_max_ = 0;
  std::int64_t last_get_ = -1;  // the last GET of the current list
};

}  // namespace kilokv::engine
