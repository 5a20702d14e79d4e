#include "engine/exec/papers/ticketed_scratch.hpp"

#include <iterator>

#include "engine/base/check.hpp"
#include "engine/exec/run/host_arguments.hpp"

namespace kilokv::engine {
namespace {

struct NamedCount {
  const char* name;
  std::uint64_t TicketedCounts::*count;
};
constexpr NamedCount kNamedCounts[] = {
    {"attempts", &TicketedCounts::attempts},
    {"conflicts", &TicketedCounts::conflicts},
    {"under_locks", &TicketedCounts::under_locks},
    {"steals", &TicketedCounts::steals},
    {"stolen", &TicketedCounts::stolen},
    {"retried", &TicketedCounts::retried},
    {"wasted_tickets", &TicketedCounts::wasted},
    {"hazards", &TicketedCounts::hazards},
    {"limit_changes", &TicketedCounts::limits},
    {"staged", &TicketedCounts::staged},
    {"lane_restarts", &TicketedCounts::restarts},
    {"signature_aliases", &TicketedCounts::aliases},
    {"warp_serialized", &TicketedCounts::warp_serialized},
    {"block_serialized", &TicketedCounts::block_serialized},
};
static_assert(std::size(kNamedCounts) + 2 == ticketed_counts(), "all but decided and postponed, which others report");

}  // namespace

std::vector<const char*> ticketed_counters() {
  std::vector<const char*> names;
  for (const NamedCount& count : kNamedCounts) names.push_back(count.name);
  return names;
}

void find_class_ends(const ResolvedBatch& batch, std::vector<std::uint32_t>* ends) {
  const auto n = static_cast<std::uint32_t>(batch.columns.size());
  const auto precedence = [&](std::uint32_t position) {
    return batch.columns.precedence[batch.order.empty() ? position : batch.order[position]];
  };
  ends->clear();
  for (std::uint32_t position = 1; position < n; ++position) {
    if (precedence(position) != precedence(position - 1)) ends->push_back(position);
  }
  if (n > 0) ends->push_back(n);
}

void report_ticketed(const char* strategy, const BatchHeader& header, std::span<const std::uint64_t> words,
                     std::span<const TicketedCounts> counts, BatchResults* results, ExecutionReport* report) {
  results->passes = static_cast<std::uint32_t>(words[kTicketedPasses]);
  results->next_version = header.first_version + words[kTicketedPasses] * results->outcome.size();
  report->begin(strategy);
  report->any_order = true;
  TicketedCounts all;
  for (const TicketedCounts& of_group : counts) {
    all.add(of_group);
    report->decided_by.push_back(of_group.decided);
  }
  report->postponed = all.postponed;
  for (const NamedCount& count : kNamedCounts) report->counters.add(count.name, all.*count.count);
}

void TicketedScratch::open(const ResolvedBatch& batch, std::uint32_t threads, std::uint32_t group_width,
                           BatchRecords* records, BatchResults* results, TicketedArguments<HostSpace>* arguments) {
  TicketedArguments<HostSpace>& a = *arguments;
  const TicketedTuning& tuning = a.tuning;
  const auto n = static_cast<std::uint32_t>(batch.columns.size());
  KILOKV_CHECK(n <= kTicketedTransactionsMax);
  const std::size_t uses = 2 * batch.columns.guard_key.size() + batch.columns.op_key.size();
  const std::size_t records_max = records->record_of_key().size();
  grow(&locks_, lock_words_of(records_max, tuning.records_per_lock));
  grow(&clock_, 1);
  grow(&use_entry_, uses);
  grow(&entry_record_, uses);
  grow(&entry_head_, uses);
  grow(&entry_cell_, 2 * uses);
  grow(&entry_version_, uses);
  grow(&entry_tag_, uses);
  grow(&entry_flags_, uses);
  grow(&entry_count_, n);
  grow(&tries_, n);
  grow(&pass_of_, n);
  grow(&undecided_, position_room(n, threads, group_width, tuning.transactions_per_thread));
  find_class_ends(batch, &class_end_);
  words_.assign(kTicketedWords, 0);
  counts_.resize(threads);

  set_batch_arguments(batch, records, results, &a);
  a.class_end = class_end_.data();
  a.locks = locks_.data();
  a.clock = clock_.data();
  a.use_entry = use_entry_.data();
  a.entry_record = entry_record_.data();
  a.entry_head = entry_head_.data();
  a.entry_count = entry_count_.data();
  a.entry_cell = entry_cell_.data();
  a.entry_version = entry_version_.data();
  a.entry_tag = entry_tag_.data();
  a.entry_flags = entry_flags_.data();
  a.tries = tries_.data();
  a.pass_of = pass_of_.data();
  a.undecided = undecided_.data();
  a.words = words_.data();
  a.counts = counts_.data();
  a.classes = static_cast<std::uint32_t>(class_end_.size());
  a.threads = threads;
}

void TicketedScratch::close(const char* strategy, const ResolvedBatch& batch, BatchResults* results,
                            ExecutionReport* report) {
  report_ticketed(strategy, batch.header, words_, counts_, results, report);
}

std::size_t TicketedScratch::memory_bytes() const {
  return (locks_.capacity() + entry_cell_.capacity() + entry_version_.capacity() + entry_tag_.capacity()) *
             sizeof(std::uint64_t) +
         (use_entry_.capacity() + entry_record_.capacity() + entry_head_.capacity() + entry_count_.capacity() +
          pass_of_.capacity() + undecided_.capacity()) *
             sizeof(std::uint32_t) +
         entry_flags_.capacity() + tries_.capacity();
}

}  // namespace kilokv::engine
