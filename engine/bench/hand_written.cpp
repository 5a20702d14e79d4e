#include "engine/bench/hand_written.hpp"

#include <algorithm>
#include <memory>
#include <string>

#include "engine/base/key_hash.hpp"
#include "engine/base/prefetch.hpp"
#include "engine/bench/runner.hpp"
#include "engine/table/record_table.hpp"

namespace kilokv::engine::bench {

namespace {

// A transfer in the form that the loop needs.
struct KeyedTransfer {
  KeyId source;
  KeyId target;
  std::int64_t amount;
};

class HandWrittenBank {
 public:
  HandWrittenBank(const BenchOptions& options, Workload workload)
      : options_(options), workload_(std::move(workload)), secret_{options.seed, ~options.seed}, table_(options.keys) {
    workload_.for_each_initial([&](const InitialRecord& record) {
      const std::uint32_t slot = table_.insert(hash_key(record.key, secret_), 0);
      table_[slot].cell = {static_cast<std::uint64_t>(record.integer), make_tag(version_++, ValueType::integer)};
    });
  }

  // Runs for one duration. Returns transactions per second of processor time.
  double measure() {
    double seconds = 0;
    std::uint64_t transactions = 0;
    while (seconds < options_.duration_seconds) {
      generate_chunk();
      const Stopwatch watch;
      for (std::size_t begin = 0; begin < chunk_.size(); begin += options_.batch_transactions) {
        run_batch(chunk_.data() + begin, options_.batch_transactions);
      }
      seconds += watch.processor_seconds();
      transactions += chunk_.size();
    }
    return static_cast<double>(transactions) / seconds;
  }

  std::string violation() const {
    InvariantCheck invariant = workload_.invariant();
    for (std::uint32_t slot = 0; slot < table_.end_slot(); ++slot) {
      if (!table_.occupied(slot)) continue;
      invariant.add("an account", ValueType::integer, static_cast<std::int64_t>(table_[slot].cell.word), {});
    }
    return invariant.violation();
  }

 private:
  static constexpr std::size_t kPrefetchDistance = 16;
  static constexpr std::size_t kChunkBatches = 32;

  void generate_chunk() {
    columns_.clear();
    ColumnsBuilder builder(&columns_, secret_);
    workload_.generate(&builder, kChunkBatches * options_.batch_transactions);
    chunk_.resize(columns_.size());
    for (std::size_t t = 0; t < chunk_.size(); ++t) {
      const std::uint32_t withdrawal = columns_.then_begin(t), deposit = withdrawal + 1;
      chunk_[t] = {columns_.key_id[columns_.op_key[withdrawal]], columns_.key_id[columns_.op_key[deposit]],
                   columns_.op_value[deposit]};
    }
  }

  // Prefetches one cache line for each account. The engine may prefetch more. To prefetch the next line too costs this
  // loop a third of its throughput at 10M accounts.
  static void prefetch(const TableRef& table, const KeyedTransfer& transfer) {
    prefetch_for_write(table.slots + table.home(transfer.source.high));
    prefetch_for_write(table.slots + table.home(transfer.target.high));
  }

  void run_batch(const KeyedTransfer* transfers, std::size_t count) {
    const TableRef table = table_.ref();
    for (std::size_t t = 0; t < std::min(count, kPrefetchDistance); ++t) prefetch(table, transfers[t]);
    for (std::size_t t = 0; t < count; ++t, ++version_) {
      if (t + kPrefetchDistance < count) prefetch(table, transfers[t + kPrefetchDistance]);
      const KeyedTransfer& transfer = transfers[t];
      Cell& source = table.slots[table.find(transfer.source)].cell;
      if (static_cast<std::int64_t>(source.word) < transfer.amount) continue;
      Cell& target = table.slots[table.find(transfer.target)].cell;
      source = {source.word - static_cast<std::uint64_t>(transfer.amount), make_tag(version_, ValueType::integer)};
      target = {target.word + static_cast<std::uint64_t>(transfer.amount), make_tag(version_, ValueType::integer)};
    }
  }

  const BenchOptions options_;
  Workload workload_;
  const KeyHashSecret secret_;
  RecordTable table_;
  Version version_ = 1;
  TransactionColumns columns_;
  std::vector<KeyedTransfer> chunk_;
};

double median_of(std::vector<double> numbers) {
  std::sort(numbers.begin(), numbers.end());
  const std::size_t middle = numbers.size() / 2;
  return numbers.size() % 2 == 1 ? numbers[middle] : (numbers[middle - 1] + numbers[middle]) / 2;
}

template <class F>
double median_of(const std::vector<BaselinePair>& pairs, const F& figure) {
  std::vector<double> numbers;
  numbers.reserve(pairs.size());
  for (const BaselinePair& pair : pairs) numbers.push_back(figure(pair));
  return median_of(numbers);
}

}  // namespace

BaselinePair BaselineReport::median() const {
  return {median_of(pairs, [](const BaselinePair& pair) { return pair.strategy_per_second; }),
          median_of(pairs, [](const BaselinePair& pair) { return pair.hand_written_per_second; })};
}

double BaselineReport::median_ratio() const {
  return median_of(pairs, [](const BaselinePair& pair) { return pair.ratio(); });
}

Result<BaselineReport> measure_baseline(const BenchOptions& options) {
  const WorkloadOptions workload_options = selected_workloads(options).front();
  auto workload = Workload::create(workload_options);
  if (!workload.ok()) return workload.status();
  auto strategy = WorkloadRun::create(options, workload_options);
  if (!strategy.ok()) return strategy.status();
  HandWrittenBank hand_written(options, std::move(*workload));

  BaselineReport report;
  while (report.pairs.size() < options.pairs) {
    const std::uint64_t transactions_before = (*strategy)->report().counts.transactions;
    const double seconds_before = (*strategy)->report().processor_seconds;
    if (Status status = (*strategy)->run(); !status.ok()) return status;
    const auto transactions = static_cast<double>((*strategy)->report().counts.transactions - transactions_before);
    const double strategy_per_second = transactions / ((*strategy)->report().processor_seconds - seconds_before);
    report.pairs.push_back({strategy_per_second, hand_written.measure()});
  }
  if (Status status = (*strategy)->check_invariant(); !status.ok()) return status;
  if (const std::string violation = hand_written.violation(); !violation.empty()) {
    return Status(StatusCode::internal, "invariant of the hand-written loop: " + violation);
  }
  return report;
}

}  // namespace kilokv::engine::bench
