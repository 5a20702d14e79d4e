// The cooperative validator. It checks from both ends whether a large read set is still what was read. Two sides work
// on it. The front is one thread of the host. The back is a grid: other threads of the host, or a persistent kernel of
// a device, which polls for blocks until it is told to end.
//
// A check is a key id and a version: the key's record must have this version (0: there is no record). The result is the
// first check, in their order, that fails, because this check decides the transaction.
//
// The front hands blocks to the back in a ring (stm/block_ring.hpp), from the end of the read set downwards, as far
// ahead as the ring has room. Meanwhile the front checks small blocks of its own, from the beginning upwards. When
// nothing is left between the two sides, it takes handed blocks back, the lowest first, except the one that the back is
// at. So the read set is divided by the speed of the two sides.
//
// Which failed check is the first? The front checks in order. So what it finds is the first one, and everything stops.
// The back finds the last ones first, and its find does not end the search. Everything above its find is done already.
// The part between the front and the find must be searched in any case, for a lower find, and nothing searches it
// faster than both sides together. When the two sides have met and the front has found nothing, the lowest find of the
// back is the first failed check.
//
// Why it is correct: every check below the answer was made by one side. No block is left out by both sides
// (block_ring.hpp, invariant 2). Blocks come back to the front in ascending order. The blocks of the back are all above
// those, and its lowest find counts.
//
// Thread safety: the front is one thread. Each thread of the back's grid makes one ValidatorBack. The table does not
// change meanwhile. Progress: the front waits only for the block that the back is at. A back that never answers is
// given up by the Source (waits()).
//
// Source: Tarlovskyy's validation paper, section 5. Deviations:
//   - The front hands out the blocks. So no block is checked twice, except where the sides meet, and the read set can
//     be copied to a device piece by piece.
//   - A mismatch that the back finds does not stop the front, because the contract names the first one.
//   - Versions are compared, not values. A version is never used twice.
#pragma once

#include <cstdint>

#include "engine/base/host_device.hpp"
#include "engine/base/types.hpp"
#include "engine/platform/concept.hpp"
#include "engine/stm/block_ring.hpp"
#include "engine/table/record_table.hpp"

namespace kilokv::engine {

inline constexpr std::uint32_t kAllValid = kNothingFound;

// Which checks of a block each thread of the grid makes.
enum class ValidatorLanes : std::uint8_t {
  coalesced,  // neighbouring threads make neighbouring checks: thread t makes t, t + threads and so on
  strided,    // each thread makes a run of neighbouring checks
};

// Words that the threads of the back share.
enum ValidatorGridWord : std::uint32_t { kGridFirst, kGridOffset, kGridCount, kGridFound, kGridWords };

template <class Space>
struct ValidatorArguments {
  template <class T>
  using Pointer = typename Space::template Pointer<T>;
  RingArguments<Space> ring = {};
  std::uint64_t position = 0;                  // where the ring begins: the position of its next entry
  Pointer<std::uint64_t> grid = {};            // [kGridWords]
  Pointer<const std::uint64_t> ids = {};       // [2 for each check] id low, id high; by offset
  Pointer<const std::uint64_t> versions = {};  // [1 for each check] by offset
  Pointer<const std::uint64_t> slots = {};     // [4 x capacity] the table's: id low, id high, word, tag
  std::uint32_t capacity = 0;
  ValidatorLanes lanes = ValidatorLanes::coalesced;
};

// The rules. A mutation (docs/papers.md, section 1) is this struct with one constant changed.
struct ValidatorRules : RingRules {
  static constexpr bool kKeepsLowest = true;       // of what the back finds, the lowest counts
  static constexpr bool kResetsFound = true;       // the entry that opens resets `found`
  static constexpr bool kMeetsBehindBlock = true;  // the back's threads meet after each block
  static constexpr bool kSeesEnd = true;
  static constexpr bool kWaitsForLast = true;  // the front waits for the back before it reads the back's find
  static constexpr bool kNamesFirst = true;    // the front's find comes before the back's
  static constexpr bool kChecksTakenBack = true;
};

enum class ValidatorProbe : std::uint32_t {
  met = static_cast<std::uint32_t>(RingProbe::probes),  // nothing is left between the sides
  stopped_by_front,
  found_by_back,
  found_by_both,
  probes
};

// The back's Check: lookups by the lanes of any platform.
template <Platform P>
class LaneCheck {
 public:
  using Space = typename P::Space;
  KILOKV_HOST_DEVICE explicit LaneCheck(const ValidatorArguments<Space>& arguments) : a_(arguments) {}

