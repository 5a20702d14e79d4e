// Checks whether a large read set is still what was read. Either the caller's thread does it alone, or it shares the
// work with a second side (stm/validator.hpp). If batches run on a device, the second side is the device
// (exec/validate/device_validator.hpp). Otherwise it is other threads of the host (exec/validate/host_validator.hpp).
//
// From which size on two sides are faster is measured, not guessed. The measurement comes with the first large read
// set. It uses the records of the table as read sets, and takes turns between one side and two. It is made again when
// the table has become much larger, when the second side is another one, and after many further reads. Below the
// measured size, the caller's thread works alone. If the second side fails, the caller's thread does all the work, so
// that a failure costs only time.
//
// A read that the second side calls stale is looked at again. Reads that it calls valid are not, because that would
// cost as much as the second side saves. So a device whose table is wrong can make a transaction commit on stale reads.
// For batches, the digest of the cells finds such a device (exec/device/device_executor.cpp).
//
// Not thread-safe. Keeps its memory and its threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "engine/exec/run/executor.hpp"
#include "engine/exec/validate/host_validator.hpp"
#include "engine/exec/validate/read_set.hpp"
#include "engine/table/record_store.hpp"

namespace kilokv::engine {

enum class Validation : std::uint8_t {
  automatic,    // one side or two, depending on the size, as measured
  alone,        // one side, the caller's thread
  cooperative,  // two sides, for every size
  by_guard,     // not checked here: the transaction evaluates its guards one by one
};

class CooperativeValidator {
 public:
  static constexpr std::uint32_t kReadsMin = 1024;  // a read set with fewer is not large

  // `threads`: threads of the host, including the caller's. `measure_share`: validated reads until the next
  // measurement, as a multiple of the reads of one measurement.
  CooperativeValidator(Validation kind, std::uint32_t threads, ValidatorLanes lanes, std::uint64_t measure_share = 64)
      : kind_(kind), threads_wanted_(threads), lanes_(lanes), measure_share_(measure_share) {}

  bool is_wanted(std::uint32_t reads) const { return kind_ != Validation::by_guard && reads >= kReadsMin; }

  struct Answer {
    std::uint32_t first_stale = kAllValid;
    std::uint32_t beside = 0;  // reads that the caller did not check: the other side did, or no side had to
    Status device;             // an error of the device, as Executor::run() has it; first_stale is right nevertheless
  };
  // `executor`: the one that runs batches. Null: there is none.
  Answer validate(const RecordStore& store, const ReadSet& set, Executor* executor);

  std::string choice() const;  // what checked the last read set, and why; empty: there was none
  std::uint32_t measurements() const { return measurements_; }
  std::size_t memory_bytes() const { return host_ != nullptr ? host_->memory_bytes() : 0; }

 private:
  static constexpr std::uint32_t kNever = 0xFFFFFFFFu;

  Answer validate_together(const RecordStore& store, const ReadSet& set, Executor* executor);
  bool find_other_side(const Executor* executor);
  std::string reason() const;  // why the last read set was checked so; empty: because it was asked for
  bool is_due(std::size_t records) const;
  Status measure(const RecordStore& store, Executor* executor);

  Validation kind_;
  std::uint32_t threads_wanted_;
  ValidatorLanes lanes_;
  std::uint64_t measure_share_;
  std::uint32_t measurements_ = 0;
  std::unique_ptr<HostValidator> host_;  // made when it is first needed
  bool on_device_ = false;               // whether the other side was a device in the last measurement
  std::size_t measured_records_ = 0;     // records of the table in the last measurement; 0: there was none
  std::uint64_t unmeasured_reads_ = 0;   // reads that were validated since then
  std::uint32_t threshold_ = kNever;     // two sides check a read set with at least this many reads
  double gain_ = 0;                      // alone / together in time, at the largest size; 0: the other side failed
  std::uint32_t last_reads_ = 0;
  bool has_other_side_ = false, last_together_ = false;
  std::string with_;  // the other side, in words
};

}  // namespace kilokv::engine
