// A ring of entries from one producer to one consumer. It uses loads and stores only. Across PCIe a host has no
// read-modify-write on the memory of a device, and a device has none on the memory of the host. The producer may take
// back entries that the consumer has not begun.
//
// Positions count entries forever. Entry i has position i and slot i % slots. There are four words, and each has one
// writer:
//   tail   Written by the producer: entries before it have been published.
//   cut    Written by the producer: entries from it on are taken back.
//   head   Written by the consumer: entries before it are done, or were passed over.
//   found  Written by the consumer: what it has found in the entries so far (stm/validator.hpp). head publishes it.
//
// Invariants:
//   (1) A slot is written only when the entry that had it is done. So tail - head is at most the number of slots.
//       Blocks leave one slot free, for the entry that ends the service. So that entry never waits.
//   (2) From one open() to the next, cut only falls, and all entries are published before it falls for the first time.
//       So an entry that the consumer passes over has been taken back by the producer, whichever cut the consumer saw.
//       No entry is left out by both sides. The next open() raises cut when head is at tail, and before anything is
//       published. So no new entry meets an old cut.
//   (3) The consumer looks at cut after its last store of head. The producer looks at head after its last store of cut.
//       Each side has a sequential fence in between. So if both sides take the same entry, at least one of them knows
//       this when it goes on. Therefore this happens to at most one entry between one open() and the next. The entry at
//       `head` belongs to the consumer, and the producer leaves it alone.
//
// Orders: tail and head are stored with release and loaded with acquire. With tail, the consumer gets the entry and
// what belongs to it. With head, the producer gets `found`, and the slot back. cut carries no other data, so it is
// relaxed.
//
// Thread safety: one producer and one consumer, and each writes only the words of its side. Progress: neither side
// waits in this file, except that take() waits for an entry.
//
// Source: Tarlovskyy's validation paper, section 5.1 ("cooperative validation": each side polls the other's position).
// Entries may be done twice, and are taken back with stores and loads only: this is idempotent work stealing (Michael
// et al., 2009).
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

// An entry: a block of checks. An entry without checks ends the consumer's service.
struct RingEntry {
  std::uint64_t first = 0;   // its first check, as a number in the read set
  std::uint64_t offset = 0;  // where the data of that check are
  std::uint32_t count = 0;
  bool opens = false;  // it is the first entry after open()
};
inline constexpr std::uint32_t kRingEntryWords = 4;

// At the start all words are zero, except cut: it is kNoCut.
template <class Space>
struct RingArguments {
  template <class T>
  using Pointer = typename Space::template Pointer<T>;
  Pointer<std::uint64_t> words = {};    // [kRingWords]
  Pointer<std::uint64_t> entries = {};  // [kRingEntryWords x slots]
  std::uint32_t slots = 0;              // at least 2
};

enum class RingProbe : std::uint32_t { full, empty, passed_over, taken_back, left_to_consumer, probes };

// The rules. A mutation (docs/papers.md, section 1) is this struct with one constant changed.
struct RingRules {
  static constexpr bool kKeepsUndone = true;     // invariant 1
  static constexpr bool kTakesOneBack = true;    // cut falls to the entry that the producer gets, not further
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
  // `at`: the position at which the last producer of this ring ended.
  KILOKV_HOST_DEVICE RingProducer(P& platform, const RingArguments<Space>& ring, std::uint64_t at = 0)
      : p_(platform), a_(ring), tail_(at), cut_(at) {}

  KILOKV_HOST_DEVICE std::uint64_t tail() const { return tail_; }
  KILOKV_HOST_DEVICE std::uint64_t cut() const { return cut_; }

  // Begins anew. Requires: all earlier entries are done.
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
  // Requires: what belongs to the entry is written, and has_room() holds. The entry that ends the service needs no
  // has_room().
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
  // Takes back the newest entry that was not taken back before. Returns whether it belongs to the producer now. If not,
  // the consumer has done every such entry, or may be at it.
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
  // Takes back all entries that the consumer has not begun.
  KILOKV_HOST_DEVICE void take_all_back() { store_cut(0); }
  KILOKV_HOST_DEVICE std::uint64_t head() {
    return p_.load(a_.words + kRingHead, Rules::kHeadSeenOrder, Scope::system);
  }
  // Requires: head() has shown that the first entry since open() is done, or was passed over.
  KILOKV_HOST_DEVICE std::uint64_t found() { return p_.load(a_.words + kRingFound, Order::relaxed, Scope::system); }

 private:
  KILOKV_HOST_DEVICE void store_cut(std::uint64_t cut) {
    p_.store(a_.words + kRingCut, cut, Order::relaxed, Scope::system);
  }

  P& p_;
  const RingArguments<Space>& a_;
  std::uint64_t tail_, cut_;  // cut_: what take_back() has lowered cut to; before that, the tail
  bool opens_ = false;
};

template <Platform P, class Rules = RingRules>
class RingConsumer {
 public:
  using Space = typename P::Space;
  KILOKV_HOST_DEVICE RingConsumer(P& platform, const RingArguments<Space>& ring, std::uint64_t at = 0)
      : p_(platform), a_(ring), head_(at) {}

  // Waits for the next entry that was not taken back, and returns it.
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
  // The entry is done, and its slot belongs to the producer again.
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
