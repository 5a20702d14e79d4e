#include "engine/exec/resolve/hint_finder.hpp"

#include <algorithm>
#include <thread>

namespace kilokv::engine {

void HintFinder::open(std::span<const KeyId> ids, const RecordTable& table) {
  ids_ = ids;
  table_ = &table;
  tiles_ = static_cast<std::uint32_t>((ids.size() + kTileKeys - 1) / kTileKeys);
  if (tiles_ > room_) {
    room_ = std::max(tiles_, 2 * room_);
    is_ready_ = std::make_unique<std::atomic<std::uint8_t>[]>(room_);
  }
  for (std::uint32_t tile = 0; tile < tiles_; ++tile) is_ready_[tile].store(0, std::memory_order_relaxed);
  hints_.resize(ids.size());
  next_.store(0, std::memory_order_relaxed);
  passed_.store(0, std::memory_order_relaxed);
  stopped_.store(false, std::memory_order_relaxed);
}

void HintFinder::find() {
  finding_.fetch_add(1);
  // Sequentially consistent: either stop() sees that this thread is here, or this thread sees that it is stopped.
  while (!stopped_.load()) {
    std::uint32_t tile = next_.load(std::memory_order_relaxed), first = 0;
    do {
      first = std::max(tile, passed_.load(std::memory_order_relaxed));
    } while (!next_.compare_exchange_weak(tile, first + 1, std::memory_order_relaxed));
    if (first >= tiles_) break;
    const std::size_t begin = std::size_t{first} * kTileKeys;
    const std::size_t count = std::min<std::size_t>(kTileKeys, ids_.size() - begin);
    table_->hint_all(ids_.subspan(begin, count), hints_.data() + begin);
    is_ready_[first].store(1, std::memory_order_release);
  }
  finding_.fetch_sub(1, std::memory_order_release);
}

const std::uint32_t* HintFinder::ready(std::uint32_t tile) const {
  if (tile >= tiles_ || is_ready_[tile].load(std::memory_order_acquire) == 0) return nullptr;
  return hints_.data() + std::size_t{tile} * kTileKeys;
}

void HintFinder::stop() {
  stopped_.store(true);
  while (finding_.load() > 0) std::this_thread::yield();
  tiles_ = 0;
}

}  // namespace kilokv::engine
