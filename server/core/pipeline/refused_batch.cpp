#include "server/core/pipeline/refused_batch.hpp"

#include <algorithm>
#include <utility>

namespace kilokv::server {

void RefusedBatch::hold(std::unique_ptr<Batch> batch) {
  batch_ = std::move(batch);
  next_ = 0;
  step_ = batch_->parts.size() / 2;
}

void RefusedBatch::append_next(Batch* batch) {
  std::vector<BatchPart>& parts = batch_->parts;
  while (next_ + 1 < parts.size() && parts[next_].request->failed) ++next_;
  const std::size_t end = std::min(next_ + step_, parts.size());
  for (std::size_t i = next_; i < end; ++i) {
    BatchPart part = parts[i];
    if (part.request->failed) continue;
    const std::uint32_t begin = std::exchange(part.begin, static_cast<std::uint32_t>(batch->columns.size()));
    const std::uint32_t moved = part.begin - begin;  // modulo 2^32
    batch->columns.append(batch_->columns, begin, part.end);
    part.end += moved;
    const bool parked = part.parked_id != 0;
    for (std::uint32_t t = part.begin; t < part.end; ++t) {
      batch->expires.push_back(parked ? part.deadline_us <= batch->header.time_us
                                      : batch->columns.wait_timeout_us[t] == 0);
    }
    for (LiveItem& item : part.items) item.transaction += moved;
    if (!parked) {
      part.admitted_batch = batch->header.number;
      for (LiveItem& item : part.items) item.admitted_batch = part.admitted_batch;
    }
    batch->parts.push_back(std::move(part));
  }
}

void RefusedBatch::visit(
    const std::function<void(const engine::TransactionColumns&, const BatchPart&)>& visitor) const {
  if (batch_ == nullptr) return;
  for (std::size_t i = next_; i < batch_->parts.size(); ++i) {
    if (!batch_->parts[i].request->failed) visitor(batch_->columns, batch_->parts[i]);
  }
}

void RefusedBatch::passed() {
  pass(step_);
  step_ *= 2;
}

void RefusedBatch::refused_again(bool alone) {
  step_ = std::max<std::size_t>(step_ / 2, 1);
  if (alone) pass(1);
}

void RefusedBatch::pass(std::size_t parts) {
  next_ += parts;
  if (next_ < batch_->parts.size()) return;
  batch_->clear();
  pool_->give(std::move(batch_));
}

}  // namespace kilokv::server
