// The cooperative validator and its ring under thousands of seeded schedules of the simulator, half of them in weak
// memory. The runs must come through all the rare places (probes). Then the same with mutations, each of which takes
// one rule or memory order away. Each must be found.
//
// What is checked: the first stale read is named. Every read before it was checked. Both sides checked at most one
// common block of a read set. The simulator checks for races and progress.

#include "engine/stm/validator.hpp"

#include <algorithm>
#include <vector>

#include "engine/sim/sim_platform.hpp"
#include "engine/workloads/random.hpp"
#include "tests/unit/engine/harness.hpp"
#include "tests/unit/engine/sim/sim_seeds.hpp"
#include "tests/unit/engine/stm/planted_rules.hpp"

namespace kilokv::engine {
namespace {

constexpr const char* kProgram = "engine_validator_sim_test";
constexpr std::uint64_t kSchedules = schedules_to_run(10000);
constexpr std::uint32_t kRecords = 12, kCapacity = 17;

// The front is lane 0 of the grid, and alone.
class FrontPlatform : public SimPlatform4 {
 public:
  explicit FrontPlatform(Lanes* lanes) : SimPlatform4(lanes, 0) {}
  static std::uint32_t threads() { return 1; }
};
// The back's grid is the second block.
class BackPlatform : public SimPlatform4 {
 public:
  BackPlatform(Lanes* lanes, std::uint32_t lane) : SimPlatform4(lanes, lane) {}
  std::uint32_t thread() const { return block_thread(); }
  std::uint32_t threads() const { return block_threads(); }
  void grid_barrier() const { block_barrier(); }
};
static_assert(Platform<FrontPlatform> && Platform<BackPlatform>);

struct SimReadSet {
  std::vector<std::uint64_t> ids, versions;
  std::uint32_t first_stale = kAllValid;
  // Who looked: at each read, and at each block that was handed over.
  std::vector<std::uint32_t> by_front, by_back;
  std::uint32_t size() const { return static_cast<std::uint32_t>(versions.size()); }
};

// What a run works on, and how.
struct SimValidation {
  explicit SimValidation(std::uint64_t seed) {
    Random random(seed);
    constexpr std::uint32_t kBackThreads[] = {1, 1, 4, 8};
    shape = {.blocks = 2, .block_threads = kBackThreads[random.below(4)], .group_width = 4};
    ring_slots = static_cast<std::uint32_t>(2 + random.below(4));
    block = static_cast<std::uint32_t>(1 + random.below(4));
    front_block = static_cast<std::uint32_t>(1 + random.below(2));
    copies = random.chance(0.7);
    lanes = random.chance(0.5) ? ValidatorLanes::coalesced : ValidatorLanes::strided;
    table.assign(4 * kCapacity, 0);
    for (std::uint64_t i = 0; i < kRecords; ++i) insert(i);
    for (std::uint64_t i = 1 + random.below(3); i > 0; --i) sets.push_back(draw(&random));
    words.assign(kRingWords, 0);
    words[kRingCut] = kNoCut;
    grid.assign(kGridWords, 0);
    entries.assign(std::size_t{kRingEntryWords} * ring_slots, 0);
    staged_ids.assign(std::size_t{2} * ring_slots * block, 0);
    staged_versions.assign(std::size_t{ring_slots} * block, 0);
  }

  static KeyId id_of(std::uint64_t number) { return {number + 1, number % 5 << 61 | number}; }
  void insert(std::uint64_t number) {
    const KeyId id = id_of(number);
    std::uint32_t slot = scaled_home(id.high, kCapacity);
    while (table[4 * slot] != 0) slot = slot + 1 == kCapacity ? 0 : slot + 1;
    table[4 * slot] = id.low;
    table[4 * slot + 1] = id.high;
    table[4 * slot + 3] = make_tag(number + 10, ValueType::integer);
  }
  SimReadSet draw(Random* random) const {
    SimReadSet set;
    const std::uint64_t size = 1 + random->below(random->chance(0.3) ? 4 : 16);
    const double stale_share = random->chance(0.4) ? 0 : random->chance(0.5) ? 0.1 : 0.4;
    for (std::uint64_t i = 0; i < size; ++i) {
      const std::uint64_t number = random->below(kRecords + 4);  // some are not there
      const KeyId id = id_of(number);
      set.ids.insert(set.ids.end(), {id.low, id.high});
      const bool is_stale = random->chance(stale_share);
      set.versions.push_back((number < kRecords ? number + 10 : 0) + (is_stale ? 1 : 0));
      if (is_stale && set.first_stale == kAllValid) set.first_stale = static_cast<std::uint32_t>(i);
    }
    set.by_front.assign(size, 0);
    set.by_back.assign(size, 0);
    return set;
  }
  ValidatorArguments<HostSpace> arguments(std::size_t set) {
    ValidatorArguments<HostSpace> a;
    a.ring = {words.data(), entries.data(), ring_slots};
    a.grid = grid.data();
    a.ids = copies ? staged_ids.data() : sets[set].ids.data();
    a.versions = copies ? staged_versions.data() : sets[set].versions.data();
    a.slots = table.data();
    a.capacity = kCapacity;
    a.lanes = lanes;
    return a;
  }

