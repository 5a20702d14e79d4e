#include "engine/exec/papers/kilo_scratch.hpp"

#include "engine/base/check.hpp"
#include "engine/exec/run/host_arguments.hpp"

namespace kilokv::engine {

using KiloScratch = OwnScratch<KiloArguments<HostSpace>>;

void KiloScratch::open(const ResolvedBatch& batch, const BatchRecords&, std::uint32_t, std::uint32_t,
                       KiloArguments<HostSpace>* arguments) {
  const KiloTuning& tuning = arguments->kilo_tuning;
  const std::size_t transactions = batch.columns.size();
  const std::size_t uses = 2 * batch.columns.guard_key.size() + batch.columns.op_key.size();
  KILOKV_CHECK(uses <= kKiloUsesMax);
  words_.assign(kilo_words(tuning.units), 0);
  slots_.assign(transactions, 0);
  hazards_.assign(transactions, 0);
  table_.assign(std::size_t{tuning.units} * tuning.history_entries, 0);
  filter_.assign(std::size_t{tuning.units} * tuning.filter_buckets, 0);
  grow(&accesses_, (std::size_t{tuning.buffered} + 1) * transactions);
  grow(&spill_, uses);

  KiloColumns<HostSpace>& a = arguments->kilo;
  a.words = words_.data();
  a.slots = slots_.data();
  a.hazards = hazards_.data();
  a.table = table_.data();
  a.filter = filter_.data();
  a.accesses = accesses_.data();
  a.spill = spill_.data();
}

std::size_t KiloScratch::memory_bytes() const {
  return (words_.capacity() + slots_.capacity() + table_.capacity()) * sizeof(std::uint64_t) +
         (hazards_.capacity() + filter_.capacity() + accesses_.capacity() + spill_.capacity()) * sizeof(std::uint32_t);
}

}  // namespace kilokv::engine
