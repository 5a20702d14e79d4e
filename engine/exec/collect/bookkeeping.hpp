// The books of a batch that has run: the writes for the log, in rank order, and the totals of the record store.
//
// All of this follows from the columns of the batch (batch_writes.hpp), the same for every strategy. The hash needs no
// record: each write adds its own change, and the changes of several writes to one record add up. So nothing here looks
// at a slot, except for writes of a rare kind.
//
// The books can be kept while the batch still runs: begin(), then follow() for the transactions that have run, in
// order, and end() when all have.
//
// Several threads can keep the books of a batch in shares: begin_shares(), count_share() on each thread,
// place_shares(), fill_share() on each thread, and end_shares().
//
// Not thread-safe, but count_share() and fill_share() of different shares may run at the same time. Keeps its capacity,
// so that the steady state allocates nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/exec/collect/batch_writes.hpp"
#include "engine/exec/run/stage_clock.hpp"
#include "engine/table/record_store.hpp"
#include "engine/txn/results.hpp"

namespace kilokv::engine {

class Bookkeeping {
 public:
  // Fills `collected`, and brings the totals of the store up to date. `summarized`: the index knows all writes. If the
  // clock measures, each stage has a loop of its own; otherwise one loop does all. Requires: the byte values in the
  // results are readable.
  void keep(const BatchWrites& writes, bool summarized, StageClock* clock, RecordStore* store, WriteColumns* collected);

  // The same in steps. follow() keeps the books of the places [first, last) of the rank order. The places of all calls
  // follow each other. `writes` may still lack what comes after them.
  void begin(const BatchWrites& writes, const RecordStore& store, WriteColumns* collected);
  void follow(std::uint32_t first, std::uint32_t last, StageClock* clock);
  void end(bool summarized, RecordStore* store);

  // The same in shares of equal size, of a batch without ranges. Each step needs the one before it on all threads.
  // count_share() finds out what a share takes in the log. So place_shares() knows where each share begins.
  void begin_shares(const BatchWrites& writes, const RecordStore& store, std::uint32_t shares, WriteColumns* collected);
  void count_share(std::uint32_t share, std::uint32_t shares);
  void place_shares(std::uint32_t shares);
  void fill_share(std::uint32_t share, std::uint32_t shares);
  void end_shares(RecordStore* store);

  std::size_t memory_bytes() const;

 private:
  // What is in the log before a write.
  struct Place {
    std::size_t writes = 0, key_bytes = 0, values = 0, value_bytes = 0;
  };
  class Log;
  // A write that changes more than an integer (RecordStore::is_usual()).
  struct RareWrite {
    std::uint32_t transaction, operation;
  };
  static constexpr std::size_t kKeptMax = std::size_t{4} << 20;  // writes
  // What one thread has found in its share of the batch.
  struct alignas(64) Part {
    Place place;  // the size of the share while shares are counted; then where the log goes on
    Wide hash = 0;
    std::vector<std::uint32_t> noted;  // operations whose records have to be noted
    std::vector<RareWrite> rare;

    // Gives back what only a very large batch has needed. An assignment of {} would keep the memory.
    void clear() {
      place = {};
      hash = 0;
      noted.clear();
      rare.clear();
      if (noted.capacity() > kKeptMax) noted = std::vector<std::uint32_t>();
      if (rare.capacity() > kKeptMax) rare = std::vector<RareWrite>();
    }
  };

  // Writes of neighbouring operations, from key `key` on in order.
  struct WriteRun {
    std::uint32_t begin = 0, end = 0, key = 0;
  };

  static void resize(const Place& size, WriteColumns* collected);
  WriteRun run_of(std::uint32_t first, std::uint32_t last) const;
  template <class Usual, class Each>
  void for_runs(std::uint32_t begin, std::uint32_t end, const Usual& usual, const Each& each) const;
  template <bool kCollects, bool kNotes, bool kHashes>
  bool keep_usual(std::uint32_t first, std::uint32_t last, Part* part, Log* log);
  template <bool kCollects, bool kNotes, bool kHashes>
  void keep_any(std::uint32_t t, Part* part, Log* log);
  template <bool kCollects, bool kNotes, bool kHashes>
  void walk(std::uint32_t first, std::uint32_t last, Part* part, Log* log);
  Place size_of(std::uint32_t first, std::uint32_t last) const;
  struct Share {
    std::uint32_t first, last;  // places
  };
  Share share_of(std::uint32_t share, std::uint32_t shares) const;
  void settle(bool summarized, RecordStore* store);
  void settle_deleted(std::uint32_t t, std::uint32_t range, bool summarized, RecordStore* store);

  BatchWrites writes_;
  WriteColumns* collected_ = nullptr;
  Version noted_below_ = 0;
  std::vector<Part> parts_{1};  // by share; the first one has all in the end
};

}  // namespace kilokv::engine
