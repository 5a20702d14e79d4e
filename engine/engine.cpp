// The engine: records in host memory, and batches that run on one thread, on several threads, or on a device.

#include "engine/engine.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <span>
#include <thread>
#include <utility>

#include "engine/base/check.hpp"
#include "engine/engine_for_tests.hpp"
#include "engine/engine_on_device.hpp"
#include "engine/exec/collect/batch_writes.hpp"
#include "engine/exec/collect/bookkeeping.hpp"
#include "engine/exec/collect/expiries.hpp"
#include "engine/exec/collect/rank_order.hpp"
#include "engine/exec/device/cuda_kernels.hpp"
#include "engine/exec/device/device_executor.hpp"
#include "engine/exec/device/emulated_kernels.hpp"
#include "engine/exec/resolve/resolver.hpp"
#include "engine/exec/run/chooser.hpp"
#include "engine/exec/run/executor_run.hpp"
#include "engine/exec/run/follower.hpp"
#include "engine/exec/run/host_access.hpp"
#include "engine/exec/run/host_strategies.hpp"
#include "engine/exec/run/partitioned_host.hpp"
#include "engine/exec/strategy.hpp"
#include "engine/exec/validate/cooperative_validator.hpp"
#include "engine/exec/validate/read_set.hpp"
#include "engine/stm/order.hpp"
#include "engine/stm/serial.hpp"
#include "engine/table/record_store.hpp"
#include "engine/txn/view.hpp"

namespace kilokv::engine {
namespace {

std::uint32_t threads_of(const EngineOptions& options) {
  return options.threads != 0 ? options.threads : std::max(std::thread::hardware_concurrency(), 1u);
}

Validation validation_of(const EngineOptions& options) {
  if (options.validation == "alone") return Validation::alone;
  if (options.validation == "cooperative") return Validation::cooperative;
  return options.validation == "by-guard" ? Validation::by_guard : Validation::automatic;
}
ValidatorLanes lanes_of(const EngineOptions& options) {
  return options.validation_lanes == "strided" ? ValidatorLanes::strided : ValidatorLanes::coalesced;
}

// Whether the engine itself runs every batch, because nothing else runs this strategy (such as `serial`).
bool runs_in_place(const EngineOptions& options) {
  const Strategy* const strategy = find_strategy(options.strategy);
  return strategy != nullptr && strategy->make_host == nullptr;
}

// The strategies that may run a batch, without those that the engine runs itself.
std::vector<std::string> parallel_strategies(const EngineOptions& options, bool on_device) {
  if (options.strategy != "auto") return {options.strategy};
  return strategies_of_auto(options.order, on_device);
}

// What runs batches on the CPU that the engine does not run itself. Null: nothing does. With one thread `auto` has
// nothing, because a parallel strategy gains nothing there.
std::unique_ptr<Executor> host_executor(const EngineOptions& options) {
  const std::uint32_t threads = threads_of(options);
  if (runs_in_place(options) || (options.strategy == "auto" && threads == 1)) return nullptr;
  std::vector<std::string> strategies = parallel_strategies(options, false);
  if (strategies.empty()) return nullptr;
  return std::make_unique<HostStrategies>(std::move(strategies), threads, options.settings);
}

// The threads of `pipelined` and `partitioned`. Null: nothing uses them, or the system gives no second thread.
std::unique_ptr<ThreadTeam> team_of(const EngineOptions& options) {
  const std::uint32_t threads = threads_of(options);
  const bool uses_team =
      options.strategy == "pipelined" || options.strategy == "partitioned" || options.strategy == "auto";
  if (threads == 1 || !uses_team) return nullptr;
  auto team = std::make_unique<ThreadTeam>(threads);
  return team->size() > 1 ? std::move(team) : nullptr;
}

class HostEngine final : public Engine {
 public:
  HostEngine(const EngineOptions& options, std::unique_ptr<Executor> parallel, std::string reason,
             const PartitionedTuning& tuning)
      : store_(options.secret, options.expected_records, options.table_records_max),
        options_(options),
        parallel_(std::move(parallel)),
        chooses_(options.strategy == "auto"),
        reason_(std::move(reason)),
        chooser_(threads_of(options)),
        team_(team_of(options)),
        validator_(validation_of(options), threads_of(options), lanes_of(options)),
        partitioned_(tuning) {
    begin_to_choose();
  }

