// The cooperative validator: whether a large read set is still what was read, checked from both ends. Two sides work on
// it: the front is one thread of the host, the back a grid: other threads of the host, or a persistent kernel of a
// device, which polls for blocks until it is told to end.
//
// A check is a key id and a version: the key's record (its version; 0: there is none) has to have that one. Asked for
// is the first check, in order, that fails, for it decides the transaction.
//
// The front hands blocks over in a ring (stm/block_ring.hpp), from the end of the read set downwards, as far ahead as
// the ring has room, and checks small blocks of its own, from the beginning upwards, meanwhile. When nothing is left
// between, it takes handed blocks back, the lowest first, but for the one that the back is at. So the partition follows
// the speed of both sides, whatever it is.
//
// Which check is the first. The front checks in order: what it finds is the first, and everything stops. The back finds
// the last ones first. It does not end the search: everything above it is done already, and what lies between the front
// and it has to be searched in any case, for a lower one; nobody searches that faster than both together. The lowest of
// what the back found is the first when the two have met and the front found nothing.
//
// Correct for: every check below the answer was made, by somebody. No block is nobody's (block_ring.hpp, invariant 2);
// blocks go to the front in ascending order; and of the back's, which all lie above, the lowest find counts.
//
// Thread safety: the front is one thread, each thread of the back's grid makes one ValidatorBack; the table does not
// change meanwhile. Progress: the front waits for the block that the back is at, and no longer; a back that never
// answers is given up by the Source (waits()). Source: Tarlovskyy's validation paper, section 5. Deviations: the front
// gives the blocks, so that no block is checked twice but at the meeting, and the read set can be copied to a device
// piece by piece; a mismatch of the back does not stop the front, for the contract names the first; versions are
// compared, not values (a version is never used twice).
#pragma once

#include <cstdint>

#include "engine/base/host_device.hpp"
#include "engine/base/types.hpp"
#include "engine/platform/concept.hpp"
#include "engine/stm/block_ring.hpp"
#include "engine/table/record_table.hpp"

namespace kilokv::engine {

inline constexpr std::uint32_t kAllValid = kNothingFound;

// Which checks of a block a thread of the grid makes.
enum class ValidatorLanes : std::uint8_t {
  coalesced,  // neighbours those of neighbours: thread t has t, t + threads ...
  strided,    // each a run of neighbours
};

// Words that the back's threads share.
enum ValidatorGridWord : std::uint32_t { kGridFirst, kGridOffset, kGridCount, kGridFound, kGridWords };

template <class Space>
struct ValidatorArguments {
  template <class T>
  using Pointer = typename Space::template Pointer<T>;
  RingArguments<Space> ring = {};
  std::uint64_t position = 0;                  // where the ring stands
  Pointer<std::uint64_t> grid = {};            // [kGridWords]
  Pointer<const std::uint64_t> ids = {};       // [2 each] id low, id high, by offset
  Pointer<const std::uint64_t> versions = {};  // [] by offset
  Pointer<const std::uint64_t> slots = {};     // [4 capacity] the table's: id low, id high, word, tag
  std::uint32_t capacity = 0;
  ValidatorLanes lanes = ValidatorLanes::coalesced;
};

// What a planted bug takes away or puts in, for the tests of the tests.
struct ValidatorRules : RingRules {
  static constexpr bool kKeepsLowest = true;       // of what the back finds
  static constexpr bool kResetsFound = true;       // by the entry that opens
  static constexpr bool kMeetsBehindBlock = true;  // the back's threads
  static constexpr bool kSeesEnd = true;
  static constexpr bool kWaitsForLast = true;  // before the back's find is read
  static constexpr bool kNamesFirst = true;    // the front's find, before the back's
  static constexpr bool kChecksTakenBack = true;
};

enum class ValidatorProbe : std::uint32_t {
  met = static_cast<std::uint32_t>(RingProbe::probes),  // nothing is left between the sides
  stopped_by_front,
  found_by_back,
  found_by_both,
  probes
};

// Lookups by the lanes of any platform, for the back's Check.
template <Platform P>
class LaneCheck {
 public:
  using Space = typename P::Space;
  KILOKV_HOST_DEVICE explicit LaneCheck(const ValidatorArguments<Space>& arguments) : a_(arguments) {}

  // The first of this thread's checks of the block that fails, by its place in it; kAllValid: none.
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
    std::uint32_t slot = TableRef{nullptr, a_.capacity}.home(id.high);
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

// The back: serves until it is told to end. Check: first_stale() as LaneCheck has it.
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
  bool is_complete = true;  // false: the back was given up; then nothing else says anything
};

// The front. Source, of the front's own thread:
//   uint32_t first_stale(begin, end)       the first of these checks that fails; kAllValid: none
//   uint64_t stage(slot, begin, end)       makes them ready for the back, in that slot; their offset
//   bool waits()                           asked again and again while the back is waited for: false gives it up
template <Platform P, class Source, class Rules = ValidatorRules>
class ValidatorFront {
 public:
  using Space = typename P::Space;
  struct Tuning {
    std::uint32_t block = 4096;        // checks that are handed over at once
    std::uint32_t front_block = 1024;  // that the front makes at once
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
  // Ends the back's service, whatever it is at.
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
  // Moves from_ behind the front's next block. False: there is none.
  KILOKV_HOST_DEVICE bool next() {
    if (from_ < to_) {
      const std::uint32_t left = to_ - from_;
      from_ += left < tuning_.front_block ? left : tuning_.front_block;
      return true;
    }
    if (!ring_.take_back()) return false;
    // Blocks below the newest one are full ones.
    from_ = to_ = newest_end_;
    newest_end_ = count_ - to_ < tuning_.block ? count_ : to_ + tuning_.block;
    return true;
  }
  // Until the back is done with everything.
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
