#include "engine/exec/papers/kilo_scratch.hpp"

#include "engine/base/check.hpp"
#include "engine/exec/run/host_arguments.hpp"

namespace kilokv::engine {

KiloArguments<HostSpace> KiloScratch::open(std::size_t transactions, std::size_t uses, const KiloTuning& tuning) {
  KILOKV_CHECK(uses <= kKiloUsesMax);
  words_.assign(kilo_words(tuning.units), 0);
  slots_.assign(transactions, 0);
  hazards_.assign(transactions, 0);
  table_.assign(std::size_t{tuning.units} * tuning.history_entries, 0);
  filter_.assign(std::size_t{tuning.units} * tuning.filter_buckets, 0);
  grow(&accesses_, (std::size_t{tuning.buffered} + 1) * transactions);
  grow(&spill_, uses);

  KiloArguments<HostSpace> a;
  a.words = words_.data();
  a.slots = slots_.data();
  a.hazards = hazards_.data();
  a.table = table_.data();
  a.filter = filter_.data();
  a.accesses = accesses_.data();
  a.spill = spill_.data();
  return a;
}

std::size_t KiloScratch::memory_bytes() const {
  return (words_.capacity() + slots_.capacity() + table_.capacity()) * sizeof(std::uint64_t) +
         (hazards_.capacity() + filter_.capacity() + accesses_.capacity() + spill_.capacity()) * sizeof(std::uint32_t);
}

}  // namespace kilokv::engine
