// How much the transactions of a batch stand in each other's way, from a sample of them: cheap enough to be asked
// before every batch.
//
// What orders transactions is a record that several of them touch and one of them changes; additions to a record that
// nobody else reads or sets commute, and count for nothing. A strategy's rounds, retries and waits grow with the
// share of the transactions that meet at the hottest such record.
//
// Where it has been the same for a while, only one batch in a few is looked at: the others are taken for what it was.
//
// Not thread-safe. Nothing is allocated.
#pragma once

#include <array>
#include <cstdint>

#include "engine/exec/resolve/resolver.hpp"
#include "engine/txn/columns.hpp"

namespace kilokv::engine {

// By the share of the sampled transactions that meet at the hottest record.
enum class Contention : std::uint8_t {
  low,   // below 1 in 32
  some,  // below 1 in 4
  high,
};
inline constexpr std::size_t kContentions = 3;
const char* to_string(Contention contention);

class ContentionSample {
 public:
  // Looked at, in runs of neighbours, which cost few cache lines; runs are spread evenly over the batch. What meets
  // within one run alone is one client's, and counts for nothing.
  static constexpr std::size_t kRun = 8;
  static constexpr std::size_t kTransactions = 128;  // at most
  static constexpr std::size_t kTransactionsMin = 2 * kRun;
  static constexpr std::size_t kBatchShare = 32;  // and 1 in so many
  static constexpr std::size_t kUses = 512;       // and at most so many guards and operations of theirs
  // Alike in a row, before so many are taken for like them.
  static constexpr std::uint32_t kAlikeMin = 16, kUnseen = 3;

  // Requires: `resolver` has resolved `columns`, which have no ranges.
  Contention of(const TransactionColumns& columns, const BatchResolver& resolver) {
    if (unseen_ > 0) {
      --unseen_;
      return last_;
    }
    const Contention seen = look_at(columns, resolver);
    alike_ = seen == last_ ? alike_ + 1 : 0;
    last_ = seen;
    if (alike_ >= kAlikeMin) unseen_ = kUnseen;
    return seen;
  }

 private:
  static constexpr std::size_t kPlaces = 2 * kUses;

  struct Record {
    std::uint32_t epoch = 0, slot = 0;       // of another batch if the epoch differs
    std::uint16_t touched = 0, last = 0;     // by so many transactions, by this one last (from 1; 0: nobody)
    bool spread = false;                     // over several runs
    bool changed = false, observed = false;  // observed: read, or set to something that is not an addition to it
  };

  Contention look_at(const TransactionColumns& columns, const BatchResolver& resolver);
  void use(std::uint32_t slot, std::uint16_t by, bool changes, bool observes);

  static_assert(kPlaces == 1024);  // as the hash has it

  std::array<Record, kPlaces> records_{};
  std::uint32_t epoch_ = 0;  // of the batch
  std::uint16_t hottest_ = 0;
  Contention last_ = Contention::low;
  std::uint32_t alike_ = 0, unseen_ = 0;
};

}  // namespace kilokv::engine
