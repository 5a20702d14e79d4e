// The rules of the strategies as variables, for the mutations in tests. A strategy is a template over its rules. The
// rules of the product are constants, so that they cost nothing. The rules here are variables, and each begins with the
// product's value. A mutation gives one of them another value for one test. So a test compiles a strategy once for all
// mutations, and not once for each.
//
// Each struct has all rules of `Of`, the product's struct. It does not derive from `Of`, so that a strategy does not
// compile while one of its rules is missing here. Thread safety: none.
#pragma once

#include <type_traits>

#include "tests/unit/engine/sim/sim_seeds.hpp"

namespace kilokv::engine {

// Gives a rule this value for the lifetime of the object. Then the rule gets its former value back, also if the test
// has failed.
template <class Rule>
class Planted {
 public:
  Planted(Rule* rule, std::type_identity_t<Rule> value) : rule_(*rule), before_(*rule) { rule_ = value; }
  Planted(const Planted&) = delete;
  Planted& operator=(const Planted&) = delete;
  ~Planted() { rule_ = before_; }

 private:
  Rule& rule_;
  const Rule before_;
};

// A test of a mutation. It gives the rule this value, and then does what the last argument says.
#define PLANTED_RULE(test, rule, value, ...) PLANTED_TEST(test, const Planted planted_rule(&(rule), value); __VA_ARGS__)

// NOLINTNEXTLINE(bugprone-macro-parentheses): a name that is declared cannot be in parentheses
#define KILOKV_RULE(rule) constinit static inline auto rule = Of::rule

template <class Of>
struct PlantedOrderedRules {
  KILOKV_RULE(kOlderReader);
  KILOKV_RULE(kTagsReads);
  KILOKV_RULE(kBarrierBeforeDecide);
  KILOKV_RULE(kBarrierBehindRound);
  KILOKV_RULE(kTwoSets);
  KILOKV_RULE(kJoinsFirst);
  KILOKV_RULE(kPlacesByPass);
  KILOKV_RULE(kBoundsDeltas);
  KILOKV_RULE(kReadersJoin);
  KILOKV_RULE(kAddersJoin);
  KILOKV_RULE(kJoinsUntilStill);
  KILOKV_RULE(kWalksByPass);
  KILOKV_RULE(kMeetsBeforeWalk);
  KILOKV_RULE(kMeetsBehindWalk);
};

template <class Of>
struct PlantedPartitionedRules {
  KILOKV_RULE(kOlderReader);
  KILOKV_RULE(kOlderWriter);
  KILOKV_RULE(kReadersWaitForAdds);
  KILOKV_RULE(kBoundsDeltas);
  KILOKV_RULE(kBarrierBeforeDecide);
  KILOKV_RULE(kBarrierBeforeRun);
  KILOKV_RULE(kTwoSets);
  KILOKV_RULE(kSettles);
};

template <class Of>
struct PlantedRingRules {
  KILOKV_RULE(kKeepsUndone);
  KILOKV_RULE(kTakesOneBack);
  KILOKV_RULE(kResetsCutFirst);
  KILOKV_RULE(kLooksAtCut);
  KILOKV_RULE(kPassesOverAtCut);
  KILOKV_RULE(kTailOrder);
  KILOKV_RULE(kTailSeenOrder);
  KILOKV_RULE(kHeadOrder);
  KILOKV_RULE(kHeadSeenOrder);
  KILOKV_RULE(kCutFence);
  KILOKV_RULE(kHeadFence);
};

template <class Of>
struct PlantedValidatorRules : PlantedRingRules<Of> {
  KILOKV_RULE(kKeepsLowest);
  KILOKV_RULE(kResetsFound);
  KILOKV_RULE(kMeetsBehindBlock);
  KILOKV_RULE(kSeesEnd);
  KILOKV_RULE(kWaitsForLast);
  KILOKV_RULE(kNamesFirst);
  KILOKV_RULE(kChecksTakenBack);
};

template <class Of>
struct PlantedTicketedRules {
  KILOKV_RULE(kSeesEndOfRange);
  KILOKV_RULE(kLastRangeLocks);
  KILOKV_RULE(kInFlightStays);
  KILOKV_RULE(kStopsWhenIdle);
};

template <class Of>
struct PlantedLogRules : PlantedTicketedRules<Of> {
  KILOKV_RULE(kFindsOwnWrites);
  KILOKV_RULE(kLogsReads);
};

template <class Of>
struct PlantedLockRules : PlantedLogRules<Of> {
  KILOKV_RULE(kInOrder);
  KILOKV_RULE(kReadersLock);
  KILOKV_RULE(kLockOrder);
  KILOKV_RULE(kFreeOrder);
};

template <class Of>
struct PlantedGpustmRules : PlantedLogRules<Of> {
  KILOKV_RULE(kValidatesByTime);
  KILOKV_RULE(kValidatesReadOnly);
  KILOKV_RULE(kClockOrder);
  KILOKV_RULE(kTimeOrder);
  KILOKV_RULE(kReadFence);
  KILOKV_RULE(kCompareOrder);
  KILOKV_RULE(kLockOrder);
  KILOKV_RULE(kTicketOrder);
  KILOKV_RULE(kWriteFence);
  KILOKV_RULE(kFreeOrder);
};

// The lock word of `prstm` is a type. Here its functions are variables.
template <class Of>
struct PlantedLockWord {
  KILOKV_RULE(kOwnerMax);
  KILOKV_RULE(free);
  KILOKV_RULE(prelocked);
  KILOKV_RULE(locked);
  KILOKV_RULE(version);
  KILOKV_RULE(owner);
  KILOKV_RULE(is_prelocked);
  KILOKV_RULE(is_locked);
};

template <class Of>
struct PlantedPrstmRules : PlantedLogRules<Of> {
  using Word = PlantedLockWord<typename Of::Word>;
  KILOKV_RULE(kLockFirst);
  KILOKV_RULE(kLockedReadConflicts);
  KILOKV_RULE(kValidatesBehindTicket);
  KILOKV_RULE(kValidatesEveryOutcome);
  KILOKV_RULE(kWastesTickets);
  KILOKV_RULE(kRunsOnce);
  KILOKV_RULE(kLocksOnce);
  KILOKV_RULE(kFreesBySwap);
  KILOKV_RULE(kStealsPrelocksOnly);
  KILOKV_RULE(kClaims);
  KILOKV_RULE(kRespectsClaims);
  KILOKV_RULE(kClaimsByPriority);
  KILOKV_RULE(kDropsClaims);
  KILOKV_RULE(kHasPriorities);
  KILOKV_RULE(kReadOrder);
  KILOKV_RULE(kWaitFence);
  KILOKV_RULE(kLockOrder);
  KILOKV_RULE(kTicketOrder);
  KILOKV_RULE(kWriteFence);
  KILOKV_RULE(kFreeOrder);
};

template <class Of>
struct PlantedLocalRules : PlantedPrstmRules<Of> {
  static constexpr bool kTimes = Of::kTimes;  // a constant, because it chooses a type
  KILOKV_RULE(kSetsBits);
  KILOKV_RULE(kClaimsReads);
  KILOKV_RULE(kLooksAtOtherGroups);
  KILOKV_RULE(kChecksOwner);
  KILOKV_RULE(kRestores);
  KILOKV_RULE(kSerializesWarps);
  KILOKV_RULE(kSerializesBlock);
  KILOKV_RULE(kRespectsToken);
  KILOKV_RULE(kGivesTokenBack);
  KILOKV_RULE(kWritesBack);
  KILOKV_RULE(kWritesBackAtEnd);
  KILOKV_RULE(kWaitsForStage);
  KILOKV_RULE(kWaitsForWriteBack);
  KILOKV_RULE(kStraddlersBehind);
  KILOKV_RULE(kTellsPartsApart);
  KILOKV_RULE(kClaimFence);
  KILOKV_RULE(kLookOrder);
  KILOKV_RULE(kReleaseOrder);
};

template <class Of>
struct PlantedKiloRules : PlantedLogRules<Of> {
  KILOKV_RULE(kWays);
  KILOKV_RULE(kAliasesDelay);
  KILOKV_RULE(kEvictsToFilter);
  KILOKV_RULE(kFilterKeepsYoungest);
  KILOKV_RULE(kInOrderOfRanks);
  KILOKV_RULE(kWaitsForHazard);
  KILOKV_RULE(kValidatesBehindHazard);
  KILOKV_RULE(kValidatesWords);
  KILOKV_RULE(kClaimsReads);
  KILOKV_RULE(kCommitsEveryOutcome);
  KILOKV_RULE(kKeepsLimit);
  KILOKV_RULE(kWastesTickets);
  KILOKV_RULE(kAnnounceOrder);
  KILOKV_RULE(kSlotOrder);
  KILOKV_RULE(kTakeOrder);
  KILOKV_RULE(kLeaveOrder);
  KILOKV_RULE(kPassedOrder);
  KILOKV_RULE(kEndOrder);
  KILOKV_RULE(kEndedOrder);
  KILOKV_RULE(kRetireOrder);
  KILOKV_RULE(kRetiredOrder);
  KILOKV_RULE(kWriteFence);
  KILOKV_RULE(kReadFence);
  KILOKV_RULE(kBeginOrder);
  KILOKV_RULE(kLeaveLimitOrder);
};

#undef KILOKV_RULE

}  // namespace kilokv::engine