  // The first failed check of this thread's checks of the block, as an index in the block; kAllValid: none failed.
  KILOKV_HOST_DEVICE std::uint32_t first_stale(P& p, std::uint64_t offset, std::uint32_t count) const {
    const std::uint32_t threads = p.threads();
    std::uint32_t begin = p.thread(), end = count, step = threads;
    if (a_.lanes == ValidatorLanes::strided) {
      const std::uint32_t each = (count + threads - 1) / threads;
      begin = p.thread() * each;
      end = begin + each < count ? begin + each : count;
      step = 1;
    }
    for (std::uint32_t i = begin; i < end; i += step) {
      if (version(p, offset + i) != p.get(a_.versions + (offset + i))) return i;
    }
    return kAllValid;
  }

 private:
  KILOKV_HOST_DEVICE Version version(P& p, std::uint64_t at) const {
    const KeyId id{p.get(a_.ids + 2 * at), p.get(a_.ids + 2 * at + 1)};
    std::uint32_t slot = scaled_home(id.high, a_.capacity);
    for (std::uint32_t looked = 0; looked < a_.capacity; ++looked) {
      const auto there = a_.slots + 4 * static_cast<std::uint64_t>(slot);
      const KeyId held{p.get(there), p.get(there + 1)};
      if (held == id) return version_of(p.get(there + 3));
      if (held == KeyId{}) return 0;
      if (++slot == a_.capacity) slot = 0;
    }
    return 0;
  }

  const ValidatorArguments<Space>& a_;
};

// The back. It serves until it is told to end. Check has a first_stale() as LaneCheck has it.
template <Platform P, class Check, class Rules = ValidatorRules>
class ValidatorBack {
 public:
  using Space = typename P::Space;
  KILOKV_HOST_DEVICE ValidatorBack(P& platform, const ValidatorArguments<Space>& arguments, const Check& check)
      : p_(platform), a_(arguments), check_(check), ring_(platform, arguments.ring, arguments.position) {}

  KILOKV_HOST_DEVICE void serve() {
    for (;;) {
      if (leads()) take();
      p_.grid_barrier();
      const auto count = static_cast<std::uint32_t>(p_.get(a_.grid + kGridCount));
      if (Rules::kSeesEnd && count == 0) return;
      const std::uint32_t stale = check_.first_stale(p_, p_.get(a_.grid + kGridOffset), count);
      if (stale != kAllValid) note(p_.get(a_.grid + kGridFirst) + stale);
      if (Rules::kMeetsBehindBlock) p_.grid_barrier();
      if (leads()) ring_.done(p_.load(a_.grid + kGridFound, Order::relaxed, Scope::device));
    }
  }

 private:
  KILOKV_HOST_DEVICE bool leads() const { return p_.thread() == 0; }
  KILOKV_HOST_DEVICE void take() {
    const RingEntry entry = ring_.take();
    p_.put(a_.grid + kGridFirst, entry.first);
    p_.put(a_.grid + kGridOffset, entry.offset);
    p_.put(a_.grid + kGridCount, std::uint64_t{entry.count});
    if (entry.opens && Rules::kResetsFound) {
      p_.store(a_.grid + kGridFound, std::uint64_t{kAllValid}, Order::relaxed, Scope::device);
    }
    if (entry.count == 0) ring_.done(kAllValid);
  }
  KILOKV_HOST_DEVICE void note(std::uint64_t stale) {
    const auto found = a_.grid + kGridFound;
    if (Rules::kKeepsLowest) {
      p_.fetch_min(found, stale, Order::relaxed, Scope::device);
    } else {
      p_.store(found, stale, Order::relaxed, Scope::device);
    }
  }

