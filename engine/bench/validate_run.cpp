#include "engine/bench/validate_run.hpp"

#include <algorithm>
#include <chrono>
#include <memory>
#include <numeric>
#include <thread>
#include <utility>

#include "engine/bench/compare_run.hpp"
#include "engine/engine.hpp"
#include "engine/workloads/key_name.hpp"
#include "engine/workloads/random.hpp"

namespace kilokv::engine::bench {

namespace {

constexpr KeyHashSecret kSecret{0x6B696C6F, 0x6B76};
constexpr const char* kByGuard = "by-guard";
constexpr const char* kAlone = "alone";

// One engine that checks read sets in one way.
struct Contender {
  std::string validation;
  std::uint64_t threads = 1;
  std::unique_ptr<Engine> engine;
  BatchHeader header{0, 1763600000000000, 2};
  BatchResults results;
  WriteColumns writes;
  Column<std::uint8_t> expires = Column<std::uint8_t>(1, 0);

  // Returns the seconds that it took; below 0: it failed.
  double execute(const TransactionColumns& columns) {
    ++header.number;
    const auto begin = std::chrono::steady_clock::now();
    const Status status = engine->execute(header, columns, expires, &results, &writes);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    header.first_version = results.next_version;
    engine->release_through(header.number);
    return status.ok() ? seconds.count() : -1;
  }
};

Result<Contender> make_contender(const ValidateOptions& options, const std::string& validation, std::uint64_t threads) {
  Contender contender;
  contender.validation = validation;
  contender.threads = threads;
  EngineOptions engine;
  engine.secret = kSecret;
  engine.strategy = options.device == "cpu" ? "serial" : "ordered";
  engine.device = options.device;
  engine.threads = static_cast<std::uint32_t>(threads);
  engine.validation = validation;
  engine.validation_lanes = options.lanes;
  engine.expected_records = options.records + 1;
  auto created = Engine::create(engine);
  if (!created.ok()) return created.status();
  contender.engine = std::move(*created);
  for (std::uint64_t i = 0; i < options.records; ++i) {
    Status status =
        contender.engine->load(KeyName("acct", i).view(), 1, ValueType::integer, static_cast<std::int64_t>(i), {});
    if (!status.ok()) return status;
  }
  contender.engine->prepare();
  if (const EngineDevice device = contender.engine->device(); !device.reason.empty() && options.device != "auto") {
    return Status(StatusCode::unavailable, ErrorReason::unspecified, device.reason);
  }
  return Result<Contender>(std::move(contender));
}

// Makes a transaction that reads that many records, as they were loaded, and writes another one.
TransactionColumns make_transaction(const ValidateOptions& options, std::uint64_t reads, Random* random) {
  TransactionColumns columns;
  ColumnsBuilder builder(&columns, kSecret);
  std::vector<std::uint32_t> records(options.records);
  std::iota(records.begin(), records.end(), 0u);
  builder.begin();
  for (std::uint64_t i = 0; i < reads; ++i) {
    std::swap(records[i], records[i + random->below(options.records - i)]);
    builder.guard(GuardKind::version_equal, OnFalse::fail, builder.key(KeyName("acct", records[i]).view()), 1);
  }
  builder.op(OpKind::add, builder.key("total"), Operand::integer, 1);
  builder.end();
  return columns;
}

bool is_equal(const Contender& a, const Contender& b) {
  return a.results.outcome == b.results.outcome && a.results.failed_index == b.results.failed_index &&
         a.results.guard_cell == b.results.guard_cell && a.results.rank == b.results.rank &&
         a.writes.key_bytes == b.writes.key_bytes && a.writes.word == b.writes.word &&
         a.engine->state_hash() == b.engine->state_hash();
}

// Measures one size, with or without a conflict.
class Round {
 public:
  Round(const ValidateOptions& options, std::uint64_t reads, bool conflict, std::vector<Contender>* contenders)
      : options_(options),
        reads_(reads),
        conflict_(conflict),
        contenders_(*contenders),
        places_(options.seed + reads),
        columns_(make_transaction(options, reads, &places_)),
        points_(contenders->size()) {}

  Result<std::vector<ValidatePoint>> run() {
    for (int i = 0; i < kVerified; ++i) {
      if (Status status = verify(); !status.ok()) return status;
    }
    for (std::uint64_t repeat = 0; repeat < options_.repeats; ++repeat) {
      for (std::size_t i = 0; i < contenders_.size(); ++i) {
        const std::size_t at = (repeat + i) % contenders_.size();
        places_ = Random(options_.seed + repeat);  // the same for all contenders
        if (Status status = measure(&contenders_[at], &points_[at]); !status.ok()) return status;
      }
    }
    return close();
  }

 private:
  static constexpr int kVerified = 3;

