#include "engine/exec/run/partitioned_host.hpp"

#include <algorithm>
#include <bit>
#include <span>
#include <type_traits>
#include <utility>

#include "engine/stm/ordered_arguments.hpp"
#include "engine/stm/serial.hpp"
#include "engine/txn/view.hpp"

namespace kilokv::engine {
namespace {

constexpr const char* kRounds = "rounds";

struct NamedCount {
  const char* name;
  std::uint64_t PartitionedThread::*count;
};
constexpr NamedCount kNamedCounts[] = {
    {"reservations", &PartitionedThread::listed_count},
    {"chained_adds", &PartitionedThread::chained_adds},
    {"overtaken_adds", &PartitionedThread::overtaken},
    {"tail", &PartitionedThread::alone},
};

// Bytes of a column. What a batch needs beyond it is given back before the next batch.
constexpr std::size_t kKeptMax = std::size_t{32} << 20;
constexpr std::size_t kUsesMin = 128;  // for which each partition has room

template <class T>
std::size_t bytes_of(const std::vector<T>& column) {
  return column.capacity() * sizeof(T);
}

}  // namespace

const PartitionedBatch& PartitionedMemory::open(const BatchHeader& header, const TransactionColumns& columns,
                                                Version tombstone_floor, const std::vector<std::uint32_t>& order,
                                                const PartitionedRecords& records, const PartitionedTuning& tuning,
                                                std::uint32_t threads, BatchResults* results, Cell* before) {
  const std::size_t operations = columns.op_kind.size();
  if (threads_.size() < threads) threads_.resize(threads);
  if (bytes_of(blocked_) > kKeptMax) blocked_ = std::vector<std::uint8_t>();
  if (bytes_of(defers_) > kKeptMax) defers_ = std::vector<std::uint8_t>();
  if (blocked_.size() < 2 * columns.size()) blocked_.resize(2 * columns.size());
  if (defers_.size() < operations) defers_.resize(operations);
  batch_ = {.batch = view_of(header, columns, tombstone_floor),
            .results = view_of(results),
            .order = order.empty() ? nullptr : order.data(),
            .slot_of_key = records.slot_of_key,
            .absent_slot = records.absent_slot,
            .blocked = blocked_.data(),
            .defers = defers_.data(),
            .before = before,
            .threads = threads_.data(),
            .thread_count = threads,
            .tuning = tuning,
            .delta_max = ordered_delta_max(operations)};
  for (PartitionedThread& thread : threads_) {
    for (const std::uint32_t i : {0, 1}) thread.next_tile[i] = thread.next_to_run[i] = 0;
  }
  make_room(columns);
  return batch_;
}

// What a thread needs depends on the batch, and is mostly about its fair share of a window. Twice as much is made
// ready, so that memory rarely grows while a batch runs.
void PartitionedMemory::make_room(const TransactionColumns& columns) {
  const std::size_t n = columns.size(), window = std::min<std::size_t>(n, batch_.tuning.window);
  const std::size_t uses = 2 * columns.guard_kind.size() + columns.op_kind.size();
  const std::size_t uses_of_window = n == 0 ? 0 : uses / n * window + uses % n;
  const std::size_t share = 2 * window / batch_.thread_count + 1;
  const std::size_t uses_of_share = 2 * uses_of_window / batch_.thread_count;
  const std::size_t uses_of_partition = (2 * uses_of_window >> batch_.tuning.partition_bits) + kUsesMin;
  for (PartitionedThread& thread : std::span(threads_.data(), batch_.thread_count)) {
    give_back(&thread);
    thread.listed.reserve(uses_of_share);
    for (auto& tiles : thread.tiles) tiles.reserve(window / batch_.tuning.tile + batch_.thread_count);
    if (thread.uses.size() < uses_of_share) thread.uses.resize(uses_of_share);
    for (auto* const positions : {&thread.left, &thread.postponed, &thread.inverted}) positions->reserve(share);
    thread.deferred.reserve(share);
    thread.settled.reserve(share);
    if (thread.contended.size() < uses_of_partition) thread.contended.resize(uses_of_partition);
    const std::size_t entries = std::bit_ceil(2 * uses_of_partition);
    if (thread.table.size() < entries) thread.table.resize(entries);
  }
}

// What only a very large batch has needed. An assignment of {} would keep the memory.
void PartitionedMemory::give_back(PartitionedThread* thread) {
  const auto drop = [](auto* column) {
    using Column = std::remove_pointer_t<decltype(column)>;
    if (bytes_of(*column) > kKeptMax) *column = Column();
  };
  drop(&thread->listed);
  drop(&thread->uses);
  drop(&thread->left);
  drop(&thread->postponed);
  drop(&thread->deferred);
  drop(&thread->inverted);
  drop(&thread->settled);
  drop(&thread->contended);
  drop(&thread->table);
}

void PartitionedMemory::stand_still(std::size_t uses) {
  for (PartitionedThread& thread : threads_) {
    thread.uses.resize(std::max(thread.uses.size(), uses));
    thread.partition_end.resize(std::size_t{1} << batch_.tuning.partition_bits);
  }
}

std::uint32_t PartitionedMemory::close(std::uint32_t* waiting, ExecutionReport* report) const {
  std::uint32_t count = 0;
  report->begin("partitioned");
  report->on_device = false;
  const std::span threads(threads_.data(), batch_.thread_count);
  for (const PartitionedThread& thread : threads) {
    std::copy(thread.postponed.begin(), thread.postponed.end(), waiting + count);
    count += static_cast<std::uint32_t>(thread.postponed.size());
    report->decided_by.push_back(thread.decided);
    for (const NamedCount& named : kNamedCounts) report->counters.add(named.name, thread.*named.count);
  }
  std::sort(waiting, waiting + count);
  report->postponed = count;
  report->counters.add(kRounds, threads_.front().rounds);
  return count;
}

std::size_t PartitionedMemory::memory_bytes() const {
  std::size_t bytes = bytes_of(threads_) + bytes_of(blocked_) + bytes_of(defers_);
  for (const PartitionedThread& t : threads_) {
    bytes += bytes_of(t.listed) + bytes_of(t.uses) + bytes_of(t.place_of_partition) + bytes_of(t.partition_end) +
             bytes_of(t.tiles[0]) + bytes_of(t.tiles[1]) + bytes_of(t.left) + bytes_of(t.postponed) +
             bytes_of(t.table) + bytes_of(t.contended) + bytes_of(t.deferred) + bytes_of(t.inverted) +
             bytes_of(t.settled);
  }
  return bytes;
}

std::vector<const char*> partitioned_counters() {
  std::vector<const char*> names = {kRounds};
  for (const NamedCount& count : kNamedCounts) names.push_back(count.name);
  return names;
}

Status PartitionedHost::run(const Batch& batch, ThreadTeam* team) {
  batch_ = &batch;
  team_ = team;
  status_ = {};
  if (batch.clock->measures()) {
    do_apart();
  } else {
    const auto body = [this](std::uint32_t thread) { do_all(thread); };
    team->run(body);
    batch.clock->add_helpers(team->helper_time());
  }
  if (status_.ok()) batch.books->end_shares(batch.store);
  return std::move(status_);
}

// One launch of the threads, with a barrier after each step.
void PartitionedHost::do_all(std::uint32_t thread) {
  for (auto step = Step::find;; step = after(step)) {
    if (thread == 0 || !is_alone(step)) do_step(step, thread);
    if (step == Step::fill) return;
    team_->barrier();
    if (step == Step::complete && !status_.ok()) return;
  }
}
// A launch for each step, so that the time of each is known.
void PartitionedHost::do_apart() {
  constexpr BatchStage kStageOf[] = {BatchStage::resolve, BatchStage::resolve, BatchStage::run,    BatchStage::run,
                                     BatchStage::collect, BatchStage::collect, BatchStage::collect};
  for (auto step = Step::find;; step = after(step)) {
    batch_->clock->enter(kStageOf[static_cast<std::uint8_t>(step)]);
    if (is_alone(step)) {
      do_step(step, 0);
    } else {
      const auto body = [this, step](std::uint32_t thread) { do_step(step, thread); };
      team_->run(body);
      batch_->clock->add_helpers(team_->helper_time());
    }
    if (step == Step::fill || !status_.ok()) return;
  }
}

void PartitionedHost::do_step(Step step, std::uint32_t thread) {
  const std::uint32_t threads = team_->size();
  switch (step) {
    case Step::find: return batch_->resolver->find_share(batch_->columns, *batch_->store, thread, threads);
    case Step::complete: return complete();
    case Step::run: {
      HostPlatform platform(team_, thread, nullptr);  // null: no memory is shared within a block
      return PartitionedRun<HostPlatform, SlotAccess<HostPlatform>>(platform, *shared_, {platform, columns_}).run();
    }
    case Step::finish: return finish();
    case Step::count: return batch_->books->count_share(thread, threads);
    case Step::place: return batch_->books->place_shares(threads);
    case Step::fill: return batch_->books->fill_share(thread, threads);
  }
}

// Creates the records of new keys.
void PartitionedHost::complete() {
  const Batch& b = *batch_;
  status_ = b.resolver->finish_shares(b.columns, b.header.number, b.store);
  if (!status_.ok()) return;
  shared_ = &memory_.open(b.header, b.columns, b.tombstone_floor, b.order,
                          {b.resolver->slot_of_key(), RecordTable::absent_slot()}, tuning_, team_->size(), b.results,
                          b.before);
  columns_ = {.slots = b.store->table().ref().slots,
              .columns = &b.columns,
              .results = b.results,
              .slot_of_key = b.resolver->slot_of_key(),
              .value_word = b.resolver->value_word(),
              .defers = shared_->defers,
              .before = b.before};
}

// Runs the other passes.
void PartitionedHost::finish() {
  const Batch& b = *batch_;
  SerialRun run(shared_->batch, shared_->results, shared_->order, b.waiting);
  run.skip_first(memory_.close(b.waiting, b.report));
  b.access->open(b.columns, *b.resolver, b.store, b.results, b.before);
  b.results->passes = run.finish(b.expires.data(), b.columns.expire_runs_else.data(), b.access->run());
  b.results->next_version = b.header.first_version + std::uint64_t{b.results->passes} * b.columns.size();
  b.rank_order->sort(*b.results, b.results->passes <= 1 && b.order.empty());
  b.books->begin_shares(b.writes, *b.store, team_->size(), b.collected);
}

}  // namespace kilokv::engine