  void prepare() override {
    if (parallel_ == nullptr) return;
    if (Status status = parallel_->prepare(store_); !status.ok()) give_up_device(status);
  }

  Status execute(const BatchHeader& header, const TransactionColumns& columns, const Column<std::uint8_t>& expires,
                 BatchResults* results, WriteColumns* writes) override {
    const std::size_t n = columns.size();
    KILOKV_CHECK(expires.size() == n);
    KILOKV_CHECK(header.first_version + (std::uint64_t{kWaitPassesMax} + 1) * n <= kVersionMax);
    forget_batch();
    chooser_.forget();
    clock_.begin(options_.measure_stages ? &report_.stages : nullptr);
    clock_.enter(BatchStage::pack);
    results->reset(columns);
    clock_.enter(BatchStage::resolve);
    const auto begin = std::chrono::steady_clock::now();
    order_by_precedence(columns.precedence.data(), n, &order_);
    std::uint32_t read_set = count_read_set(columns);
    if (!validator_.is_wanted(read_set)) read_set = 0;
    const bool fits_tiles = can_run_by_tile(columns, read_set);
    const Way way = read_set == 0 ? choose_way(columns, expires, fits_tiles) : Way::serial;
    const bool by_tile = fits_tiles && (way == Way::serial || way == Way::pipelined);
    if (by_tile) {
      resolver_.open(columns, header.number, &store_);
    } else if (way == Way::partitioned) {
      resolver_.open_shares(columns);
    } else if (Status resolved = resolver_.resolve(columns, header.number, &store_, read_set, digest_on(way));
               !resolved.ok()) {
      writes->clear();
      return resolved;  // the report stays that of the last batch that ran
    }
    make_room_before(columns.op_kind.size());
    writes_ = {&columns, results, &rank_order_, before_.data(), resolver_.slot_of_key(), nullptr, header};
    const bool in_parallel =
        way == Way::parallel &&
        run_in_parallel({header, columns, expires, order_, writes_, tombstone_floor_, tile_size(), &store_, &resolver_,
                         &rank_order_, &books_, before_.data(), results, writes, &clock_, &report_});
    if (way == Way::partitioned) {
      if (Status status = run_partitioned(header, columns, expires, results, writes); !status.ok()) {
        forget_batch();
        writes->clear();
        return status;
      }
    } else if (!in_parallel) {
      const Tiles tiles = !by_tile ? Tiles::none : way == Way::pipelined ? Tiles::followed : Tiles::alone;
      run_serially(header, columns, expires, validate(columns, read_set), tiles, results, writes);
    }
    expiries_.settle(writes_, &store_, writes);
    report_.validated = read_set;
    if (read_set == 0) report_.validated_beside = 0;
    if (!in_parallel) tell_device();
    if (resolver_.has_unwritten(store_)) {
      if (!columns.range_limit.empty()) before_images();  // now, because forget_unwritten() moves the slots of pairs
      resolver_.forget_unwritten(&store_);
    }
    clock_.end();
    if (chooser_.has_chosen()) {
      const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
      chooser_.took(way != Way::parallel || in_parallel, seconds.count(), clock_.helper_seconds());
    }
    return {};
  }

  const ExecutionReport& execution() const override { return report_; }
  EngineDevice device() const override {
    const DeviceInfo* const device = parallel_ != nullptr ? parallel_->device() : nullptr;
    return {device != nullptr ? device->kind : "cpu", device != nullptr ? device->model : "", reason_};
  }

  const std::vector<BeforeImage>& before_images() const override {
    if (before_images_.empty() && !writes_.empty()) {
      writes_.for_each(store_.table(), [this](std::uint32_t, KeyId id, Cell before, Cell) {
        if (version_of(before.tag) >= writes_.header.first_version) return;
        before_images_.push_back({id, before, expiries_.before(id, store_)});
      });
    }
    return before_images_;
  }

