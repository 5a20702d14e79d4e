// Finds ahead where the keys of a batch probably are (RecordTable::hint_all), in tiles, while another thread runs the
// batch. The thread that runs does not wait for hints: if a tile is not ready, it finds the keys itself. It waits only
// in stop(), for the tiles that are being looked at.
//
// Thread safety: find() may run on several threads, beside ready(), pass() and stop() on one other thread. open() needs
// the object for itself. Keeps its capacity, so that the steady state allocates nothing.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/base/types.hpp"
#include "engine/platform/host.hpp"
#include "engine/table/record_table.hpp"

namespace kilokv::engine {

class HintFinder {
 public:
  static constexpr std::uint32_t kTileKeys = 512;

  // Begins a batch. Requires: the ids stay as they are until all calls of find() have returned. Until then, or until
  // stop() has returned, no record is inserted or erased.
  void open(std::span<const KeyId> ids, const RecordTable& table);
  // There are no hints.
  void close() { tiles_ = 0; }

  // Finds the hints of all tiles that no other thread finds, and that are not passed. Returns when none is left, or
  // after stop().
  void find();

  // The hints for the keys of the tile. Null: they are not ready.
  const std::uint32_t* ready(std::uint32_t tile) const;
  // Nobody will ask for the tiles before this one any more.
  void pass(std::uint32_t tile) { passed_.store(tile, std::memory_order_relaxed); }
  // Ends all calls of find(), now and later. No tile is ready after it.
  void stop();

 private:
  std::span<const KeyId> ids_;
  const RecordTable* table_ = nullptr;
  std::uint32_t tiles_ = 0;
  std::vector<std::uint32_t> hints_;
  std::unique_ptr<std::atomic<std::uint8_t>[]> is_ready_;  // for each tile
  std::uint32_t room_ = 0;                                 // tiles for which is_ready_ has room
  alignas(64) std::atomic<std::uint32_t> next_{0}, passed_{0};
  std::atomic<std::uint32_t> finding_{0};  // threads in find()
  std::atomic<bool> stopped_{false};
};

}  // namespace kilokv::engine
