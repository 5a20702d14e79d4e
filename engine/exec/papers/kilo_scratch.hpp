// The memory of `kilo` beside that of all strategies with tickets (exec/papers/ticketed_scratch.hpp), where it is the
// host's own. Not thread-safe. Keeps its capacity: nothing is allocated in the steady state.
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
  // Fills what of the arguments, whose tuning is there, is kilo's. They point into this.
  void open(const ResolvedBatch& batch, const BatchRecords& records, std::uint32_t threads, std::uint32_t group_width,
            KiloArguments<HostSpace>* arguments);
  void close(ExecutionReport*) const {}
  std::size_t memory_bytes() const;

 private:
  std::vector<std::uint64_t> words_, slots_, table_;
  std::vector<std::uint32_t> hazards_, filter_, accesses_, spill_;
};

}  // namespace kilokv::engine