  bool would_wait(const TransactionColumns& columns, std::size_t t, TimeUs stamp_us) const override {
    const BatchView view = view_at(columns, stamp_us);
    const LookupAccess access(store_, columns);
    for (std::uint32_t g = columns.guard_begin(t); g < columns.guard_end[t]; ++g) {
      Cell seen;
      const Verdict verdict = evaluate_guard(view, access, g, &seen);
      if (verdict == Verdict::is_true) continue;
      return verdict == Verdict::is_false && columns.guard_on_false[g] == static_cast<std::uint8_t>(OnFalse::wait);
    }
    return false;
  }

  TimeUs next_time(const TransactionColumns& columns, std::size_t t, TimeUs stamp_us) const override {
    const std::span kinds = std::span(columns.guard_kind).first(columns.guard_end[t]).subspan(columns.guard_begin(t));
    const auto is_time = [](std::uint8_t kind) { return compares_time(static_cast<GuardKind>(kind)); };
    if (std::none_of(kinds.begin(), kinds.end(), is_time)) return kNever;
    const BatchView view = view_at(columns, stamp_us);
    const LookupAccess access(store_, columns);
    TimeUs next_us = kNever;
    for (std::uint32_t g = columns.guard_begin(t); g < columns.guard_end[t]; ++g) {
      Cell seen;
      const Verdict verdict = evaluate_guard(view, access, g, &seen);
      if (is_time(columns.guard_kind[g]) && verdict != Verdict::type_mismatch) {
        const TimeUs time_us =
            columns.guard_key[g] == kNone ? columns.guard_operand[g] : static_cast<TimeUs>(seen.word);
        if (time_us > stamp_us) next_us = std::min(next_us, time_us);
      }
      if (verdict == Verdict::is_true) continue;
      const bool waits =
          verdict == Verdict::is_false && columns.guard_on_false[g] == static_cast<std::uint8_t>(OnFalse::wait);
      return waits ? next_us : stamp_us;
    }
    return stamp_us;
  }

  TimeUs next_expiry() const override { return store_.expiries().next(); }
  void visit_due(TimeUs stamp_us, std::size_t max,
                 const std::function<void(std::string_view, TimeUs)>& visit) const override {
    store_.expiries().visit_due(
        stamp_us, max, [&](KeyId id, TimeUs expires_us) { visit(store_.key(store_.table().find(id)), expires_us); });
  }

  std::string_view bytes_of(Cell cell) const override { return BlobStore::bytes(cell.word); }
  void release_through(BatchNumber batch) override { store_.blobs().release_through(batch); }
  void retain(Cell cell) override {
    if (type_of(cell.tag) == ValueType::bytes) store_.blobs().retain(cell.word);
  }
  void release(Cell cell) override {
    if (type_of(cell.tag) == ValueType::bytes) store_.blobs().release(cell.word);
  }

  RecordView find(std::string_view key) const override { return record_at(store_.find(key), key); }

  void scan(std::string_view from, std::string_view to,
            const std::function<bool(const RecordView&)>& visit) const override {
    store_.scan(from, to, [&](std::uint32_t slot, std::string_view key) { return visit(record_at(slot, key)); });
  }

  void scan_reverse(std::string_view from, std::string_view to,
                    const std::function<bool(const RecordView&)>& visit) const override {
    store_.scan_reverse(from, to,
                        [&](std::uint32_t slot, std::string_view key) { return visit(record_at(slot, key)); });
  }

  Status load(std::string_view key, Version version, ValueType type, std::int64_t integer, std::string_view bytes,
              TimeUs expires_us) override {
    KILOKV_CHECK(expires_us == 0 || (expires_us > 0 && type != ValueType::absent));
    forget_batch();
    if (version == 0) return {};  // never written, which is the same as no record
    const KeyId id = hash_key(key, store_.secret());
    std::uint32_t slot = store_.table().find(id);
    if (slot == store_.table().absent_slot()) {
      if (!store_.insert(id, key)) return store_full();
      slot = store_.table().find(id);
    }
    const Cell before = store_.table()[slot].cell;
    if (version_of(before.tag) > version) return {};
    Cell cell{0, make_tag(version, type)};
    if (type == ValueType::integer) cell.word = static_cast<std::uint64_t>(integer);
    if (type == ValueType::bytes) cell.word = store_.blobs().add(bytes);
    store_.table()[slot].cell = cell;
    store_.settle(slot, before);
    store_.expiries()->set(id, expires_us);
    if (parallel_ != nullptr) parallel_->changed(id);
    if (type == ValueType::bytes) store_.blobs().release(cell.word);  // the record has its own reference
    store_.blobs().release_through(0);
    return {};
  }

