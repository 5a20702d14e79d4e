// Reads pages of scans from the table: at the newest batch boundary, or at an older one that a scan keeps.
//
// A scan with more than one page keeps its boundary until its last page. It keeps it under a random name, which the
// page carries. Nobody else knows the name, so nobody else can give the boundary up.
//
// Invariant: record() is called after every batch, before the next one runs. It keeps what the batch overwrote, for
// each open boundary. drop_floor() keeps the tombstones that these boundaries need.
//
// Thread safety: only the executor's thread, except image_bytes().
#pragma once

#include <atomic>
#include <cstdint>

#include "engine/base/key_hash.hpp"
#include "engine/base/status.hpp"
#include "engine/engine.hpp"
#include "server/core/environment.hpp"
#include "server/core/options.hpp"
#include "server/core/position.hpp"
#include "server/core/reads/scan.hpp"
#include "server/core/reads/snapshot_store.hpp"

namespace kilokv::server {

class Reader {
 public:
  // Everything passed in outlives the reader. `secret`: of the database's keys.
  Reader(const DatabaseOptions& options, const Environment& environment, engine::Engine* engine,
         const engine::KeyHashSecret& secret);

  // Reads one page, at `now` or at the boundary that the request names. The page may show what is not durable yet, so
  // the caller holds it back until its boundary is durable. Errors: ABORTED: the boundary is not kept (any more);
  // RESOURCE_EXHAUSTED: too many scans keep a boundary.
  Result<ScanPage> read(const ScanRequest& request, const Position& now);

  void record(BatchNumber batch);
  // Frees what is kept for scans that are too old, also when no batch comes. Returns whether it freed anything.
  bool free_old(TimeUs now_us);

  // The highest tombstone floor, up to `wanted`, with which every open boundary can still be read correctly.
  Version drop_floor(Version wanted) const { return snapshots_.drop_floor(wanted); }

  // Memory of the before-images, without their values, as of the last batch. Any thread.
  std::uint64_t image_bytes() const { return image_bytes_.load(std::memory_order_relaxed); }

 private:
  void fill(const ScanRequest& request, bool older, ScanPage* page) const;

  const DatabaseOptions& options_;
  const Environment& environment_;
  engine::Engine* const engine_;
  const engine::KeyHashSecret& secret_;
  SnapshotStore snapshots_;
  std::atomic<std::uint64_t> image_bytes_{0};
};

}  // namespace kilokv::server
