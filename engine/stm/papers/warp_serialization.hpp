// Decides which lanes of a stage (stm/papers/stage.hpp) may try their transactions, so that some lane makes progress.
//
// A group's conflict mask is the set of its lanes that met a conflict in the last sweep. If the mask is the same twice
// in a row, the lowest of these lanes runs alone in its group (warp serialization). If this lane meets a conflict
// again, it takes the token of the block. As long as it has the token, all other groups hold back (block
// serialization). When this lane has ended, or has nothing to try any more, the group goes on as before. Where several
// blocks share the stage, "the block" means all of them.
//
// Progress. Attempts end by themselves. A lane that looked at the token before it was taken makes only that one more
// attempt. After that, the lane that is alone in the block is the only one that has claims. Its own bits are no
// conflict, so it ends. So whichever lane has the token makes progress, and passes the token on. Without a token, a
// mask changes only if some lane has ended or begun. So either some lane makes progress, or the mask stays the same and
// a lane tries to get the token (docs/papers.md, gap 8).
//
// The token is for progress and never for safety: all its accesses are relaxed.
//
// Thread safety: each object belongs to one thread. The lanes of a group call learn() together.
//
// Source: GPU-LocalTM, section 3.1. Deviations:
//   - Lanes whose transactions have committed go on with their next ones, while the mask concerns the other lanes.
//   - When a group takes the token, running attempts are not aborted, because they end by themselves.
//   - The other lanes of a group hold back while one lane is alone. In the paper they run and are masked out.
#pragma once

#include <cstdint>

#include "engine/base/host_device.hpp"
#include "engine/platform/concept.hpp"
#include "engine/stm/papers/prstm.hpp"
#include "engine/stm/papers/stage.hpp"
#include "engine/stm/papers/ticketed.hpp"

namespace kilokv::engine {

// Rare places, for the simulator (platform/concept.hpp). Their numbers follow those of Prstm, which runs the rest of
// the batch.
enum class LocalProbe : std::uint32_t {
  lane_restarted = static_cast<std::uint32_t>(PrstmProbe::probes),
  warp_serialized,
  block_serialized,
  held_back_by_token,  // another group has the token
  alias_met,           // a conflict about a bit, not about the record
  wrote_alias,         // it wrote a record whose bit was already its own
  restored,            // it had written a record when it met a conflict
  staged_commit,
  behind_stage,  // a transaction ran after the stage was written back
  beside_stage,  // an unstaged transaction ran at the same time as the stage
  probes,
};
static_assert(kProtocolProbes + static_cast<std::uint32_t>(LocalProbe::probes) <= kProbes);

enum class Serialized : std::uint8_t { no, in_group, in_block };

template <Platform P, class Rules>
class Serialization {
 public:
  KILOKV_HOST_DEVICE explicit Serialization(P& platform) : p_(platform) {}

  // Whether this lane must not try its transaction now. Here and below, `stage` is the one that the lanes share.
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

  // is(): how this lane is serialized, if it may try its transaction. holds_back_for(): for which serialization it
  // holds back, if it may not.
  KILOKV_HOST_DEVICE Serialized is() const { return is_alone() ? alone_ : Serialized::no; }
  KILOKV_HOST_DEVICE Serialized holds_back_for() const {
    return alone_ == Serialized::in_group && !is_alone() ? Serialized::in_group : Serialized::in_block;
  }

  // `failed`: this lane's attempt met a conflict. `goes_on`: it met a conflict, or it held back. Returns what this lane
  // has become.
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
  // Of the group, and equal in all its lanes:
  Serialized alone_ = Serialized::no;  // how lane_alone_ is serialized
  std::uint32_t lane_alone_ = 0;
  std::uint32_t mask_ = 0;  // lanes that met a conflict in the last sweep
};

}  // namespace kilokv::engine