  void prefetch(std::string_view key) override {
    store_.table().prefetch_slot(store_.table().ref().home(hash_key(key, store_.secret()).high));
  }

  void drop_tombstones(Version floor, const std::function<void(std::string_view)>& dropped,
                       std::size_t looked_max) override {
    forget_batch();
    const auto drop = [&](std::string_view key) {
      if (parallel_ != nullptr) parallel_->changed(hash_key(key, store_.secret()));
      if (dropped) dropped(key);
    };
    tombstone_floor_ = std::max(tombstone_floor_, store_.drop_tombstones(floor, looked_max, drop));
  }
  Version tombstone_floor() const override { return tombstone_floor_; }

  Hash128 state_hash() const override { return store_.hash(); }
  Hash128 compute_state_hash() const override { return store_.compute_hash(); }

  std::size_t take_dirty(std::size_t max, const std::function<void(const RecordView&)>& visit) override {
    std::size_t taken = 0;
    for (; taken < max && store_.dirty_count() > 0; ++taken) {
      store_.take_dirty([&](std::uint32_t slot) { visit(record_at(slot, store_.key(slot))); });
    }
    return taken;
  }
  std::size_t dirty_count() const override { return store_.dirty_count(); }
  void clear_dirty() override { store_.clear_dirty(); }

  EngineStats stats() const override {
    return {store_.live(),
            store_.tombstones(),
            store_.expiries().size(),
            store_.table().capacity(),
            store_.memory_bytes() + access_.memory_bytes() + executor_run_.memory_bytes() +
                before_.capacity() * sizeof(Cell) + books_.memory_bytes() + partitioned_.memory_bytes() +
                (parallel_ != nullptr ? parallel_->memory_bytes() : 0) + validator_.memory_bytes(),
            strategy_choice(),
            validator_.choice()};
  }

  EngineMemory memory() const override {
    const StoreMemory store = store_.memory();
    return {
        store_.table().size(), store_.table().memory_capacity(), store.table, store.keys, store.key_room, store.index,
        store.values};
  }

 private:
  // The largest number of uses of records that every parallel strategy takes. A guard counts as two uses.
  static constexpr std::size_t kParallelUsesMax = std::size_t{1} << 31;

  // Transactions. What a tile uses stays in the nearest cache while it is found, run, and brought into the books.
  // Where stages are measured, a tile is larger: else the clock would take much of the time.
  static constexpr std::uint32_t kTile = 128, kMeasuredTile = 1024;

  // Cells. If a batch needs more, they are given back before the next batch.
  static constexpr std::size_t kBeforeKeptMax = (std::size_t{32} << 20) / sizeof(Cell);

  Status store_full() const {
    return Status(StatusCode::resource_exhausted, ErrorReason::table_full,
                  "the table is full: it has " + std::to_string(store_.table().size()) + " records; the limit is " +
                      std::to_string(options_.table_records_max) +
                      " records (raise --table-records-max) and 16 GiB of keys");
  }

  BatchView view_at(const TransactionColumns& columns, TimeUs stamp_us) const {
    BatchHeader header;
    header.time_us = stamp_us;
    return view_of(header, columns, tombstone_floor_);
  }

  RecordView record_at(std::uint32_t slot, std::string_view key) const {
    const Cell cell = store_.table()[slot].cell;
    return {key, cell, type_of(cell.tag) == ValueType::bytes ? BlobStore::bytes(cell.word) : std::string_view{},
            store_.expiries().find(store_.table()[slot].id)};
  }

  // Whether a batch that the engine runs itself goes by tile: its keys are found, it runs, and its books are kept, tile
  // by tile. `followed`: other threads find keys ahead, and keep the books.
  enum class Tiles { none, alone, followed };

