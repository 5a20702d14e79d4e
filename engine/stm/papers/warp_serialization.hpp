// Which lanes of a stage (stm/papers/stage.hpp) may try their transactions, so that somebody gets on.
//
// A group's conflict mask is the set of its lanes that met a conflict in the last sweep. Where it is the same twice in
// a row, the lowest of them goes alone in its group (warp serialization). Where that one meets a conflict again, it
// takes the block's token: as long as it has it, all other groups hold back (block serialization). When it has ended,
// or has nothing to try any more, the group goes on as before. Where several blocks share the stage, what is said of
// the block is of all of them.
//
// Progress. Attempts end by themselves, and a lane that looked at the token before it was taken makes but that one
// more. Then nobody has a claim but the lane that is alone in the block, whose own bits are no conflict: it ends. So
// whoever has the token gets on, and gives it to the next. Without a token a mask changes only where some lane has
// ended or begun; so either somebody gets on, or the mask is the same and a lane goes for the token (docs/papers.md,
// gap 8).
//
// The token is for progress and never for safety: all its accesses are relaxed.
//
// Thread safety: an object is one thread's; the lanes of a group call learn() together. Source: GPU-LocalTM,
// section 3.1. Deviations:
//   - lanes whose transactions have committed go on with their next ones, while the mask is about the others
//   - what runs when a group takes the token is not aborted, for it ends within its attempt
//   - the other lanes of a group hold back while one is alone, rather than run to be masked out
#pragma once

#include <cstdint>

#include "engine/base/host_device.hpp"
#include "engine/platform/concept.hpp"
#include "engine/stm/papers/prstm.hpp"
#include "engine/stm/papers/stage.hpp"
#include "engine/stm/papers/ticketed.hpp"

namespace kilokv::engine {

// Rare places, for the simulator (platform/concept.hpp), behind those of the rest.
enum class LocalProbe : std::uint32_t {
  lane_restarted = static_cast<std::uint32_t>(PrstmProbe::probes),
  warp_serialized,
  block_serialized,
  held_back_by_token,  // of another group
  alias_met,           // a conflict about a bit, not about the record
  wrote_alias,         // a record whose bit was already its own
  restored,            // what it had written when it met a conflict
  staged_commit,
  behind_stage,  // one that runs when the stage was written back
  beside_stage,  // or beside it
  probes,
};
static_assert(kProtocolProbes + static_cast<std::uint32_t>(LocalProbe::probes) <= kProbes);

enum class Serialized : std::uint8_t { no, in_group, in_block };

template <Platform P, class Rules>
class Serialization {
 public:
  KILOKV_HOST_DEVICE explicit Serialization(P& platform) : p_(platform) {}

  // Whether this lane may not try its transaction now. `stage`, also below: that which the lanes share.
  KILOKV_HOST_DEVICE bool holds_back(const Stage<P, Rules>& stage) const {
    if (alone_ != Serialized::no && !is_alone()) return true;
    const std::uint64_t token = stage.token();
    if (token == my_token()) return false;
    if (alone_ == Serialized::in_block) {
      if (token == 0 && stage.take_token(my_token())) return false;
    } else if (token == 0 || !Rules::kRespectsToken) {
      return false;
    }
    p_.probe(kProtocolProbes + static_cast<std::uint32_t>(LocalProbe::held_back_by_token));
    return true;
  }

  // How this lane is, where it may try its transaction; and for what it holds back, where not.
  KILOKV_HOST_DEVICE Serialized is() const { return is_alone() ? alone_ : Serialized::no; }
  KILOKV_HOST_DEVICE Serialized holds_back_for() const {
    return alone_ == Serialized::in_group && !is_alone() ? Serialized::in_group : Serialized::in_block;
  }

  // What came of this lane's attempt: a conflict; that, or it held back. Returns what this lane has become.
  KILOKV_HOST_DEVICE Serialized learn(const Stage<P, Rules>& stage, bool failed, bool goes_on) {
    const std::uint32_t conflicts = p_.ballot(failed);
    if (alone_ == Serialized::no) {
      const bool is_same = conflicts != 0 && conflicts == mask_;
      mask_ = conflicts;
      if (!is_same || !Rules::kSerializesWarps) return Serialized::no;
      lane_alone_ = lowest_bit(conflicts);
      return become(Serialized::in_group);
    }
    if ((p_.ballot(goes_on) >> lane_alone_ & 1) == 0) {
      if (is_alone() && Rules::kGivesTokenBack && stage.token() == my_token()) stage.give_token_back();
      mask_ = 0;
      return become(Serialized::no);
    }
    const bool met_again = (conflicts >> lane_alone_ & 1) != 0;
    if (alone_ == Serialized::in_block || !met_again || !Rules::kSerializesBlock) return Serialized::no;
    return become(Serialized::in_block);
  }

 private:
  KILOKV_HOST_DEVICE Serialized become(Serialized alone) {
    alone_ = alone;
    return is_alone() ? alone : Serialized::no;
  }
  KILOKV_HOST_DEVICE bool is_alone() const { return p_.lane() == lane_alone_; }
  KILOKV_HOST_DEVICE std::uint64_t my_token() const { return std::uint64_t{p_.group()} + 1; }

  P& p_;
  // Of the group, the same in all its lanes.
  Serialized alone_ = Serialized::no;  // how its lane_alone_ is
  std::uint32_t lane_alone_ = 0;
  std::uint32_t mask_ = 0;  // lanes that met a conflict in the last sweep
};

}  // namespace kilokv::engine