  GridShape shape;
  std::uint32_t ring_slots, block, front_block;
  bool copies;  // of a read set, by slots; else it is read in place, and there is but one
  ValidatorLanes lanes;
  std::vector<std::uint64_t> table, words, grid, entries, staged_ids, staged_versions;
  std::vector<SimReadSet> sets;
  std::size_t current = 0;  // of the front
  std::vector<ValidatorResult> results;
};

struct SimSource {
  FrontPlatform& p;
  SimValidation& run;

  std::uint32_t first_stale(std::uint32_t begin, std::uint32_t end) const {
    SimReadSet& set = run.sets[run.current];
    ValidatorArguments<HostSpace> a = run.arguments(run.current);
    a.ids = set.ids.data();
    a.versions = set.versions.data();
    for (std::uint32_t i = begin; i < end; ++i) ++set.by_front[i];
    const std::uint32_t stale = LaneCheck<FrontPlatform>(a).first_stale(p, begin, end - begin);
    return stale == kAllValid ? kAllValid : begin + stale;
  }
  std::uint64_t stage(std::uint32_t slot, std::uint32_t begin, std::uint32_t end) const {
    if (!run.copies) return begin;
    const SimReadSet& set = run.sets[run.current];
    const std::uint64_t to = std::uint64_t{slot} * run.block;
    for (std::uint64_t i = 0; i < end - begin; ++i) {
      p.put(&run.staged_ids[2 * (to + i)], set.ids[2 * (begin + i)]);
      p.put(&run.staged_ids[2 * (to + i) + 1], set.ids[2 * (begin + i) + 1]);
      p.put(&run.staged_versions[to + i], set.versions[begin + i]);
    }
    return to;
  }
  static constexpr bool waits() { return true; }
};

struct SimCheck {
  const ValidatorArguments<HostSpace>& a;
  SimValidation& run;

  std::uint32_t first_stale(BackPlatform& p, std::uint64_t offset, std::uint32_t count) const {
    if (p.thread() == 0) {
      std::vector<std::uint32_t>& looked = run.sets[run.current].by_back;
      const std::size_t first = a.grid[kGridFirst];
      for (std::size_t i = first; i < std::min<std::size_t>(first + count, looked.size()); ++i) ++looked[i];
    }
    return LaneCheck<BackPlatform>(a).first_stale(p, offset, count);
  }
};

using Rules = PlantedValidatorRules<ValidatorRules>;

struct Family {
  static Status run_seed(std::uint64_t seed, SimTotals* totals, const Schedule* given = nullptr) {
    SimValidation run(seed);
    if (!run.copies) run.sets.resize(1);
    Random random(seed ^ 0x5EED);
    Schedule schedule;
    schedule.seed = seed;
    schedule.kind = seed % 4 == 0 ? Schedule::Kind::lockstep : Schedule::Kind::interleaved;
    schedule.preempt_probability = random.chance(0.5) ? 0.5 : 0.1;
    schedule.steps_max = 100'000;
    if (seed >= kWeakSeeds) schedule.stale_probability = random.chance(0.5) ? 0.2 : 0.6;
    if (given != nullptr) schedule = *given;
    Lanes lanes(run.shape);
    const ValidatorArguments<HostSpace> a = run.arguments(0);
    const RunReport report = lanes.run(schedule, [&](std::uint32_t lane) {
      if (lane == 0) return be_front(&lanes, a, &run);
      if (lane < run.shape.block_threads) return;
      BackPlatform platform(&lanes, lane);
      ValidatorBack<BackPlatform, SimCheck, Rules>(platform, a, SimCheck{a, run}).serve();
    });
    totals->schedule = schedule;
    totals->report = report;
    totals->count(report);
    return report.status.ok() ? judge(run) : report.status;
  }

  static void be_front(Lanes* lanes, const ValidatorArguments<HostSpace>& a, SimValidation* run) {
    FrontPlatform platform(lanes);
    SimSource source{platform, *run};
    ValidatorFront<FrontPlatform, SimSource, Rules> front(
        platform, a.ring, 0, {.block = run->block, .front_block = run->front_block}, &source);
    for (run->current = 0; run->current < run->sets.size(); ++run->current) {
      run->results.push_back(front.run(run->sets[run->current].size()));
    }
    --run->current;  // a mutation may let the back still work on it
    front.end();
  }

