// mixed: every guard kind, operation, operand and value type at random over few keys, with else-lists, ranges, WAIT,
// precedence, integers at the limits of 64 bits, and operations on the wrong type. It is for differential tests: a
// strategy that agrees with the referee on many such batches has applied every rule of docs/transactions.md, sections 3
// to 7.
// Invariant: at most `keys` live records, all of them keys of the workload. The referee checks their values.
// Thread safety: one thread for each object.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/txn/kinds.hpp"
#include "engine/workloads/invariant.hpp"
#include "engine/workloads/key_name.hpp"
#include "engine/workloads/random.hpp"
#include "engine/workloads/sink.hpp"

namespace kilokv::engine {

struct MixedOptions {
  bool ranges = true;  // guards and operations on ranges
};

class Mixed {
 public:
  static constexpr std::string_view kPrefix = "mixd";
  static constexpr std::uint64_t kKeysMax = 64;

  // `keys` is at most kKeysMax; a larger number is reduced to it, because with more keys transactions rarely conflict.
  Mixed(std::uint64_t keys, const MixedOptions& options, std::uint64_t seed);

  template <TransactionSink Sink>
  void generate(Sink* sink, std::size_t transactions) {
    expiries_ = ranges_ && last_tries_.chance(0.1);
    for (std::size_t i = 0; i < transactions; ++i) one(sink);
  }

  void for_each_initial(const InitialVisitor& visit) const;
  InvariantRule invariant() const;

 private:
  struct Range {
    KeyName from, to;
    bool open_end;
    std::string_view from_view() const { return from.view(); }
    std::string_view to_view() const { return open_end ? std::string_view{} : to.view(); }
  };

  std::uint64_t draw_key() { return random_.below(keys_); }
  std::int64_t draw_integer();
  Version draw_version();
  TimeUs draw_time();
  Range draw_range();
  std::string_view draw_bytes();

  template <TransactionSink Sink>
  std::uint32_t key(Sink* sink) {
    return sink->key(KeyName(kPrefix, draw_key()).view());
  }

  template <TransactionSink Sink>
  void one(Sink* sink) {
    ++transactions_;
    const bool waits = random_.chance(0.3);
    const std::uint8_t precedence = random_.chance(0.2) ? static_cast<std::uint8_t>(random_.below(4)) : 0;
    sink->begin(precedence, waits ? 1000 : 0, expiries_ && last_tries_.chance(0.3));
    const std::uint64_t guards = random_.below(4);
    for (std::uint64_t i = 0; i < guards; ++i) guard(sink);
    operations(sink, (guards == 0 ? 1 : 0) + random_.below(4));
    if (random_.chance(0.4)) {
      sink->begin_else();
      operations(sink, random_.below(4));
    }
    sink->end();
  }

  template <TransactionSink Sink>
  void guard(Sink* sink) {
    const GuardKind kind = guard_kinds_[random_.below(guard_kinds_.size())];
    const OnFalse on_false = random_.chance(0.4) ? OnFalse::wait : OnFalse::fail;
    if (kind == GuardKind::exists && times_.chance(0.2)) return time_guard(sink, on_false);
    switch (kind) {
      case GuardKind::range_unchanged: {
        const Range range = draw_range();
        return sink->range_guard(kind, on_false, range.from_view(), range.to_view(), draw_version());
      }
      case GuardKind::bytes_equal: {
        const std::uint32_t subject = key(sink);
        return sink->guard(kind, on_false, subject, sink->value(draw_bytes()), kNone);
      }
      case GuardKind::version_equal:
      case GuardKind::unchanged:
        return sink->guard(kind, on_false, key(sink), static_cast<std::int64_t>(draw_version()), kNone);
      case GuardKind::exists:
      case GuardKind::absent: return sink->guard(kind, on_false, key(sink), 0, kNone);
      case GuardKind::equal:
      case GuardKind::not_equal:
      case GuardKind::less:
      case GuardKind::less_equal:
      case GuardKind::greater:
      case GuardKind::greater_equal: {
        const std::uint32_t subject = key(sink);
        const bool with_other = random_.chance(0.3);
        return sink->guard(kind, on_false, subject, with_other ? 0 : draw_integer(), with_other ? key(sink) : kNone);
      }
      case GuardKind::time_before:
      case GuardKind::time_after: break;  // not among guard_kinds_
    }
  }

  template <TransactionSink Sink>
  void time_guard(Sink* sink, OnFalse on_false) {
    const bool is_after = on_false == OnFalse::wait || times_.chance(0.5);
    const GuardKind kind = is_after ? GuardKind::time_after : GuardKind::time_before;
    const KeyName name(kPrefix, draw_key());  // as for `exists`
    if (times_.chance(0.5)) return sink->guard(kind, on_false, sink->key(name.view()), 0, kNone);
    sink->guard(kind, on_false, kNone, draw_time(), kNone);
  }

  template <TransactionSink Sink>
  void operations(Sink* sink, std::uint64_t count) {
    std::int64_t last_get = -1;  // index of an earlier GET of this list
    for (std::uint64_t i = 0; i < count; ++i) {
      OpKind kind = op_kinds_[random_.below(op_kinds_.size())];
      if (kind == OpKind::range_get && direction_.chance(0.5)) kind = OpKind::range_get_reverse;
      if (uses_range(kind)) {
        const Range range = draw_range();
        const auto limit = static_cast<std::uint32_t>(1 + random_.below(kind != OpKind::delete_range ? 8 : 2));
        sink->range_op(kind, range.from_view(), range.to_view(), limit);
        continue;
      }
      const std::uint32_t subject = key(sink);
      if (takes_operand(kind)) {
        write(sink, kind, subject, last_get);
      } else {
        sink->op(kind, subject, Operand::integer, 0);
      }
      if (may_be_operand(kind) && (last_get < 0 || random_.chance(0.5))) last_get = static_cast<std::int64_t>(i);
    }
  }

  template <TransactionSink Sink>
  void write(Sink* sink, OpKind kind, std::uint32_t subject, std::int64_t last_get) {
    switch (random_.below(8)) {
      case 0:
      case 1:
        if (last_get >= 0) return sink->op(kind, subject, Operand::get, last_get);
        break;
      case 2:
        if (last_get >= 0) return sink->op(kind, subject, Operand::get_negated, last_get);
        break;
      case 3:
        if (takes_bytes(kind)) return sink->op(kind, subject, Operand::bytes, sink->value(draw_bytes()));
        break;
      case 4: return sink->op(kind, subject, Operand::commit_version, 0);
      case 5: return sink->op(kind, subject, Operand::batch_time, 0);
      default: break;
    }
    sink->op(kind, subject, Operand::integer, draw_integer());
  }

  std::uint64_t keys_;
  // Without the kinds that came later. Guards of time take the place of a fifth of the `exists`, and range_get_reverse
  // takes that of half of the range_get. Each kind that came later has a generator of its own, so that a seed draws all
  // else as it did before. So has expire_runs_else. Without ranges there is none of it, because a batch with it may run
  // serially, as a batch with ranges does.
  std::vector<GuardKind> guard_kinds_;
  std::vector<OpKind> op_kinds_;
  Random random_, times_, direction_, last_tries_;
  bool ranges_, expiries_ = false;
  std::uint64_t transactions_ = 0;
  std::string bytes_;
};

}  // namespace kilokv::engine
