// An engine that passes every call to another engine, for tests that change one of its functions. Thread safety: as of
// the other engine.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/engine.hpp"

namespace kilokv::server {

class ForwardingEngine : public engine::Engine {
 public:
  explicit ForwardingEngine(std::unique_ptr<engine::Engine> to) : to_(std::move(to)) {}

  void prepare() override { to_->prepare(); }
  Status execute(const engine::BatchHeader& header, const engine::TransactionColumns& columns,
                 const engine::Column<std::uint8_t>& expires, engine::BatchResults* results,
                 engine::WriteColumns* writes) override {
    return to_->execute(header, columns, expires, results, writes);
  }
  const engine::ExecutionReport& execution() const override { return to_->execution(); }
  engine::EngineDevice device() const override { return to_->device(); }
  const std::vector<engine::BeforeImage>& before_images() const override { return to_->before_images(); }
  bool would_wait(const engine::TransactionColumns& columns, std::size_t t, TimeUs stamp_us) const override {
    return to_->would_wait(columns, t, stamp_us);
  }
  TimeUs next_time(const engine::TransactionColumns& columns, std::size_t t, TimeUs stamp_us) const override {
    return to_->next_time(columns, t, stamp_us);
  }
  TimeUs next_expiry() const override { return to_->next_expiry(); }
  void visit_due(TimeUs stamp_us, std::size_t max,
                 const std::function<void(std::string_view, TimeUs)>& visit) const override {
    to_->visit_due(stamp_us, max, visit);
  }
  std::string_view bytes_of(Cell cell) const override { return to_->bytes_of(cell); }
  void release_through(BatchNumber batch) override { to_->release_through(batch); }
  void retain(Cell cell) override { to_->retain(cell); }
  void release(Cell cell) override { to_->release(cell); }
  engine::RecordView find(std::string_view key) const override { return to_->find(key); }
  void scan(std::string_view from, std::string_view to,
            const std::function<bool(const engine::RecordView&)>& visit) const override {
    to_->scan(from, to, visit);
  }
  void scan_reverse(std::string_view from, std::string_view to,
                    const std::function<bool(const engine::RecordView&)>& visit) const override {
    to_->scan_reverse(from, to, visit);
  }
  Status load(std::string_view key, Version version, ValueType type, std::int64_t integer, std::string_view bytes,
              TimeUs expires_us = 0) override {
    return to_->load(key, version, type, integer, bytes, expires_us);
  }
  void prefetch(std::string_view key) override { to_->prefetch(key); }
  void drop_tombstones(Version floor, const std::function<void(std::string_view)>& dropped,
                       std::size_t looked_max) override {
    to_->drop_tombstones(floor, dropped, looked_max);
  }
  Version tombstone_floor() const override { return to_->tombstone_floor(); }
  Hash128 state_hash() const override { return to_->state_hash(); }
  Hash128 compute_state_hash() const override { return to_->compute_state_hash(); }
  std::size_t take_dirty(std::size_t max, const std::function<void(const engine::RecordView&)>& visit) override {
    return to_->take_dirty(max, visit);
  }
  std::size_t dirty_count() const override { return to_->dirty_count(); }
  void clear_dirty() override { to_->clear_dirty(); }
  engine::EngineStats stats() const override { return to_->stats(); }
  engine::EngineMemory memory() const override { return to_->memory(); }

 private:
  std::unique_ptr<engine::Engine> to_;
};

}  // namespace kilokv::server
