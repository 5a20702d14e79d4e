#include "engine/table/key_arena.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "engine/base/check.hpp"

namespace kilokv::engine {
namespace {

// An entry: 16 bits with the length, two marks, and the number of units that it has beyond those that its key needs.
// Then the bytes.
// A run: 32 bits with its units from bit 13 on, where the length of an entry would be 0. Then the next run and the run
// before it in the list of runs of as many units. The last unit of a run of 4 or more units is its number of units.
constexpr std::size_t kLengthBytes = sizeof(std::uint16_t);
constexpr std::uint32_t kLengthMask = (1u << 11) - 1;
constexpr std::uint32_t kAfterRun = 1u << 11;       // a run is right before this entry
constexpr std::uint32_t kAfterShortest = 1u << 12;  // and has three units
constexpr std::uint32_t kSpareShift = 13;
constexpr std::uint32_t kUnitsShift = 13;
constexpr std::size_t kNextOffset = 4, kPreviousOffset = 8;

template <class T>
T load(const char* from) {
  T value = 0;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

template <class T>
void store(char* to, T value) {
  std::memcpy(to, &value, sizeof(value));
}

std::uint32_t length_of(const char* entry) { return load<std::uint16_t>(entry) & kLengthMask; }

void store_word(char* entry, std::uint32_t word) { store<std::uint16_t>(entry, static_cast<std::uint16_t>(word)); }

}  // namespace

// A run needs three units.
std::size_t KeyArena::units_for(std::size_t key_bytes) {
  return std::max<std::size_t>(kUnitsMin, (kLengthBytes + key_bytes + kUnitBytes - 1) / kUnitBytes);
}

std::uint32_t KeyArena::units_of_run(std::uint32_t run) const { return load<std::uint32_t>(at(run)) >> kUnitsShift; }

void KeyArena::link(std::uint32_t run, std::uint32_t units) {
  const std::uint32_t list = std::min(units, kLong);
  char* const begin = at(run);
  store<std::uint32_t>(begin, units << kUnitsShift);
  store<std::uint32_t>(begin + kNextOffset, first_[list]);
  store<std::uint32_t>(begin + kPreviousOffset, kNone);
  if (units > kUnitsMin) store<std::uint32_t>(begin + (units - 1) * kUnitBytes, units);
  if (first_[list] != kNone) store<std::uint32_t>(at(first_[list]) + kPreviousOffset, run);
  first_[list] = run;
  has_run_[list / 64] |= std::uint64_t{1} << list % 64;
  if (list < kLong) {
    ++room_.short_runs[list];
  } else {
    ++room_.long_runs;
    room_.long_units += units;
  }
}

void KeyArena::unlink(std::uint32_t run, std::uint32_t units) {
  const std::uint32_t list = std::min(units, kLong);
  const auto next = load<std::uint32_t>(at(run) + kNextOffset);
  const auto previous = load<std::uint32_t>(at(run) + kPreviousOffset);
  if (next != kNone) store<std::uint32_t>(at(next) + kPreviousOffset, previous);
  if (previous != kNone) {
    store<std::uint32_t>(at(previous) + kNextOffset, next);
  } else {
    first_[list] = next;
    if (next == kNone) has_run_[list / 64] &= ~(std::uint64_t{1} << list % 64);
  }
  if (list < kLong) {
    --room_.short_runs[list];
  } else {
    --room_.long_runs;
    room_.long_units -= units;
  }
}

// If there is an entry at `end`, notes in it how long the run right before it is. 0: there is no such run.
void KeyArena::note_before(std::uint32_t end, std::uint32_t units) {
  if (!is_entry(end)) return;
  const std::uint32_t marks = units == 0 ? 0 : units == kUnitsMin ? kAfterRun | kAfterShortest : kAfterRun;
  store_word(at(end), (load<std::uint16_t>(at(end)) & ~(kAfterRun | kAfterShortest)) | marks);
}

// Finds the smallest run that has so many units or more. If there are several, returns one of them. kNone: all are
// smaller.
std::uint32_t KeyArena::smallest_run(std::uint32_t units) const {
  std::uint32_t from = units;
  for (std::uint32_t word = from / 64; word < has_run_.size(); from = ++word * 64) {
    const std::uint64_t bits = has_run_[word] >> from % 64;
    if (bits != 0) return first_[from + static_cast<std::uint32_t>(std::countr_zero(bits))];
  }
  return kNone;
}

// What is left at the end of the open block becomes a run. One or two units become an entry that is never freed.
void KeyArena::close_block() {
  if (open_ == kNone) return;
  const std::uint32_t from = open_, left = kBlockUnits - from % kBlockUnits;
  open_ = kNone;
  if (left >= kUnitsMin) {
    link(from, left);
  } else {
    store_word(at(from), 1);
  }
}

bool KeyArena::open_block() {
  if (given_back_.empty()) {
    if (blocks_.size() == kBlocksMax) return false;
    given_back_.push_back(static_cast<std::uint32_t>(blocks_.size()));
    blocks_.emplace_back();
  }
  close_block();
  const std::uint32_t block = given_back_.back();
  given_back_.pop_back();
  blocks_[block].bytes = ZeroedArray<char>(kBlockUnits * kUnitBytes);
  open_ = block * kBlockUnits;
  return true;
}

// The place of a new entry. What is too short for a run goes to the entry, which then has more than `units` of them.
std::optional<std::uint32_t> KeyArena::place(std::uint32_t* units) {
  if (const std::uint32_t run = smallest_run(*units); run != kNone) {
    const std::uint32_t size = units_of_run(run);
    unlink(run, size);
    if (size - *units < kUnitsMin) *units = size;
    const std::uint32_t left = size - *units;
    if (left > 0) link(run + *units, left);
    note_before(run + size, left);
    return run;
  }
  if (open_ == kNone || open_ % kBlockUnits + *units > kBlockUnits) {
    if (!open_block()) return std::nullopt;
  }
  const std::uint32_t ref = open_;
  open_ += *units;
  if (open_ % kBlockUnits == 0) open_ = kNone;  // full
  return ref;
}

std::optional<std::uint32_t> KeyArena::add(std::string_view key) {
  const auto needed = static_cast<std::uint32_t>(units_for(key.size()));
  KILOKV_CHECK(!key.empty() && needed <= kUnitsMax);
  std::uint32_t units = needed;
  const std::optional<std::uint32_t> ref = place(&units);
  if (!ref) return ref;
  blocks_[*ref / kBlockUnits].keys_units += units;
  store_word(at(*ref), static_cast<std::uint32_t>(key.size()) | (units - needed) << kSpareShift);
  std::memcpy(at(*ref) + kLengthBytes, key.data(), key.size());
  return ref;
}

void KeyArena::remove(std::uint32_t ref) {
  const std::uint32_t word = load<std::uint16_t>(at(ref)), block = ref / kBlockUnits;
  std::uint32_t run = ref, units = static_cast<std::uint32_t>(units_for(word & kLengthMask)) + (word >> kSpareShift);
  blocks_[block].keys_units -= units;
  const std::uint32_t end = ref + units;
  if ((word & kAfterRun) != 0) {
    const std::uint32_t before = (word & kAfterShortest) != 0 ? kUnitsMin : load<std::uint32_t>(at(ref) - kUnitBytes);
    run -= before;
    units += before;
    unlink(run, before);
  }
  if (end == open_ && end % kBlockUnits != 0) {  // else it is the end of this block, and the begin of the open one
    open_ = run;
    return;
  }
  if (is_entry(end) && length_of(at(end)) == 0) {
    const std::uint32_t after = units_of_run(end);
    unlink(end, after);
    units += after;
  }
  link(run, units);
  note_before(run + units, units);
  if (blocks_[block].keys_units == 0) give_back(block);
}

// One block's room stays, so that keys that come and go do not make a block come and go, too.
void KeyArena::give_back(std::uint32_t block) {
  const std::uint32_t run = block * kBlockUnits, units = units_of_run(run);
  if (room_.long_units < units + std::uint64_t{kBlockUnits}) return;
  unlink(run, units);
  blocks_[block].bytes = {};
  given_back_.push_back(block);
}

std::string_view KeyArena::view(std::uint32_t ref) const {
  const char* const entry = at(ref);
  return {entry + kLengthBytes, length_of(entry)};
}

KeyRoom KeyArena::room() const {
  KeyRoom room = room_;
  const std::uint32_t open_units = open_ == kNone ? 0 : kBlockUnits - open_ % kBlockUnits;
  if (open_units >= kLong) {
    ++room.long_runs;
    room.long_units += open_units;
  }
  return room;
}

}  // namespace kilokv::engine
