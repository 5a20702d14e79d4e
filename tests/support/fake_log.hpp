// A log in memory whose batches a test writes, for those who read it. Thread safety: all members.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "server/core/commit_log.hpp"
#include "server/core/log_reader.hpp"
#include "server/core/position.hpp"

namespace kilokv::server {

class FakeLog {
 public:
  struct Write {
    std::string key;
    Version version;
    std::uint32_t index;     // among the writes of its version, from 1; 0: not known
    std::string bytes = {};  // empty: the key was deleted
    friend bool operator==(const Write&, const Write&) = default;
  };
  struct Batch {
    LoggedBatch head;
    std::vector<Write> writes;
  };

  // Appends a batch with so many versions, and then tells those who wait for it.
  void append(std::vector<Write> writes, Version versions, bool expired = false) {
    std::vector<std::function<void()>> ready;
    {
      const std::lock_guard lock(mutex_);
      Batch batch;
      batch.head.header = {batches_.size() + 1, static_cast<TimeUs>(batches_.size() + 1) * 1000, newest_.next_version};
      batch.head.next_version = newest_.next_version + versions;
      batch.head.expired = expired;
      batch.head.bytes = 100;
      batch.writes = std::move(writes);
      newest_.batch = batch.head.header.number;
      newest_.next_version = batch.head.next_version;
      batches_.push_back(std::move(batch));
      ready.swap(waiting_);
    }
    for (const auto& work : ready) work();
  }
  void trim(BatchNumber first) {
    const std::lock_guard lock(mutex_);
    first_ = first;
  }
  Position newest() const {
    const std::lock_guard lock(mutex_);
    return newest_;
  }
  // Runs the work after the next batch, or at once if this batch is there.
  void when_there(BatchNumber batch, std::function<void()> work) {
    {
      const std::lock_guard lock(mutex_);
      if (newest_.batch < batch) return waiting_.push_back(std::move(work));
    }
    work();
  }
  std::vector<Batch> batches() const {
    const std::lock_guard lock(mutex_);
    return batches_;
  }
  std::unique_ptr<LogReader> open() const { return std::make_unique<Reader>(this); }
  // Called before each batch that is read.
  std::function<void()> before_read = [] {};

 private:
  class Reader final : public LogReader {
   public:
    explicit Reader(const FakeLog* log) : log_(log) {}
    BatchNumber first_batch() const override {
      const std::lock_guard lock(log_->mutex_);
      return log_->batches_.empty() ? 0 : log_->first_;
    }
    Result<bool> read(BatchNumber batch) override {
      log_->before_read();
      const std::lock_guard lock(log_->mutex_);
      if (batch < log_->first_ || batch > log_->batches_.size()) return false;
      at_ = log_->batches_[batch - 1];
      return true;
    }
    const LoggedBatch& batch() const override { return at_.head; }
    void visit(const std::function<bool(const StoredRecord&)>& visit) const override {
      for (const Write& write : at_.writes) {
        StoredRecord record;
        record.key = write.key;
        record.version = write.version;
        record.type = write.bytes.empty() ? ValueType::absent : ValueType::bytes;
        record.bytes = write.bytes;
        if (!visit(record)) return;
      }
    }
    void release() override { at_ = {}; }

   private:
    const FakeLog* const log_;
    Batch at_;
  };

  mutable std::mutex mutex_;
  std::vector<Batch> batches_;
  BatchNumber first_ = 1;
  Position newest_;
  std::vector<std::function<void()>> waiting_;
};

}  // namespace kilokv::server
