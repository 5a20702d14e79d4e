// A ring of entries from one producer to one consumer, of loads and stores alone: a host has no read-modify-write on
// the memory of a device behind PCIe, nor the device on the host's. The producer may take back what the consumer has
// not begun.
//
// Positions count entries for ever; that of entry i is i, its slot i % slots. Four words, each with one writer:
//   tail   the producer's: entries before it are there
//   cut    the producer's: entries from it on are taken back
//   head   the consumer's: entries before it are done, or were passed over
//   found  the consumer's: what it has to tell of the entries so far (stm/validator.hpp); published by head
//
// Invariants:
//   (1) A slot is written when the entry that had it is done: tail - head is at most the number of slots. Blocks leave
//       one of these free, for the entry that ends the service: it never waits.
//   (2) From open() to the next one, cut only falls, and all entries are published before it falls for the first time.
//       So what the consumer passes over, whatever cut it saw, the producer has taken back: no entry is nobody's. The
//       next open() raises cut when head is at tail, before it publishes anything, so that no entry meets an old cut.
//   (3) The consumer looks at cut behind its last store of head, the producer at head behind its last store of cut, a
//       sequential fence between: of an entry that both take, one of them knows of the other when it goes on. So both
//       take one entry at most, between two open(); and entry `head` is the consumer's, the producer leaves it alone.
//
// Orders: tail and head are released and acquired, and carry the entry and what belongs to it there, and `found` and
// the slot back. cut carries nothing.
//
// Thread safety: one producer, one consumer; each of the words of its side is its own. Progress: neither side waits
// here. Source: Tarlovskyy's validation paper, section 5.1 ("cooperative validation": each side polls the other's
// position); taking back what may be done twice by stores and loads is idempotent work stealing (Michael et al., 2009).
#pragma once

#include <cstdint>

#include "engine/base/host_device.hpp"
#include "engine/platform/concept.hpp"

namespace kilokv::engine {

inline constexpr std::uint32_t kRingLineWords = 16;  // 128 bytes: what a device fetches at once
enum RingWord : std::uint32_t {
  kRingTail = 0,
  kRingCut = 1,
  kRingHead = kRingLineWords,
  kRingFound = kRingLineWords + 1,
  kRingWords = 2 * kRingLineWords,
};
inline constexpr std::uint64_t kNoCut = ~std::uint64_t{0};
inline constexpr std::uint32_t kNothingFound = 0xFFFFFFFFu;

// An entry: a block of checks. Without any it ends the consumer's service.
struct RingEntry {
  std::uint64_t first = 0;   // its first check, of the read set's
  std::uint64_t offset = 0;  // where that one stands
  std::uint32_t count = 0;
  bool opens = false;  // the first one behind open()
};
inline constexpr std::uint32_t kRingEntryWords = 4;

// All zero but for cut at the start: kNoCut.
template <class Space>
struct RingArguments {
  template <class T>
  using Pointer = typename Space::template Pointer<T>;
  Pointer<std::uint64_t> words = {};    // [kRingWords]
  Pointer<std::uint64_t> entries = {};  // [kRingEntryWords x slots]
  std::uint32_t slots = 0;              // at least 2
};

enum class RingProbe : std::uint32_t { full, empty, passed_over, taken_back, left_to_consumer, probes };

// What a planted bug takes away or puts in, for the tests of the tests.
struct RingRules {
  static constexpr bool kKeepsUndone = true;     // invariant 1
  static constexpr bool kTakesOneBack = true;    // cut falls by the entry that the producer gets, no further
  static constexpr bool kResetsCutFirst = true;  // invariant 2
  static constexpr bool kLooksAtCut = true;
  static constexpr bool kPassesOverAtCut = true;  // the entry before cut is not taken back
  static constexpr Order kTailOrder = Order::release;
  static constexpr Order kTailSeenOrder = Order::acquire;
  static constexpr Order kHeadOrder = Order::release;
  static constexpr Order kHeadSeenOrder = Order::acquire;
  static constexpr Order kCutFence = Order::sequential;   // relaxed: none
  static constexpr Order kHeadFence = Order::sequential;  // relaxed: none
};

template <Platform P, class Rules = RingRules>
class RingProducer {
 public:
  using Space = typename P::Space;
  // `at`: where the last producer of this ring ended.
  KILOKV_HOST_DEVICE RingProducer(P& platform, const RingArguments<Space>& ring, std::uint64_t at = 0)
      : p_(platform), a_(ring), tail_(at), cut_(at) {}

  KILOKV_HOST_DEVICE std::uint64_t tail() const { return tail_; }
  KILOKV_HOST_DEVICE std::uint64_t cut() const { return cut_; }

