// Which records of a batch `local` (stm/papers/local.hpp) puts on its stage, and which transactions run there.
//
// A batch whose records all find room is staged as a whole. Of another one the transactions that name the records that
// are named most often come first: such a transaction stages all its records, while there is room, or none. Records
// that nobody else names are not worth a place but for that. Then each precedence class is cut: those all of whose
// records are staged, and those none of whose are, share nothing and run side by side; the others run behind them
// (stm/papers/local_arguments.hpp). No cut changes what a batch may come to: within a class of a pass any order will
// do.
//
// Not thread-safe. Keeps its capacity: nothing is allocated in the steady state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/exec/run/executor.hpp"

namespace kilokv::engine {

class StagePlan {
 public:
  // Requires: `records` has gathered the batch.
  void make(const ResolvedBatch& batch, const BatchRecords& records, std::uint32_t slots);

  std::uint32_t staged() const { return staged_; }
  std::uint32_t behind_stage() const { return behind_stage_; }                // transactions
  std::uint32_t beside_stage() const { return beside_stage_; }                // of them, at most in one half
  std::uint32_t hot() const { return hot_; }                                  // likewise
  const std::vector<std::uint32_t>& class_end() const { return class_end_; }  // of halves, as LocalArguments has them
  const std::vector<std::uint32_t>& hot_end() const { return hot_end_; }
  const std::vector<std::uint32_t>& behind() const { return behind_; }
  const std::vector<std::uint32_t>& slot_of() const { return slot_of_; }      // empty: staged as a whole
  const std::vector<std::uint32_t>& record_of() const { return record_of_; }  // the same
  const std::vector<std::uint32_t>& order() const { return order_; }          // the same

  // Slots for undecided transactions, as Local deals them: for hot ones, and for all, of so many threads of which the
  // first `staging` share the stage.
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
  std::vector<std::uint8_t> parts_;  // of positions
};

}  // namespace kilokv::engine