  P& p_;
  const ValidatorArguments<Space>& a_;
  Check check_;
  RingConsumer<P, Rules> ring_;
};

struct ValidatorResult {
  std::uint32_t first_stale = kAllValid;
  std::uint32_t own = 0;    // checks that the front made
  bool is_complete = true;  // false: the back was given up, and the other fields mean nothing
};

// The front. Source is called by the front's own thread only:
//   uint32_t first_stale(begin, end)  the first of these checks that fails; kAllValid: none
//   uint64_t stage(slot, begin, end)  makes these checks ready for the back, in this slot; returns their offset
//   bool waits()                      is asked again and again while the front waits for the back; false gives the back
//                                     up
template <Platform P, class Source, class Rules = ValidatorRules>
class ValidatorFront {
 public:
  using Space = typename P::Space;
  struct Tuning {
    std::uint32_t block = 4096;        // checks that are handed over in one block
    std::uint32_t front_block = 1024;  // checks in one block of the front's own
  };

  KILOKV_HOST_DEVICE ValidatorFront(P& platform, const RingArguments<Space>& ring, std::uint64_t position,
                                    const Tuning& tuning, Source* source)
      : p_(platform), source_(*source), tuning_(tuning), ring_(platform, ring, position) {}

  KILOKV_HOST_DEVICE ValidatorResult run(std::uint32_t count) {
    from_ = 0;
    to_ = newest_end_ = count_ = count;
    result_ = {};
    ring_.open();
    for (;;) {
      hand_over();
      const std::uint32_t begin = from_;
      const bool is_own = from_ < to_;
      if (!next()) break;
      if (!Rules::kChecksTakenBack && !is_own) continue;
      result_.own += from_ - begin;
      const std::uint32_t stale = source_.first_stale(begin, from_);
      if (stale != kAllValid) return stop(stale);
    }
    probe(ValidatorProbe::met);
    if (!Rules::kWaitsForLast || wait()) take_over_find();
    return result_;
  }
  // Ends the back's service, whatever the back is doing.
  KILOKV_HOST_DEVICE void end() {
    ring_.take_all_back();
    ring_.publish({});
  }
  KILOKV_HOST_DEVICE std::uint64_t position() const { return ring_.tail(); }

 private:
  KILOKV_HOST_DEVICE void hand_over() {
    while (from_ < to_ && ring_.has_room()) {
      const std::uint32_t left = to_ - from_;
      const std::uint32_t begin = to_ - (left < tuning_.block ? left : tuning_.block);
      ring_.publish({begin, source_.stage(ring_.slot(), begin, to_), to_ - begin});
      newest_end_ = to_;
      to_ = begin;
    }
  }
  // Moves from_ to the end of the front's next block. Returns false if there is no such block.
  KILOKV_HOST_DEVICE bool next() {
    if (from_ < to_) {
      const std::uint32_t left = to_ - from_;
      from_ += left < tuning_.front_block ? left : tuning_.front_block;
      return true;
    }
    if (!ring_.take_back()) return false;
    // Only the newest block can be short. All earlier ones are full.
    from_ = to_ = newest_end_;
    newest_end_ = count_ - to_ < tuning_.block ? count_ : to_ + tuning_.block;
    return true;
  }
  // Waits until the back is done with everything. Returns false if the back was given up.
  KILOKV_HOST_DEVICE bool wait() {
    while (ring_.head() < ring_.tail()) {
      if (!source_.waits()) {
        result_.is_complete = false;
        return false;
      }
      p_.pause();
    }
    return true;
  }
  KILOKV_HOST_DEVICE void take_over_find() {
    const auto found = static_cast<std::uint32_t>(ring_.found());
    if (found == kAllValid) return;
    probe(ValidatorProbe::found_by_back);
    result_.first_stale = found;
  }
  KILOKV_HOST_DEVICE ValidatorResult stop(std::uint32_t stale) {
    ring_.take_all_back();
    probe(ValidatorProbe::stopped_by_front);
    result_.first_stale = stale;
    if (!wait()) return result_;
    const auto found = static_cast<std::uint32_t>(ring_.found());
    if (found == kAllValid) return result_;
    probe(ValidatorProbe::found_by_both);
    if (!Rules::kNamesFirst) result_.first_stale = found;
    return result_;
  }

  KILOKV_HOST_DEVICE void probe(ValidatorProbe probe) const { p_.probe(static_cast<std::uint32_t>(probe)); }

  P& p_;
  Source& source_;
  const Tuning tuning_;
  RingProducer<P, Rules> ring_;
  std::uint32_t from_ = 0, to_ = 0, newest_end_ = 0, count_ = 0;
  ValidatorResult result_;
};

}  // namespace kilokv::engine