  // A batch with ranges runs serially: the other ways need to know all records of a batch before it runs, and a range
  // does not name its records. So does a batch that may have last tries. They are rare, and they run after all else.
  Way choose_way(const TransactionColumns& columns, const Column<std::uint8_t>& expires, bool fits_tiles) {
    if (columns.empty() || !columns.range_limit.empty() || may_have_last_tries(columns, expires)) return Way::serial;
    const bool can_be_listed = 2 * columns.guard_kind.size() + columns.op_kind.size() <= kParallelUsesMax;
    const Chooser::Able able = {
        .pipelined = team_ != nullptr && fits_tiles,
        .partitioned = team_ != nullptr && can_be_listed && columns.size() <= kPartitionedTransactionsMax &&
                       columns.size() >= partitioned_.tuning().transactions_min,
        .parallel = parallel_ != nullptr && columns.size() <= parallel_->transactions_max() && can_be_listed};
    if (chooses_) {
      const Chooser::Chosen chosen = chooser_.choose(columns, able);
      if (chosen.way == Way::parallel) parallel_->use(chosen.strategy);
      return chosen.way;
    }
    if (able.parallel) return Way::parallel;
    if (options_.strategy == "partitioned") return able.partitioned ? Way::partitioned : Way::serial;
    return able.pipelined ? Way::pipelined : Way::serial;
  }
  // Whether a transaction with expire_runs_else expires if it is postponed.
  static bool may_have_last_tries(const TransactionColumns& columns, const Column<std::uint8_t>& expires) {
    const auto begin = columns.expire_runs_else.begin(), end = columns.expire_runs_else.end();
    for (auto at = std::find(begin, end, 1); at != end; at = std::find(at + 1, end, 1)) {
      const auto t = static_cast<std::size_t>(at - begin);
      if (expires[t] != 0 && can_wait(columns, t)) return true;
    }
    return false;
  }
  static bool can_wait(const TransactionColumns& columns, std::size_t t) {
    const auto wait = static_cast<std::uint8_t>(OnFalse::wait);
    const auto guards = columns.guard_on_false.begin();
    return std::find(guards + columns.guard_begin(t), guards + columns.guard_end[t], wait) !=
           guards + columns.guard_end[t];
  }
  void begin_to_choose() {
    if (chooses_) chooser_.begin(parallel_ == nullptr ? std::vector<std::string>() : parallel_->strategies());
  }
  std::string strategy_choice() const {
    if (!chooses_) return {};
    if (parallel_ == nullptr && team_ == nullptr) return "serial: there is one thread, and no device";
    return chooser_.text();
  }

  // How many leading guards of the batch's only transaction are known to hold: all of its large read set, or all before
  // the first one that does not hold. `read_set`: how many guards are the large read set; 0: it has none.
  std::uint32_t validate(const TransactionColumns& columns, std::uint32_t read_set) {
    if (read_set == 0) return 0;
    const ReadSet set{store_.table(), std::span<const KeyId>(columns.key_id).first(read_set),
                      std::span<const std::int64_t>(columns.guard_operand).first(read_set)};
    const CooperativeValidator::Answer answer = validator_.validate(store_, set, parallel_.get());
    if (!answer.device.ok() && answer.device.code() != StatusCode::resource_exhausted) give_up_device(answer.device);
    report_.validated_beside = answer.beside;
    if (answer.first_stale == kAllValid) return read_set;
    resolver_.resolve_key(columns, answer.first_stale, store_);
    return answer.first_stale;
  }

  // Transactions are in the order of their ranks then, and no error can come while the batch runs.
  bool can_run_by_tile(const TransactionColumns& columns, std::uint32_t read_set) const {
    return read_set == 0 && order_.empty() && columns.range_limit.empty() &&
           store_.has_room_for(columns.key_id.size(), columns.key_bytes.size());
  }
  std::uint32_t tile_size() const { return clock_.measures() ? kMeasuredTile : kTile; }

