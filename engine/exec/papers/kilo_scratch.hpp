// The memory of `kilo` beside that of all strategies with tickets (exec/papers/ticketed_scratch.hpp), where it is the
// host's own. Not thread-safe. Keeps its capacity: nothing is allocated in the steady state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/stm/papers/ticketed_arguments.hpp"

namespace kilokv::engine {

class KiloScratch {
 public:
  // For a batch of so many transactions, with so many uses of records. The arguments point into this.
  KiloArguments<HostSpace> open(std::size_t transactions, std::size_t uses, const KiloTuning& tuning);

  std::size_t memory_bytes() const;

 private:
  std::vector<std::uint64_t> words_, slots_, table_;
  std::vector<std::uint32_t> hazards_, filter_, accesses_, spill_;
};

}  // namespace kilokv::engine
