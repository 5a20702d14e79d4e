// The engine in host memory, with one of the host's strategies.

#include "engine/engine.hpp"

#include <algorithm>

#include "engine/base/check.hpp"
#include "engine/exec/collect_writes.hpp"
#include "engine/exec/host_access.hpp"
#include "engine/exec/resolver.hpp"
#include "engine/stm/order.hpp"
#include "engine/stm/serial.hpp"
#include "engine/table/record_store.hpp"
#include "engine/txn/view.hpp"

namespace kilokv::engine {
namespace {

class HostEngine final : public Engine {
 public:
  explicit HostEngine(const EngineOptions& options)
      : store_(options.secret, options.expected_records, options.table_records_max) {}

  Status execute(const BatchHeader& header, const TransactionColumns& columns, const Column<std::uint8_t>& last_try,
                 BatchResults* results, WriteColumns* writes) override {
    const std::size_t n = columns.size();
    KILOKV_CHECK(last_try.size() == n);
    KILOKV_CHECK(header.first_version + std::uint64_t{kWaitPassesMax} * n <= kVersionMax);
    forget_batch();
    results->reset(columns);
    if (Status resolved = resolver_.resolve(columns, header.number, &store_); !resolved.ok()) {
      writes->clear();
      return resolved;
    }
    access_.open(header, columns, resolver_, &store_, results);
    order_by_precedence(columns.precedence.data(), n, &order_);
    waiting_.resize(n);
    results->passes = run_serial(view_of(header, columns, tombstone_floor_), view_of(results), last_try.data(),
                                 order_.empty() ? nullptr : order_.data(), waiting_.data(), access_);
    results->next_version = header.first_version + std::uint64_t{results->passes} * n;
    writes_.collect(columns, *results, results->passes <= 1 && order_.empty(), writes);
    settle(header.number);
    return {};
  }

  const ExecutionReport& execution() const override { return report_; }
  EngineDevice device() const override { return device_; }

  const std::vector<BeforeImage>& before_images() const override {
    if (before_images_.empty()) {
      for (const SlotImage& image : access_.log()) {
        if (version_of(image.before.tag) >= access_.first_version()) continue;
        before_images_.push_back({store_.table()[image.slot].id, image.before});
      }
    }
    return before_images_;
  }

  bool would_wait(const TransactionColumns& columns, std::size_t t) const override {
    const BatchView view = view_of(BatchHeader{}, columns, tombstone_floor_);
    const LookupAccess access(store_, columns);
    for (std::uint32_t g = columns.guard_begin(t); g < columns.guard_end[t]; ++g) {
      Cell seen;
      const Verdict verdict = evaluate_guard(view, access, g, &seen);
      if (verdict == Verdict::is_true) continue;
      return verdict == Verdict::is_false && columns.guard_on_false[g] == static_cast<std::uint8_t>(OnFalse::wait);
    }
    return false;
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

  Status load(std::string_view key, Version version, ValueType type, std::int64_t integer,
              std::string_view bytes) override {
    forget_batch();
    if (version == 0) return {};  // never written is how it starts
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
    const SlotImage image{slot, before};
    store_.settle({&image, 1}, version + 1, 0, false);
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
    tombstone_floor_ = std::max(tombstone_floor_, store_.drop_tombstones(floor, looked_max, dropped));
  }
  Version tombstone_floor() const override { return tombstone_floor_; }

  Hash128 state_hash() const override { return store_.hash(); }
  Hash128 compute_state_hash() const override { return store_.compute_hash(); }

  std::size_t take_dirty(std::size_t max, const std::function<void(const RecordView&)>& visit) override {
    std::size_t taken = 0;
    for (; taken < max; ++taken) {
      const std::uint32_t slot = store_.take_dirty();
      if (slot == store_.table().absent_slot()) break;
      visit(record_at(slot, store_.key(slot)));
    }
    return taken;
  }
  std::size_t dirty_count() const override { return store_.dirty_count(); }
  void clear_dirty() override { store_.clear_dirty(); }

  EngineStats stats() const override {
    return {store_.live(), store_.tombstones(), store_.table().capacity(),
            store_.memory_bytes() + access_.memory_bytes()};
  }

 private:
  static Status store_full() {
    return Status(StatusCode::resource_exhausted, "the table is full: raise --table-records-max");
  }

  RecordView record_at(std::uint32_t slot, std::string_view key) const {
    const Cell cell = store_.table()[slot].cell;
    return {key, cell, type_of(cell.tag) == ValueType::bytes ? BlobStore::bytes(cell.word) : std::string_view{}};
  }

  // The last batch's slots may move from here on.
  void forget_batch() {
    access_.forget();
    before_images_.clear();
  }

  // Brings hash, counts, dirty marks and byte values up to date with the slots that the batch wrote.
  void settle(BatchNumber batch) {
    store_.settle(access_.log(), access_.first_version(), batch, access_.summarized());
    if (!resolver_.has_unwritten(store_)) return;
    before_images();  // while the slots are where they were
    resolver_.forget_unwritten(&store_);
  }

  RecordStore store_;
  EngineDevice device_;
  ExecutionReport report_;
  Version tombstone_floor_ = 0;
  BatchResolver resolver_;
  HostAccess access_;
  WriteCollector writes_;
  std::vector<std::uint32_t> order_, waiting_;
  mutable std::vector<BeforeImage> before_images_;  // built when first asked for
};

Status check_known(const std::string& field, const std::string& name, const std::vector<std::string>& known) {
  if (std::find(known.begin(), known.end(), name) != known.end()) return {};
  std::string names;
  for (const std::string& one : known) names += (names.empty() ? "" : ", ") + one;
  return Status::invalid({field, "one of " + names, name, "--" + field});
}

}  // namespace

std::vector<std::string> Engine::strategies() { return {"auto", "serial"}; }
std::vector<std::string> Engine::devices() { return {"auto", "cpu"}; }

Result<std::unique_ptr<Engine>> Engine::create(const EngineOptions& options) {
  if (Status known = check_known("strategy", options.strategy, strategies()); !known.ok()) return known;
  if (Status known = check_known("device", options.device, devices()); !known.ok()) return known;
  return std::unique_ptr<Engine>(std::make_unique<HostEngine>(options));
}

}  // namespace kilokv::engine