  // Runs the first pass, and keeps the books of it if nobody else does.
  void run_first_pass(const TransactionColumns& columns, Tiles tiles, SerialRun* run) {
    const auto n = static_cast<std::uint32_t>(columns.size());
    if (tiles == Tiles::none) {
      clock_.enter(BatchStage::run);
      return run->run_first(0, n, access_.run());
    }
    const std::uint32_t tile = tile_size();
    for (std::uint32_t first = 0, last = 0; first < n; first = last) {
      last = first + std::min(tile, n - first);
      clock_.enter(BatchStage::resolve);
      resolver_.find_for(columns, first, last, &store_);
      clock_.enter(BatchStage::run);
      run->run_first(first, last, access_.run());
      if (tiles == Tiles::alone || follower_.keeps_books(first, last)) books_.follow(first, last, &clock_);
    }
    if (tiles == Tiles::followed) follower_.end(n);
  }
  // The same on the threads of the team that come in time. The caller's thread runs the transactions. The others find
  // keys ahead, and the first of them then keeps the books.
  void run_first_pass_together(const TransactionColumns& columns, SerialRun* run) {
    resolver_.begin_hints(columns, store_);
    follower_.open(*team_);
    const auto body = [&](std::uint32_t thread) {
      if (thread == 0) return run_first_pass(columns, Tiles::followed, run);
      const bool has_books = follower_.ask();
      resolver_.find_hints();
      if (!has_books) return;
      StageClock no_clock;
      const auto n = static_cast<std::uint32_t>(columns.size());
      for (std::uint32_t followed = follower_.await_books(); followed < n;) {
        const std::uint32_t ran = follower_.wait_ran(followed);
        books_.follow(followed, ran, &no_clock);
        followed = ran;
      }
    };
    team_->run_beside(std::ref(body));  // a copy of the body would be made on the heap
    clock_.enter(BatchStage::run);
    clock_.add_helpers(team_->helper_time());
  }

  // `valid`: how many leading guards of the first transaction are known to hold. They are not evaluated again.
  void run_serially(const BatchHeader& header, const TransactionColumns& columns, const Column<std::uint8_t>& expires,
                    std::uint32_t valid, Tiles tiles, BatchResults* results, WriteColumns* writes) {
    const auto n = static_cast<std::uint32_t>(columns.size());
    clock_.enter(BatchStage::pack);
    access_.open(columns, resolver_, &store_, results, before_.data());
    waiting_.resize(n);
    BatchView view = view_of(header, columns, tombstone_floor_);
    const std::uint32_t guards_left = valid == 0 ? 0 : columns.guard_end[0] - valid;
    if (valid > 0) cut_guards(valid, &guards_left, &view);
    SerialRun run(view, view_of(results), order_.empty() ? nullptr : order_.data(), waiting_.data());
    if (tiles != Tiles::none) {
      rank_order_.sort(*results, true);
      books_.begin(writes_, store_, writes);
    }
    if (tiles == Tiles::followed) {
      run_first_pass_together(columns, &run);
    } else {
      run_first_pass(columns, tiles, &run);
    }
    clock_.enter(BatchStage::run);
    results->passes = run.finish(expires.data(), columns.expire_runs_else.data(), access_.run());
    results->next_version = header.first_version + std::uint64_t{results->passes} * n;
    clock_.enter(BatchStage::collect);
    const bool summarized = access_.summarized();
    writes_.slot_of_pair = access_.slot_of_pair();
    const bool in_order = results->passes <= 1 && order_.empty();
    if (tiles == Tiles::none) {
      rank_order_.sort(*results, in_order);
      books_.keep(writes_, summarized, &clock_, &store_, writes);
    } else {
      if (!in_order) {
        rank_order_.sort(*results, false);
        books_.follow(rank_order_.places_before(*results, n), rank_order_.places(*results), &clock_);
      }
      clock_.enter(BatchStage::settle);
      books_.end(summarized, &store_);
    }
    if (results->failed_index.size() == 1 && results->failed_in[0] == static_cast<std::uint8_t>(FailedIn::guards)) {
      results->failed_index[0] += valid;
    }
    report_.begin(tiles == Tiles::followed ? "pipelined" : "serial");
    report_.on_device = false;
  }

  Status run_partitioned(const BatchHeader& header, const TransactionColumns& columns,
                         const Column<std::uint8_t>& expires, BatchResults* results, WriteColumns* writes) {
    waiting_.resize(columns.size());
    return partitioned_.run(
        {header, columns, expires, order_, writes_, tombstone_floor_, &store_, &resolver_, &access_, &rank_order_,
         &books_, before_.data(), waiting_.data(), results, writes, &clock_, &report_},
        team_.get());
  }