  // Begins anew. Requires: everything before is done.
  KILOKV_HOST_DEVICE void open() {
    opens_ = true;
    if (Rules::kResetsCutFirst) store_cut(kNoCut);
  }
  KILOKV_HOST_DEVICE bool has_room() {
    const std::uint64_t undone = tail_ - head();
    if (undone + 1 < a_.slots + (Rules::kKeepsUndone ? 0u : 2u)) return true;
    p_.probe(static_cast<std::uint32_t>(RingProbe::full));
    return false;
  }
  KILOKV_HOST_DEVICE std::uint32_t slot() const { return static_cast<std::uint32_t>(tail_ % a_.slots); }
  // Requires: has_room(), or nothing of the entry: that is the last one. What belongs to it is written.
  KILOKV_HOST_DEVICE void publish(const RingEntry& entry) {
    const auto to = a_.entries + std::uint64_t{kRingEntryWords} * slot();
    p_.put(to, entry.first);
    p_.put(to + 1, entry.offset);
    p_.put(to + 2, std::uint64_t{entry.count});
    p_.put(to + 3, std::uint64_t{opens_ ? 1u : 0u});
    p_.store(a_.words + kRingTail, ++tail_, Rules::kTailOrder, Scope::system);
    if (opens_ && !Rules::kResetsCutFirst) store_cut(kNoCut);
    opens_ = false;
    cut_ = tail_;
  }
  // Takes the newest entry back: whether it is the producer's now. If not, there is none that the consumer has not
  // done, or may not be at.
  KILOKV_HOST_DEVICE bool take_back() {
    const std::uint64_t done = head();
    if (cut_ <= done + 1) {
      p_.probe(static_cast<std::uint32_t>(RingProbe::left_to_consumer));
      return false;
    }
    --cut_;
    store_cut(Rules::kTakesOneBack ? cut_ : cut_ - 1);
    if (Rules::kCutFence != Order::relaxed) p_.fence(Rules::kCutFence, Scope::system);
    p_.probe(static_cast<std::uint32_t>(RingProbe::taken_back));
    return true;
  }
  // Takes all back that the consumer has not begun.
  KILOKV_HOST_DEVICE void take_all_back() { store_cut(0); }
  KILOKV_HOST_DEVICE std::uint64_t head() {
    return p_.load(a_.words + kRingHead, Rules::kHeadSeenOrder, Scope::system);
  }
  // Requires: head() has told that the first entry since open() is done, or was passed over.
  KILOKV_HOST_DEVICE std::uint64_t found() { return p_.load(a_.words + kRingFound, Order::relaxed, Scope::system); }

 private:
  KILOKV_HOST_DEVICE void store_cut(std::uint64_t cut) {
    p_.store(a_.words + kRingCut, cut, Order::relaxed, Scope::system);
  }

  P& p_;
  const RingArguments<Space>& a_;
  std::uint64_t tail_, cut_;  // of cut what it was lowered to by take_back(); else the tail
  bool opens_ = false;
};

template <Platform P, class Rules = RingRules>
class RingConsumer {
 public:
  using Space = typename P::Space;
  KILOKV_HOST_DEVICE RingConsumer(P& platform, const RingArguments<Space>& ring, std::uint64_t at = 0)
      : p_(platform), a_(ring), head_(at) {}

  // The next entry that was not taken back, waiting for one.
  KILOKV_HOST_DEVICE RingEntry take() {
    for (;;) {
      if (p_.load(a_.words + kRingTail, Rules::kTailSeenOrder, Scope::system) == head_) {
        p_.probe(static_cast<std::uint32_t>(RingProbe::empty));
        p_.pause();
        continue;
      }
      const RingEntry entry = read();
      if (entry.opens) tell(kNothingFound);
      if (entry.count == 0 || !is_taken_back()) return entry;
      p_.probe(static_cast<std::uint32_t>(RingProbe::passed_over));
      pass();
    }
  }
  // The entry is done, and its slot the producer's again.
  KILOKV_HOST_DEVICE void done(std::uint64_t found) {
    tell(found);
    pass();
  }

 private:
  KILOKV_HOST_DEVICE void tell(std::uint64_t found) {
    p_.store(a_.words + kRingFound, found, Order::relaxed, Scope::system);
  }
  KILOKV_HOST_DEVICE RingEntry read() const {
    const auto from = a_.entries + std::uint64_t{kRingEntryWords} * (head_ % a_.slots);
    RingEntry entry;
    entry.first = p_.get(from);
    entry.offset = p_.get(from + 1);
    entry.count = static_cast<std::uint32_t>(p_.get(from + 2));
    entry.opens = p_.get(from + 3) != 0;
    return entry;
  }
  KILOKV_HOST_DEVICE bool is_taken_back() const {
    if (!Rules::kLooksAtCut) return false;
    const std::uint64_t cut = p_.load(a_.words + kRingCut, Order::relaxed, Scope::system);
    return Rules::kPassesOverAtCut ? head_ >= cut : head_ + 1 >= cut;
  }
  KILOKV_HOST_DEVICE void pass() {
    p_.store(a_.words + kRingHead, ++head_, Rules::kHeadOrder, Scope::system);
    if (Rules::kHeadFence != Order::relaxed) p_.fence(Rules::kHeadFence, Scope::system);
  }

  P& p_;
  const RingArguments<Space>& a_;
  std::uint64_t head_;
};

}  // namespace kilokv::engine