  static Status judge(const SimValidation& run) {
    for (std::size_t i = 0; i < run.sets.size(); ++i) {
      const SimReadSet& set = run.sets[i];
      const std::string which = "read set " + std::to_string(i) + ": ";
      const auto wrong = [&](const std::string& what) { return Status(StatusCode::internal, which + what); };
      if (run.results[i].first_stale != set.first_stale) {
        return wrong(std::to_string(static_cast<int>(run.results[i].first_stale)) + " is named, not " +
                     std::to_string(static_cast<int>(set.first_stale)));
      }
      std::uint32_t blocks_of_both = 0;
      for (std::uint32_t end = set.size(); end > 0;) {
        const std::uint32_t begin = end - std::min(run.block, end);
        bool both = false;
        for (std::uint32_t at = begin; at < end; ++at) {
          if (set.by_front[at] + set.by_back[at] == 0 && at < set.first_stale)
            return wrong("a read that nobody checked");
          if (set.by_front[at] > 1 || set.by_back[at] > 1) return wrong("a read that one side checked twice");
          both = both || (set.by_front[at] > 0 && set.by_back[at] > 0);
        }
        blocks_of_both += both ? 1 : 0;
        end = begin;
      }
      if (blocks_of_both > 1) return wrong("more than one block that both sides checked");
    }
    return {};
  }
};
using Weak = InWeakMemory<Family>;

void expect_all_probes(const SimTotals& totals) {
  const auto expect = [&](auto probe, const char* name) {
    expect_probe(totals, static_cast<std::uint32_t>(probe), name);
  };
  expect(RingProbe::full, "a ring without room");
  expect(RingProbe::empty, "a ring without entries");
  expect(RingProbe::passed_over, "a block passed over, for it was taken back");
  expect(RingProbe::taken_back, "a block taken back");
  expect(RingProbe::left_to_consumer, "a block left to the back, which is at it");
  expect(ValidatorProbe::met, "both sides met");
  expect(ValidatorProbe::stopped_by_front, "the back stopped by the front");
  expect(ValidatorProbe::found_by_back, "the first one found by the back");
  expect(ValidatorProbe::found_by_both, "one found by each side");
}

TEST(validator_holds) {
  const SimTotals totals = expect_to_hold<Family>(kProgram, "validator_holds", kSchedules);
  if (replayed_seed() == nullptr) expect_all_probes(totals);
}
TEST(validator_holds_in_weak_memory) {
  const SimTotals totals = expect_to_hold<Weak>(kProgram, "validator_holds_in_weak_memory", kSchedules);
  if (replayed_seed() != nullptr) return;
  expect_all_probes(totals);
  EXPECT_TRUE(totals.stale_loads > kSchedules);
}

#define PLANTED_IN(Scenario, test, rule, as) \
  PLANTED_RULE(test, Rules::rule, as, expect_to_fail<Scenario>(kProgram, #test))
#define PLANTED(test, rule) PLANTED_IN(Family, test, rule, false)
#define RELAXED(test, order) PLANTED_IN(Weak, test, order, Order::relaxed)

PLANTED(a_slot_written_before_it_is_read_is_found, kKeepsUndone)
PLANTED(a_block_that_is_taken_back_and_not_checked_is_found, kChecksTakenBack)
PLANTED(a_partition_with_a_gap_of_the_front_is_found, kTakesOneBack)
PLANTED(a_partition_with_a_gap_of_the_back_is_found, kPassesOverAtCut)
PLANTED(a_cut_that_is_not_looked_at_is_found, kLooksAtCut)
PLANTED(a_cut_left_from_the_read_set_before_is_found, kResetsCutFirst)
PLANTED(an_end_that_is_not_seen_is_found, kSeesEnd)
PLANTED(a_later_one_named_by_the_back_is_found, kKeepsLowest)
PLANTED(a_later_one_named_at_the_stop_is_found, kNamesFirst)
PLANTED(a_find_of_the_read_set_before_is_found, kResetsFound)
PLANTED(a_find_that_is_not_waited_for_is_found, kWaitsForLast)
PLANTED(a_block_that_is_done_before_all_are_is_found, kMeetsBehindBlock)

RELAXED(a_tail_that_does_not_release_is_found, kTailOrder)
RELAXED(a_tail_that_is_not_acquired_is_found, kTailSeenOrder)
RELAXED(a_head_that_does_not_release_is_found, kHeadOrder)
RELAXED(a_head_that_is_not_acquired_is_found, kHeadSeenOrder)
RELAXED(a_cut_without_a_fence_is_found, kCutFence)
RELAXED(a_head_without_a_fence_is_found, kHeadFence)

}  // namespace
}  // namespace kilokv::engine