  // Tells a device what a batch has written that ran elsewhere.
  void tell_device() {
    if (parallel_ == nullptr || parallel_->device() == nullptr) return;
    writes_.for_each(store_.table(), [this](std::uint32_t, KeyId id, Cell, Cell) { parallel_->changed(id); });
  }

  // Takes the leading `valid` guards out of the view. Requires: the batch has one transaction.
  static void cut_guards(std::uint32_t valid, const std::uint32_t* guards_left, BatchView* view) {
    view->guard_end = guards_left;
    view->guard_kind += valid;
    view->guard_on_false += valid;
    view->guard_key += valid;
    view->guard_other += valid;
    view->guard_operand += valid;
  }

  std::uint64_t* digest_on(Way way) { return way == Way::parallel ? executor_run_.digest_for(*parallel_) : nullptr; }

  // Runs the batch and keeps its books. False: the batch must run on the CPU, and the state is unchanged. Either the
  // device has no memory for this batch, or it failed. A device that failed is not used again.
  bool run_in_parallel(const ExecutorRun::Batch& batch) {
    const Status status = executor_run_.run(batch, parallel_.get());
    if (status.ok()) return true;
    if (parallel_->device() == nullptr) std::fprintf(stderr, "%s\n", status.message().c_str());
    KILOKV_CHECK(parallel_->device() != nullptr);  // on the CPU, an error is a bug
    if (status.code() != StatusCode::resource_exhausted) give_up_device(status);
    batch.results->reset(batch.columns);
    return false;
  }

  void give_up_device(const Status& status) {
    reason_ = status.message();
    ++report_.devices_lost;
    parallel_ = host_executor(options_);
    begin_to_choose();
  }

  // An assignment of {} would keep the memory of a large batch.
  void make_room_before(std::size_t operations) {
    if (before_.size() > std::max(kBeforeKeptMax, operations)) before_ = std::vector<Cell>();
    if (before_.size() < operations) before_.resize(operations);
  }

  // Drops what refers to the columns and the slots of the last batch.
  void forget_batch() {
    writes_ = {};
    before_images_.clear();
  }

