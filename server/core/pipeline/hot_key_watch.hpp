// Watches which keys the batches use most at present. For each use there is a sketch (pipeline/key_sketch.hpp).
//
// - Old uses fade: a use counts half after kHotKeysHalfLifeUs. So the sketches show the present, and no entry has to be
//   touched as time goes on: the weight of a new use grows instead ("forward decay": Cormode, Shkapenyuk, Srivastava,
//   Xu, "Forward Decay: A Practical Time Decay Model for Streaming Systems", 2009, section 3).
// - A busy server counts a sample of its transactions. Each stands for as many as were left out. So watching takes at
//   most a few thousandths of a core, at any load.
// - The executor never waits for a reader: it leaves out a batch while somebody reads.
//
// Guarantee, with S the uses of one kind in the sample: each key with more than S / kCapacity of them is there.
//
// Thread safety: one thread calls note_batch(); any thread calls top().
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "engine/base/key_hash.hpp"
#include "engine/txn/columns.hpp"
#include "engine/txn/results.hpp"
#include "server/core/hot_keys.hpp"
#include "server/core/pipeline/key_sketch.hpp"

namespace kilokv::server {

class HotKeyWatch {
 public:
  static constexpr std::size_t kCapacity = 256;  // keys of each use

  // Counts what a batch has done. `now_us`: of a clock that does not go back. `secret`: that of the database's keys.
  void note_batch(const engine::TransactionColumns& columns, const engine::BatchResults& results, TimeUs now_us,
                  const engine::KeyHashSecret& secret);
  // The most used keys, at most `limit`. `now_us`: of the same clock.
  HotKeys top(KeyUse use, std::size_t limit, TimeUs now_us) const;

 private:
  // Bounds of one sample: the most uses in kIntervalUs, and of one transaction.
  static constexpr DurationUs kIntervalUs = 100'000;
  static constexpr std::uint64_t kUsesPerInterval = 500;
  static constexpr std::uint32_t kUsesOfTransaction = 64;

  void adapt(TimeUs now_us);
  void advance(TimeUs now_us);
  std::uint64_t next_random();
  double growth(TimeUs now_us) const;
  void note_transaction(const engine::TransactionColumns& columns, const engine::BatchResults& results, std::size_t t,
                        const engine::KeyHashSecret& secret);
  void note_ops(const engine::TransactionColumns& columns, std::uint32_t begin, std::uint32_t end,
                const engine::KeyHashSecret& secret);
  void note_guard(KeyUse use, const engine::TransactionColumns& columns, std::uint32_t guard, double weight,
                  const engine::KeyHashSecret& secret);
  void note_key(KeyUse use, const engine::TransactionColumns& columns, std::uint32_t key, double weight);
  void note_range(KeyUse use, const engine::TransactionColumns& columns, std::uint32_t range, double weight,
                  const engine::KeyHashSecret& secret);
  KeySketch& sketch(KeyUse use) { return sketches_[static_cast<std::size_t>(use)]; }

  mutable std::mutex mutex_;  // of all members
  std::array<KeySketch, kKeyUses> sketches_{KeySketch{kCapacity}, KeySketch{kCapacity}, KeySketch{kCapacity},
                                            KeySketch{kCapacity}};
  bool has_begun_ = false;
  TimeUs begun_us_ = 0;      // the first batch
  TimeUs reference_us_ = 0;  // a use at this time has the weight 1
  double weight_ = 1;        // of a use in the batch that is being counted
  // The sample: one transaction of `stride_` on average, the next after `skip_` others.
  std::uint64_t stride_ = 1, skip_ = 0;
  std::uint64_t uses_ = 0;  // counted in this interval
  TimeUs interval_us_ = 0;  // its begin
  std::uint64_t random_ = 0x9E3779B97F4A7C15;
};

}  // namespace kilokv::server
