#include "engine/exec/run/ordered_scratch.hpp"

#include "engine/exec/run/host_arguments.hpp"

namespace kilokv::engine {
OrderedArguments<HostSpace> OrderedScratch::open(const ResolvedBatch& batch, OrderedTuning tuning,
                                                 std::uint32_t threads, std::uint32_t group_width,
                                                 BatchRecords* records, BatchResults* results) {
  const auto n = static_cast<std::uint32_t>(batch.columns.size());
  const std::size_t operations = batch.columns.op_kind.size();
  if (epochs_.must_restart(n)) reservations_.assign(reservations_.size(), ~std::uint64_t{0});
  const std::size_t records_max = records->record_of_key().size();
  grow(&reservations_, kReservationWords * records_max, ~std::uint64_t{0});
  grow(&undo_, 2 * operations);
  grow(&op_adds_, operations);
  grow(&pass_of_, n);
  grow(&chain_of_, n);
  grow(&undecided_, position_room(n, threads, group_width));
  delta_sums_.reserve(records_max);
  delta_sums_.assign(records->size(), 0);
  words_.assign(kOrderedWords, 0);
  counts_.resize(threads);

  OrderedArguments<HostSpace> a;
  set_batch_arguments(batch, records, results, &a);
  a.reservations = reservations_.data();
  a.delta_sums = delta_sums_.data();
  a.op_adds = op_adds_.data();
  a.undo = undo_.data();
  a.pass_of = pass_of_.data();
  a.chain_of = chain_of_.data();
  a.undecided = undecided_.data();
  a.words = words_.data();
  a.counts = counts_.data();
  a.first_epoch = epochs_.last();
  a.delta_max = ordered_delta_max(operations);
  a.tuning = tuning;
  return a;
}

Status OrderedScratch::close(const ResolvedBatch& batch, BatchResults* results, ExecutionReport* report) {
  epochs_.use(ordered_epochs_used(words_[kWordRounds]));
  report_ordered(batch.header, words_, counts_, results, report);
  if (results->passes > 0) return {};
  return Status(StatusCode::internal, "ordered gave up a batch: no transaction made progress");
}

std::size_t OrderedScratch::memory_bytes() const {
  return (reservations_.capacity() + delta_sums_.capacity() + undo_.capacity()) * sizeof(std::uint64_t) +
         op_adds_.capacity() +
         (pass_of_.capacity() + chain_of_.capacity() + undecided_.capacity()) * sizeof(std::uint32_t);
}

}  // namespace kilokv::engine