  RecordStore store_;
  ExecutionReport report_;
  StageClock clock_;
  Version tombstone_floor_ = 0;
  BatchResolver resolver_;
  HostAccess access_;
  RankOrder rank_order_;
  EngineOptions options_;
  std::unique_ptr<Executor> parallel_;  // null: the engine itself runs every batch
  bool chooses_;                        // the strategy is `auto`: each batch gets its own
  std::string reason_;                  // why batches do not run on the device that was asked for
  Chooser chooser_;
  std::unique_ptr<ThreadTeam> team_;  // of `pipelined` and `partitioned`; null: nothing uses it
  CooperativeValidator validator_;
  std::vector<Cell> before_;  // [m] what each operation of the last batch replaced
  BatchWrites writes_;        // of the last batch; empty: forgotten
  Bookkeeping books_;
  ExecutorRun executor_run_;
  BatchExpiries expiries_;  // of the last batch
  Follower follower_;       // of a batch that runs pipelined
  PartitionedHost partitioned_;
  std::vector<std::uint32_t> order_, waiting_;
  mutable std::vector<BeforeImage> before_images_;  // built when first asked for
};

Status check_known(const std::string& field, const std::string& name, const std::vector<std::string>& known) {
  if (std::find(known.begin(), known.end(), name) != known.end()) return {};
  std::string names;
  for (const std::string& one : known) names += (names.empty() ? "" : ", ") + one;
  return Status::invalid({field, "one of " + names, name, "--" + field});
}

Status check_bounds(const std::string& field, std::uint32_t met, std::uint32_t low, std::uint32_t high) {
  if (met >= low && met <= high) return {};
  return Status::invalid(
      {field, std::to_string(low) + " to " + std::to_string(high), std::to_string(met), "--" + field});
}

}  // namespace

Status EngineOptions::validate() const {
  Status status = check_known("strategy", strategy, Engine::strategies());
  if (status.ok()) status = check_known("order", order, Engine::orders());
  if (status.ok() && order != "fixed" && strategy != "auto") {
    status = Status::invalid({"order", "fixed, the default, unless --strategy is auto", order, "--order"});
  }
  if (status.ok()) status = check_known("device", device, Engine::devices());
  if (status.ok()) status = check_known("validation", validation, Engine::validations());
  if (status.ok()) status = check_known("validation-lanes", validation_lanes, {"coalesced", "strided"});
  if (status.ok()) status = check_bounds("threads", threads, 0, kThreadsMax);
  return status.ok() ? check_settings(strategy, settings) : status;
}

std::vector<std::string> Engine::strategies() {
  std::vector<std::string> names = {"auto"};
  for (const StrategyInfo& info : strategy_infos()) names.push_back(info.name);
  return names;
}
std::vector<std::string> Engine::orders() { return {"fixed", "any"}; }
std::vector<std::string> Engine::devices() { return {"auto", "cpu", "cuda", "emulated"}; }
std::vector<std::string> Engine::validations() { return {"auto", "alone", "cooperative", "by-guard"}; }
Result<std::unique_ptr<Engine>> Engine::create(const EngineOptions& options) {
  if (Status status = options.validate(); !status.ok()) return status;
  if (options.device == "cpu") return create_engine_with(options, host_executor(options));
  if (runs_in_place(options)) {
    const std::string reason = options.device == "auto" ? "" : options.strategy + " runs on the CPU";
    return create_engine_with(options, nullptr, reason);
  }
  EmulatedDeviceOptions emulated;
  emulated.fails = options.emulated_device_fails;
  Result<OpenedDevice> opened = options.device == "emulated" ? open_emulated(emulated) : open_cuda();
  if (!opened.ok()) return create_engine_with(options, host_executor(options), opened.status().message());
  return create_engine_on(options, std::move(*opened));
}

Result<std::unique_ptr<Engine>> create_engine_on(const EngineOptions& options, OpenedDevice opened) {
  std::vector<std::string> names;
  for (std::string& name : parallel_strategies(options, true)) {
    const Strategy& strategy = *find_strategy(name);
    if (!runs_on(strategy, *opened.kernels)) continue;
    if (strategy.check_device != nullptr && !options.allow_unproven) {
      const Status status = strategy.check_device(opened.device->info(), options.settings);
      if (!status.ok()) return status;
    }
    names.push_back(std::move(name));
  }
  if (names.empty()) {
    const std::string& kind = opened.device->info().kind;
    return create_engine_with(
        options, host_executor(options),
        options.strategy + " runs on the CPU: this build has no kernels of it for the device " + kind);
  }
  return create_engine_with(options,
                            std::make_unique<DeviceExecutor>(std::move(opened), std::move(names), options.settings));
}

std::size_t table_bytes_until(std::size_t slots, std::size_t records) {
  return RecordTable::memory_until(slots, records);
}

// The index keeps a reference to the key and its head, and room for a few more. Two lists of changed records get an
// entry.
std::size_t new_key_bytes(std::size_t key_bytes) {
  constexpr std::size_t kInIndex = 18;
  return KeyArena::memory_of(key_bytes) + kInIndex;
}

std::size_t key_entry_bytes(std::size_t key_bytes) { return KeyArena::memory_of(key_bytes); }

std::size_t key_blocks_bytes(std::size_t entry_bytes) { return KeyArena::blocks_bytes(entry_bytes); }

std::size_t expiry_bytes() { return ExpiryTable::kKeyBytes; }
std::size_t new_value_bytes(std::size_t value_bytes) { return BlobStore::memory_of(value_bytes); }

std::unique_ptr<Engine> create_engine_with(const EngineOptions& options, std::unique_ptr<Executor> parallel,
                                           const std::string& reason) {
  return std::make_unique<HostEngine>(options, std::move(parallel), reason, PartitionedTuning{});
}

std::unique_ptr<Engine> create_partitioned_engine(const EngineOptions& options, const PartitionedTuning& tuning) {
  return std::make_unique<HostEngine>(options, nullptr, "", tuning);
}

}  // namespace kilokv::engine