  // Makes the next transaction. Returns how many of its reads count.
  std::uint64_t prepare() {
    if (!conflict_) return reads_;
    columns_.guard_operand[stale_] = 1;
    stale_ = places_.below(reads_);
    columns_.guard_operand[stale_] = 0;
    return stale_ + 1;
  }
  // All contenders have run the same transactions in such rounds, but not equally many. So before they are compared,
  // the record that was written is set to one value.
  Status verify() {
    prepare();
    TransactionColumns level;
    ColumnsBuilder builder(&level, kSecret);
    builder.begin();
    builder.op(OpKind::put, builder.key("total"), Operand::integer, 0);
    builder.end();
    Version first = 0;
    for (const Contender& contender : contenders_) first = std::max(first, contender.header.first_version);
    for (Contender& contender : contenders_) {
      contender.header.first_version = first;
      if (contender.execute(level) < 0 || contender.execute(columns_) < 0) return differs(contender);
      if (!is_equal(contender, contenders_[0])) return differs(contender);
    }
    return {};
  }
  Status measure(Contender* contender, ValidatePoint* point) {
    double seconds = 0, reads = 0, beside = 0;
    std::uint64_t transactions = 0;
    for (; transactions == 0 || seconds < options_.duration_seconds; ++transactions) {
      const std::uint64_t counted = prepare();
      const double took = contender->execute(columns_);
      const Outcome expected = conflict_ ? Outcome::guard_failed : Outcome::committed;
      if (took < 0 || contender->results.outcome[0] != static_cast<std::uint8_t>(expected)) return differs(*contender);
      seconds += took;
      reads += static_cast<double>(counted);
      const ExecutionReport& report = contender->engine->execution();
      if (report.validated > 0) beside += static_cast<double>(report.validated_beside) / static_cast<double>(reads_);
    }
    point->transactions += transactions;
    point->transactions_per_second.push_back(static_cast<double>(transactions) / seconds);
    point->reads_per_second.push_back(reads / seconds);
    point->share_beside = beside / static_cast<double>(transactions);
    return {};
  }
  Result<std::vector<ValidatePoint>> close() {
    const auto alone =
        static_cast<std::size_t>(std::find_if(contenders_.begin(), contenders_.end(),
                                              [](const Contender& c) { return c.validation == kAlone; }) -
                                 contenders_.begin());
    for (std::size_t i = 0; i < contenders_.size(); ++i) {
      const Contender& contender = contenders_[i];
      if (contender.engine->state_hash() != contender.engine->compute_state_hash()) return differs(contender);
      if (contender.engine->execution().devices_lost > 0) {
        return Status(StatusCode::unavailable, ErrorReason::unspecified, contender.engine->device().reason);
      }
      ValidatePoint& point = points_[i];
      point.reads = reads_;
      point.conflict = conflict_;
      point.validation = contender.validation;
      point.threads = contender.threads;
      point.ran_on = contender.engine->device().name;
      point.choice = contender.engine->stats().validator_choice;
      for (std::size_t r = 0; i != alone && r < options_.repeats; ++r) {
        point.ratios.push_back(point.reads_per_second[r] / points_[alone].reads_per_second[r]);
      }
    }
    return points_;
  }
  Status differs(const Contender& contender) const {
    return Status(StatusCode::internal, contender.validation + " on " + std::to_string(contender.threads) +
                                            " threads, " + std::to_string(reads_) +
                                            " reads: the results differ from those of guard by guard");
  }

  const ValidateOptions& options_;
  const std::uint64_t reads_;
  const bool conflict_;
  std::vector<Contender>& contenders_;
  Random places_;
  TransactionColumns columns_;
  std::uint64_t stale_ = 0;
  std::vector<ValidatePoint> points_;
};

}  // namespace

std::vector<Flag> validate_flags(ValidateOptions* options) {
  return {
      number_list_flag("reads", "10, 1000 ... 1000000", "numbers of reads in a read set; each is measured", 1,
                       10'000'000, &options->reads),
      number_flag("records", "records", "records in the table; each read set takes some of them at random", 1,
                  std::uint64_t{1} << 30, &options->records),
      number_list_flag("threads", "one for each core, 2 at least",
                       "threads of both sides together, where both are on the host; each number is measured", 2,
                       EngineOptions::kThreadsMax, &options->threads),
      choice_flag("device", Engine::devices(),
                  "where the second side runs; auto: on a CUDA device if there is one, else on the CPU",
                  &options->device),
      choice_flag(
          "lanes", {"coalesced", "strided"},
          "which reads of a block a thread of the device checks: every n-th (coalesced) or neighbours (strided)",
          &options->lanes),
      number_flag("repeats", "times", "how often each point is measured; the points take turns", 1, 1000,
                  &options->repeats),
      duration_flag("duration", "how long each measurement lasts", &options->duration_seconds),
      number_flag("seed", "", "seed of the random choice of read sets and conflicts", 0, ~0ull, &options->seed),
      text_flag("json", "FILE", "file for the JSON document; -: standard output", &options->json),
      switch_flag("help", "print this and exit", &options->help),
  };
}

Status complete(ValidateOptions* options) {
  const std::uint64_t most = *std::max_element(options->reads.begin(), options->reads.end());
  if (most > options->records) {
    return Status::invalid({"reads", "at most as many as --records, " + std::to_string(options->records),
                            std::to_string(most), "--records"});
  }
  if (options->threads.empty()) options->threads = {std::max(std::thread::hardware_concurrency(), 2u)};
  std::sort(options->reads.begin(), options->reads.end());
  return {};
}

Result<std::vector<ValidatePoint>> measure_validation(const ValidateOptions& options,
                                                      const std::function<void()>& started,
                                                      const std::function<void(const ValidatePoint&)>& progress) {
  std::vector<std::pair<std::string, std::uint64_t>> wanted = {
      {kByGuard, 1}, {kAlone, 1}, {"auto", options.threads.back()}};
  for (const std::uint64_t threads : options.threads) wanted.emplace_back("cooperative", threads);
  std::vector<Contender> contenders;
  for (const auto& [validation, threads] : wanted) {
    auto contender = make_contender(options, validation, threads);
    if (!contender.ok()) return contender.status();
    contenders.push_back(std::move(*contender));
  }
  started();
  std::vector<ValidatePoint> points;
  for (const std::uint64_t reads : options.reads) {
    for (const bool conflict : {false, true}) {
      auto measured = Round(options, reads, conflict, &contenders).run();
      if (!measured.ok()) return measured.status();
      for (ValidatePoint& point : *measured) {
        progress(point);
        points.push_back(std::move(point));
      }
    }
  }
  return Result<std::vector<ValidatePoint>>(std::move(points));
}

}  // namespace kilokv::engine::bench
