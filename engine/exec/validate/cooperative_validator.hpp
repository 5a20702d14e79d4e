// Whether a large read set is still what was read: by the caller's thread alone, or together with the other side of
// stm/validator.hpp, which is the device where batches run on one (exec/validate/device_validator.hpp), else other
// threads of the host (exec/validate/host_validator.hpp).
//
// From which size on two sides are faster is measured, not guessed: at the first large read set, on the records that
// are there, alone against together, by turns; and anew when the table has become much larger. Until then, and below
// that size, the caller does it alone. A side that fails costs nothing but time: the caller does it alone.
//
// Not thread-safe. Memory and threads are those of the largest read set so far, and kept.
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
  automatic,    // by size, as measured
  alone,        // the caller's thread
  cooperative,  // together, whatever the size
  by_guard,     // not at all here: the transaction evaluates its guards one by one
};

class CooperativeValidator {
 public:
  static constexpr std::uint32_t kReadsMin = 1024;  // of a large read set

  // `threads`: of the host, the caller's among them. `measure_share`: it is measured again when so many times the reads
  // of a measurement were validated.
  CooperativeValidator(Validation kind, std::uint32_t threads, ValidatorLanes lanes, std::uint64_t measure_share = 64)
      : kind_(kind), threads_wanted_(threads), lanes_(lanes), measure_share_(measure_share) {}

  bool is_wanted(std::uint32_t reads) const { return kind_ != Validation::by_guard && reads >= kReadsMin; }

  struct Answer {
    std::uint32_t first_stale = kAllValid;
    std::uint32_t beside = 0;  // reads that the caller did not look at; the other side has, or nobody had to
    Status device;             // an error, as of Executor::run(); the answer stands
  };
  // `executor`: of batches; null: there is none.
  Answer validate(const RecordStore& store, const ReadSet& set, Executor* executor);

  std::string choice() const;  // what the last one was checked by, and why; empty: there was none
  std::uint32_t measurements() const { return measurements_; }
  std::size_t memory_bytes() const { return host_ != nullptr ? host_->memory_bytes() : 0; }

 private:
  static constexpr std::uint32_t kNever = 0xFFFFFFFFu;

  Answer validate_together(const RecordStore& store, const ReadSet& set, Executor* executor);
  bool find_other_side(const Executor* executor);
  std::string reason() const;  // empty: as it was asked for
  bool is_due(std::size_t records) const;
  Status measure(const RecordStore& store, Executor* executor);

  Validation kind_;
  std::uint32_t threads_wanted_;
  ValidatorLanes lanes_;
  std::uint64_t measure_share_;
  std::uint32_t measurements_ = 0;
  std::unique_ptr<HostValidator> host_;  // made when it is first needed
  bool on_device_ = false;               // the other side, as it was measured
  std::size_t measured_records_ = 0;     // of the table then; 0: not measured
  std::uint64_t unmeasured_reads_ = 0;   // validated since
  std::uint32_t threshold_ = kNever;     // reads
  double gain_ = 0;                      // at the largest size measured; 0: the other side failed
  std::uint32_t last_reads_ = 0;
  bool has_other_side_ = false, last_together_ = false;
  std::string with_;  // the other side
};

}  // namespace kilokv::engine
