// Before-images, for the later pages of a scan: how a key stood at the end of an older batch (a boundary).
//
// While a boundary is open, the cells that later batches overwrite are kept. The cell of a key at boundary N is the
// earliest kept before-image of a batch after N; a key that has none was not written since, and stands in the table
// as it stood at N. So a page is read by visiting the table's keys, tombstones included, and asking cell_at for each:
// - a key that came into being after N has a before-image that is absent;
// - a key deleted after N still has its tombstone in the table, and its before-image holds the value. That needs the
//   tombstone to stay as long as the boundary: drop tombstones only up to drop_floor();
// - a tombstone from before N may be dropped: the key is absent at N either way.
// An image is kept only if a boundary needs it: of a key's writes, the first one after each open boundary.
//
// Thread safety: the executor thread alone.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "engine/engine.hpp"

namespace kilokv::server {

class SnapshotStore {
 public:
  static constexpr std::size_t kReadersMax = 65536;

  // Called with every cell of type bytes that is kept (Engine::retain); returns the size of its value.
  using Retain = std::function<std::uint64_t(Cell)>;
  // Called with the same cell when it is let go (Engine::release).
  using Release = std::function<void(Cell)>;

  SnapshotStore(std::uint64_t bytes_max, DurationUs age_us_max, Retain retain, Release release);
  ~SnapshotStore();
  SnapshotStore(const SnapshotStore&) = delete;
  SnapshotStore& operator=(const SnapshotStore&) = delete;

  struct Boundary {
    Version version = 0;  // the highest that it can show
    TimeUs time_us = 0;   // the stamp of its batch
    TimeUs opened_us = 0;
    std::vector<std::uint64_t> readers;
  };

  // Opens a boundary for `reader`, a name that was never used. False: kReadersMax have theirs open already.
  // Requires: `boundary` is the newest executed batch; now_us is monotonic.
  bool open(BatchNumber boundary, Version version, TimeUs time_us, TimeUs now_us, std::uint64_t reader);
  // The reader is done. A boundary without readers is dropped. Nothing happens if there is no such reader (any more).
  void close(std::uint64_t reader);
  // Null if it is not open (any more): ABORTED, snapshot too old. Valid until the next call that is not const.
  const Boundary* find(BatchNumber boundary) const;

  // Whether record() needs the images of the next batch.
  bool open() const { return !open_.empty(); }
  // Called after every batch, also when no boundary is open (it then lets go, bit by bit, what the last one left),
  // with the cells of the keys that it wrote as they were before (Engine::before_images). Drops boundaries beyond the
  // age; then, oldest first, those whose images do not fit in the bytes.
  void record(BatchNumber batch, std::span<const engine::BeforeImage> images, TimeUs now_us);

  // The cell of `key` (engine::hash_key) at the boundary, if it was written since; none: as it is now.
  // Requires: the boundary is open.
  std::optional<Cell> cell_at(const KeyId& key, BatchNumber boundary) const;

  // The highest tombstone floor, up to `wanted`, at which every open boundary still reads right.
  Version drop_floor(Version wanted) const;

  std::size_t images() const { return images_.size(); }
  std::uint64_t bytes() const { return bytes_; }

 private:
  struct Image;
  struct KeyImages {  // of one key, oldest first
    Image* oldest = nullptr;
    Image* newest = nullptr;
  };
  struct KeyIdHash {  // a key id is a keyed hash already
    std::size_t operator()(const KeyId& key) const noexcept { return key.low; }
  };
  struct Image {
    BatchNumber batch = 0;  // that overwrote it
    Cell cell;
    KeyId key;
    std::uint64_t value_bytes = 0;  // of the retained value
    Image* next = nullptr;          // of the same key, newer
  };
  void drop_oldest_boundary();
  void drop_old_boundaries(TimeUs now_us);

  static constexpr std::uint64_t kImageBytes = sizeof(Image) + 64;  // with its share of the map
  void keep(BatchNumber batch, const engine::BeforeImage& image);
  bool oldest_is_stale() const;
  void free_oldest();

  const std::uint64_t bytes_max_;
  const DurationUs age_us_max_;
  Retain retain_;
  Release release_;
  std::map<BatchNumber, Boundary> open_;
  std::unordered_map<std::uint64_t, BatchNumber> readers_;
  std::deque<Image> images_;  // by batch, oldest first
  std::unordered_map<KeyId, KeyImages, KeyIdHash> keys_;
  std::uint64_t bytes_ = 0;
};

}  // namespace kilokv::server
