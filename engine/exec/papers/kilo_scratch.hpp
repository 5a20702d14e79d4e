// The host memory that only `kilo` needs, if it runs on the host. What all strategies with tickets need is in
// exec/papers/ticketed_scratch.hpp. Not thread-safe. Keeps its capacity, so that the steady state allocates nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/exec/papers/ticketed_scratch.hpp"
#include "engine/stm/papers/kilo_arguments.hpp"

namespace kilokv::engine {

template <>
class OwnScratch<KiloArguments<HostSpace>> {
 public:
  // Fills the part of the arguments that only `kilo` has. It points into this object. Requires: the tuning in the
  // arguments is filled.
  void open(const ResolvedBatch& batch, const BatchRecords& records, std::uint32_t threads, std::uint32_t group_width,
            KiloArguments<HostSpace>* arguments);
  void close(ExecutionReport*) const {}
  std::size_t memory_bytes() const;

 private:
  std::vector<std::uint64_t> words_, slots_, table_;
  std::vector<std::uint32_t> hazards_, filter_, accesses_, spill_;
};

}  // namespace kilokv::engine
