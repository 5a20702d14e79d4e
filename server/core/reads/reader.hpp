// Reads pages of scans from the table: of the newest batch boundary, or of an older one that a scan keeps.
//
// A scan that goes on beyond its first page keeps its boundary until its last page. It does so under a random name that
// the page carries: nobody else knows the name, so nobody else can give the boundary up.
//
// Invariant: record() is called after every batch, before the next one runs. What the batch overwrote is then kept for
// each open boundary, and drop_floor() keeps the tombstones that these boundaries need.
//
// Thread safety: the executor's thread alone.
#pragma once

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
  // All outlive the reader. `secret`: of the database's keys.
  Reader(const DatabaseOptions& options, const Environment& environment, engine::Engine* engine,
         const engine::KeyHashSecret& secret);

  // One page, at `now` or at the boundary that the request names. The page may show what is not durable yet: the caller
  // holds it back until its boundary is. ABORTED: the boundary is not kept (any more); RESOURCE_EXHAUSTED: too many
  // scans keep one.
  Result<ScanPage> read(const ScanRequest& request, const Position& now);

  void record(BatchNumber batch);

  // The highest tombstone floor, up to `wanted`, that leaves every open boundary whole.
  Version drop_floor(Version wanted) const { return snapshots_.drop_floor(wanted); }

 private:
  void fill(const ScanRequest& request, bool older, ScanPage* page) const;

  const DatabaseOptions& options_;
  const Environment& environment_;
  engine::Engine* const engine_;
  const engine::KeyHashSecret& secret_;
  SnapshotStore snapshots_;
};

}  // namespace kilokv::server
