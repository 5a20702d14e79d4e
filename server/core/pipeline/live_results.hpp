// The results of one request's transactions, read in place from an executed batch. Nothing is copied.
//
// Invariants: columns, results, engine and items outlive the slice. Byte values can be read, because the engine frees
// what the batch replaced only after the answers (Engine::release_through).
//
// Thread safety: immutable. visit() reads byte values through Engine::bytes_of, which any thread may call.
#pragma once

#include <cstdint>
#include <span>

#include "engine/engine.hpp"
#include "engine/txn/columns.hpp"
#include "engine/txn/results.hpp"
#include "server/core/request.hpp"

namespace kilokv::server {

// An executed batch.
struct ExecutedBatch {
  const engine::TransactionColumns* columns = nullptr;
  const engine::BatchResults* results = nullptr;
  const engine::Engine* engine = nullptr;
  engine::BatchHeader header;
};

// One finished transaction of a request.
struct LiveItem {
  std::uint32_t transaction = 0;  // in the batch's columns; unused when cancelled
  std::uint32_t index = 0;        // in the request
  BatchNumber admitted_batch = 0;
  bool cancelled = false;  // answered with this batch, but not run in it
};

class LiveSlice : public ResultSlice {
 public:
  // Transactions [begin, end) of the batch. They were admitted to it, and have indices from first_index on in their
  // request. Requires: each of them is decided and not postponed.
  LiveSlice(const ExecutedBatch& batch, std::uint32_t begin, std::uint32_t end, std::uint32_t first_index);
  // Any other transactions. Requires: the same, and increasing indices.
  LiveSlice(const ExecutedBatch& batch, std::span<const LiveItem> items);

  std::uint32_t size() const override { return size_; }
  void visit(ResultVisitor* visitor) const override;

 private:
  LiveItem item(std::uint32_t i) const;
  void visit_item(const LiveItem& item, ResultVisitor* visitor) const;
  void visit_guard_value(std::uint32_t transaction, ResultVisitor* visitor) const;
  void visit_reads(std::uint32_t begin, std::uint32_t end, ResultVisitor* visitor) const;
  void visit_range(std::uint32_t operation, std::uint32_t range, ResultVisitor* visitor) const;
  ReadValue value_of(std::string_view key, Cell cell) const;

  ExecutedBatch batch_;
  std::span<const LiveItem> items_;  // empty: the transactions are a run
  std::uint32_t begin_ = 0;
  std::uint32_t first_index_ = 0;
  std::uint32_t size_ = 0;
};

}  // namespace kilokv::server
