// Decides which records of a batch `local` (stm/papers/local.hpp) puts on its stage, and which transactions run there.
//
// If the stage has room for all records of a batch, all are staged. Otherwise the transactions are taken by heat, the
// hottest first. The heat of a transaction is how often the most wanted of its records is named. Each transaction
// stages all its records, or none if there is no room for all. A transaction whose records are named only once stages
// none. So a record that only one transaction names is staged only together with a wanted one.
//
// Then each precedence class is cut into parts (stm/papers/local_arguments.hpp):
//   hot      transactions all of whose records are staged;
//   beside   transactions none of whose records are staged;
//   behind   all others.
// Hot and beside transactions have no record in common, and run at the same time, in the first half of the class. The
// others run after them, in the second half. A cut changes no guarantee, because any order within a class of a pass is
// allowed.
//
// Not thread-safe. Keeps its capacity, so that the steady state allocates nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/exec/run/executor.hpp"

namespace kilokv::engine {

class StagePlan {
 public:
  // Makes the plan for a stage of `slots` slots. Requires: `records` has numbered the records of the batch.
  void make(const ResolvedBatch& batch, const BatchRecords& records, std::uint32_t slots);

  std::uint32_t staged() const { return staged_; }  // records
  // The largest number of transactions of each part in any half.
  std::uint32_t behind_stage() const { return behind_stage_; }
  std::uint32_t beside_stage() const { return beside_stage_; }
  std::uint32_t hot() const { return hot_; }
  // The columns of LocalArguments, with an entry for each half.
  const std::vector<std::uint32_t>& class_end() const { return class_end_; }
  const std::vector<std::uint32_t>& hot_end() const { return hot_end_; }
  const std::vector<std::uint32_t>& behind() const { return behind_; }
  // Record to slot, slot to record, and the order of positions. Empty if all records are staged.
  const std::vector<std::uint32_t>& slot_of() const { return slot_of_; }
  const std::vector<std::uint32_t>& record_of() const { return record_of_; }
  const std::vector<std::uint32_t>& order() const { return order_; }

  // How many slots the list of undecided transactions needs: for the hot ones, and for all. `threads`: of the run. The
  // first `staging` of them share the stage. `each`: transactions that one thread runs as a group.
  std::uint64_t hot_slots(std::uint32_t staging, std::uint32_t group_width, std::uint32_t each) const;
  std::uint64_t slots(std::uint32_t staging, std::uint32_t threads, std::uint32_t group_width,
                      std::uint32_t each) const;

  std::size_t memory_bytes() const;

 private:
  enum class Part : std::uint8_t { hot, beside, behind };

  template <class F>
  void for_records(const ResolvedBatch& batch, std::uint32_t position, const F& f) const;
  void reserve(const ResolvedBatch& batch);
  void stage_all();
  void choose(const ResolvedBatch& batch, std::uint32_t slots);
  void stage_footprint(const ResolvedBatch& batch, std::uint32_t position, std::uint32_t slots);
  Part part_of(const ResolvedBatch& batch, std::uint32_t position) const;
  void cut(const ResolvedBatch& batch);
  void add_half(std::uint32_t hot_end, std::uint32_t end, bool behind);

  const std::uint32_t* record_of_key_ = nullptr;
  std::uint32_t absent_record_ = 0;
  std::uint32_t staged_ = 0, behind_stage_ = 0, beside_stage_ = 0, hot_ = 0;
  std::vector<std::uint32_t> class_end_, hot_end_, behind_, slot_of_, record_of_, order_;
  std::vector<std::uint32_t> whole_class_end_, mentions_;
  std::vector<std::uint64_t> by_heat_;
  std::vector<std::uint8_t> parts_;  // by position
};

}  // namespace kilokv::engine
