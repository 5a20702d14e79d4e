// ycsb-a to ycsb-f: the core workloads of YCSB (Cooper et al., 2010), as transactions of `operations` operations each.
//
//   a  half reads, half updates (update_share)    d  95% reads of the latest rows, 5% inserts
//   b  95% reads, 5% updates                      e  95% scans of 1 to 100 rows, 5% inserts
//   c  reads                                      f  half reads, half read-modify-writes (update_share)
//
// A row of a to e is one byte value. An update writes all of it, without reading. A row of f is two integer fields
// (usrf............ and usrg............) that sum to 0: transactions have no arithmetic on bytes, and a lost update
// shows in the sum. A read-modify-write gets both, subtracts from one, and adds the same to the other.
//
// Each letter has its own keys (user............ belongs to a), so that one database serves all letters. The
// distribution draws rows. YCSB uses zipf:0.99 for all letters but d; reads of d are always Zipf over the age of the
// rows, with the distribution's exponent or 0.99. Inserted rows have numbers after the initial ones, spread by a hash,
// as in YCSB. Scans begin at an initial row, and end at the last key of the letter.
//
// Invariant: the initial rows are there; in a to c and f there are no others. Each byte value has payload_bytes bytes
// and begins with its key. The two fields of each row of f sum to 0.
// Thread safety: one thread for each object.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "engine/workloads/distribution.hpp"
#include "engine/workloads/invariant.hpp"
#include "engine/workloads/key_name.hpp"
#include "engine/workloads/random.hpp"
#include "engine/workloads/sink.hpp"

namespace kilokv::engine {

struct YcsbOptions {
  std::uint32_t payload_bytes = 100;
  std::uint32_t operations = 1;  // in each transaction
  double update_share = 0.5;     // of a and f
};

enum class YcsbLetter : std::uint8_t { a, b, c, d, e, f };

class Ycsb {
 public:
  static constexpr std::string_view prefix(YcsbLetter letter) {
    switch (letter) {
      case YcsbLetter::a: break;
      case YcsbLetter::b: return "usrb";
      case YcsbLetter::c: return "usrc";
      case YcsbLetter::d: return "usrd";
      case YcsbLetter::e: return "usre";
      case YcsbLetter::f: return "usrf";
    }
    return "user";
  }
  static constexpr std::string_view kSecondField = "usrg";
  static constexpr bool inserts(YcsbLetter letter) { return letter == YcsbLetter::d || letter == YcsbLetter::e; }

  // Requires: keys >= 1, operations >= 1.
  Ycsb(YcsbLetter letter, std::uint64_t keys, const DistributionOptions& distribution, const YcsbOptions& options,
       std::uint64_t seed);

  template <TransactionSink Sink>
  void generate(Sink* sink, std::size_t transactions) {
    for (std::size_t i = 0; i < transactions; ++i) {
      sink->begin(0, 0);
      for (std::uint32_t j = 0; j < options_.operations; ++j) operation(sink);
      sink->end();
    }
  }

  void for_each_initial(const InitialVisitor& visit) const;
  InvariantRule invariant() const;

 private:
  static constexpr std::uint64_t kScanRowsMax = 100;

  std::uint64_t draw_row();
  std::uint64_t inserted_row(std::uint64_t number) const;

  template <TransactionSink Sink>
  void operation(Sink* sink) {
    const bool writes = random_.chance(write_share_);
    if (letter_ == YcsbLetter::f) return fields(sink, rows_.draw(&random_), writes);
    if (writes) return put(sink, inserts(letter_) ? inserted_row(inserted_++) : rows_.draw(&random_));
    const KeyName name(prefix(letter_), draw_row());
    if (letter_ != YcsbLetter::e) return sink->op(OpKind::get, sink->key(name.view()), Operand::integer, 0);
    const auto limit = static_cast<std::uint32_t>(1 + random_.below(kScanRowsMax));
    sink->range_op(OpKind::range_get, name.view(), scan_end_.view(), limit);
  }

  template <TransactionSink Sink>
  void put(Sink* sink, std::uint64_t row) {
    const KeyName name(prefix(letter_), row);
    fill(name, random_.next());
    sink->op(OpKind::put, sink->key(name.view()), Operand::bytes, sink->value(payload_));
  }

  template <TransactionSink Sink>
  void fields(Sink* sink, std::uint64_t row, bool writes) {
    const std::uint32_t first = sink->key(KeyName(prefix(letter_), row).view());
    const std::uint32_t second = sink->key(KeyName(kSecondField, row).view());
    sink->op(OpKind::get, first, Operand::integer, 0);
    sink->op(OpKind::get, second, Operand::integer, 0);
    if (!writes) return;
    const std::int64_t change = random_.between(1, 100);
    sink->op(OpKind::add, first, Operand::integer, change);
    sink->op(OpKind::add, second, Operand::integer, -change);
  }

  // Writes the key, then `salt` in eight bytes, then a constant, cut to payload_bytes.
  void fill(const KeyName& key, std::uint64_t salt) {
    const std::size_t head = std::min(payload_.size(), KeyName::kBytes);
    std::memcpy(payload_.data(), key.view().data(), head);
    std::memcpy(payload_.data() + head, &salt, std::min(payload_.size() - head, sizeof salt));
  }

  YcsbLetter letter_;
  std::uint64_t count_;
  YcsbOptions options_;
  double write_share_;
  KeyName scan_end_;  // above every row
  KeyDistribution rows_;
  KeyDistribution ages_;  // 0: the latest row
  Random random_;
  std::uint64_t salt_, inserted_ = 0;
  std::string payload_;
};

}  // namespace kilokv::engine
