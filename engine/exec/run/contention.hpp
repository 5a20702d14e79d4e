// Estimates the contention of a batch: how many of its transactions conflict. It looks only at a sample of them, so
// that it is cheap enough to be asked before every batch.
//
// Transactions conflict at a record if several of them touch it and one of them changes it. ADDs to a record that no
// transaction of the sample reads or sets commute, so they do not count. The rounds, retries and waits of a strategy
// grow with the share of the transactions that meet at the hottest such record.
//
// If the contention was the same for some batches in a row, only one batch in a few is sampled. The batches between get
// the last value.
//
// Not thread-safe. Allocates nothing.
#pragma once

#include <array>
#include <cstdint>

#include "engine/base/types.hpp"
#include "engine/txn/columns.hpp"

namespace kilokv::engine {

// The share of the sampled transactions that meet at the hottest record.
enum class Contention : std::uint8_t {
  low,   // below 1 in 32
  some,  // below 1 in 4
  high,
};
inline constexpr std::size_t kContentions = 3;
const char* to_string(Contention contention);

class ContentionSample {
 public:
  // The sample is made of runs of neighbours, because neighbours cost few cache lines. The runs are spread evenly
  // over the batch. If only transactions of one run meet at a record, they are probably those of one client, and do not
  // count.
  static constexpr std::size_t kRun = 8;
  // The sample is 1 in kBatchShare of the transactions, but at least kTransactionsMin and at most kTransactions. It
  // ends when it has seen kUses guards and operations.
  static constexpr std::size_t kTransactions = 128;
  static constexpr std::size_t kTransactionsMin = 2 * kRun;
  static constexpr std::size_t kBatchShare = 32;
  static constexpr std::size_t kUses = 512;
  // After kAlikeMin equal samples in a row, kUnseen batches between two samples are not sampled.
  static constexpr std::uint32_t kAlikeMin = 16, kUnseen = 3;

  // Requires: `columns` have no ranges.
  Contention of(const TransactionColumns& columns) {
    if (unseen_ > 0) {
      --unseen_;
      return last_;
    }
    const Contention seen = look_at(columns);
    alike_ = seen == last_ ? alike_ + 1 : 0;
    last_ = seen;
    if (alike_ >= kAlikeMin) unseen_ = kUnseen;
    return seen;
  }

 private:
  static constexpr std::size_t kPlaces = 2 * kUses;

  struct Record {
    std::uint64_t id = 0;                    // the low half of the key's id
    std::uint32_t epoch = 0;                 // the entry is free if this is not the epoch of this batch
    std::uint16_t touched = 0, last = 0;     // how many transactions touch it; the last one's number, from 1; 0: none
    bool spread = false;                     // transactions of several runs touch it
    bool changed = false, observed = false;  // observed: read, or written by an operation other than ADD
  };

  Contention look_at(const TransactionColumns& columns);
  void use(std::uint64_t id, std::uint16_t by, bool changes, bool observes);

  static_assert(kPlaces == 1024);  // use() takes 10 bits of its hash

  std::array<Record, kPlaces> records_{};
  std::uint32_t epoch_ = 0;  // of the last batch that was sampled
  std::uint16_t hottest_ = 0;
  Contention last_ = Contention::low;
  std::uint32_t alike_ = 0, unseen_ = 0;
};

}  // namespace kilokv::engine
