// Weak memory for the simulator: the values that C++20 lets a load read under release, acquire, relaxed and sequential
// orders. So a missing fence or a too weak order shows in a run, even if all data are contended words.
//
// A word keeps its last values, oldest to newest. A view tells for each word the oldest value that may still be read. A
// lane has three views. The first is what it has seen. The second is what its relaxed loads met: an acquire fence adds
// it to the first. The third is what its last release fence saw. A value carries the view that it releases.
//   - A load reads any value that is not older than the lane's view, and raises the view to it: no lane ever goes back.
//     An acquire load adds the view that the value carries.
//   - A store adds a newest value. A release store carries the lane's view. A relaxed store carries the view of the
//     lane's last release fence.
//   - A change reads the newest value, and also carries what that value released. A change that changes nothing is a
//     load of the newest value.
//   - Barriers join the views of the lanes that meet.
//   - Sequential loads, stores and changes of one word see each other in the order of the run. Sequential fences share
//     one view. They are also acquire and release.
//
// This allows less than C++20. The stores of a word have the order of the run. No load reads what is stored later. A
// word keeps kValues values. A lane that has read older values of a word kStaleMax times in a row reads the newest one,
// so that a lane that waits for a value gets it. Not checked: scopes, and words that overlap at different addresses.
// The race detector checks plain data (get, put): a get reads the newest value.
//
// The values in memory are the newest ones: the caller writes them there.
//
// Thread safety: one thread for each object. Source: "A promising semantics for relaxed-memory concurrency" (Kang et
// al., 2017), its views without promises. Older values are chosen by chance as in tsan11 (Lidbury and Donaldson, 2017).
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "engine/platform/concept.hpp"
#include "engine/sim/address_numbers.hpp"
#include "engine/sim/lane_mask.hpp"

namespace kilokv::engine {

class WeakMemory {
 public:
  static constexpr std::uint32_t kValues = 8;
  static constexpr std::uint32_t kStaleMax = 8;
  using Clocks = std::vector<std::uint32_t>;

  explicit WeakMemory(std::uint32_t lanes) : lanes_(lanes) {}

  void start();  // begins a run: each word has one value, the one in memory at its first use
  // These lanes have met at a barrier.
  void join(LaneMask lanes);

  // How many values before the newest one the lane may read. `newest`: the value in memory.
  std::uint32_t older(std::uint32_t lane, const void* word, std::uint64_t newest, Order order);
  // Reads the value `age` before the newest. Requires: `age` is at most what older() just returned.
  std::uint64_t load(std::uint32_t lane, const void* word, std::uint32_t age, Order order);
  // `old`: the value in memory, the newest so far.
  void store(std::uint32_t lane, const void* word, std::uint64_t old, std::uint64_t value, Order order);
  void change(std::uint32_t lane, const void* word, std::uint64_t old, std::uint64_t value, Order order);
  void fence(std::uint32_t lane, Order order);
  void get(std::uint32_t lane, const void* datum);
  void put(std::uint32_t lane, const void* datum, std::uint64_t value);

  // Data that the caller keeps with the value `age` before the newest; empty for a new value. Requires: the word was
  // used.
  Clocks& beside(const void* word, std::uint32_t age) { return value_of(&words_[numbers_.find(word)], age).beside; }

 private:
  using Time = std::uint32_t;      // of a value, among the values of its word
  using View = std::vector<Time>;  // by number of word; a word after its end has 0: any value
  struct Value {
    std::uint64_t value = 0;
    View released;
    Clocks beside;
  };
  struct Word {
    Time newest = 0;
    std::array<Value, kValues> values;  // of time t at t % kValues
    std::vector<std::uint32_t> stale;   // of each lane: loads of older values in a row
  };
  struct Views {
    View seen, met, fence_released;
  };

  std::uint32_t number_of(const void* word, std::uint64_t value);
  static Value& value_of(Word* word, std::uint32_t age) { return word->values[(word->newest - age) % kValues]; }
  Value& add_value(std::uint32_t lane, std::uint32_t number, std::uint64_t value);
  void acquire(std::uint32_t lane, const Value& value, Order order);
  const View& released_by(std::uint32_t lane, Order order) const;
  static Time time_in(const View& view, std::uint32_t number) { return number < view.size() ? view[number] : 0; }
  static void raise(View* view, std::uint32_t number, Time time);
  static void join_into(View* to, const View& from);

  const std::uint32_t lanes_;
  AddressNumbers numbers_;
  std::vector<Word> words_;
  std::vector<Views> views_;  // of each lane
  View sequential_;
  View joined_;
};

}  // namespace kilokv::engine
