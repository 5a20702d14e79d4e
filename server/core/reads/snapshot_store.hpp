// Before-images, for the later pages of a scan. They tell the cell and the expiry that a key had at the end of an older
// batch (a boundary).
//
// While a boundary is open, the cells that later batches overwrite are kept. The cell of a key at boundary N is the
// earliest before-image that was kept from a batch after N. A key without such an image was not written since N, so its
// cell in the table is the cell at N. To read a page, visit the table's keys, tombstones included, and call image_at
// for each:
// - A key that was created after N has a before-image that is absent.
// - A key that was deleted after N still has its tombstone in the table, and its before-image holds the value. The
//   tombstone must therefore stay as long as the boundary: drop tombstones only up to drop_floor().
// - A tombstone from before N may be dropped, because the key is absent at N in both cases.
// An image is kept only if a boundary needs it. For each key, these are the images of its first write after each open
// boundary.
//
// Thread safety: only the executor's thread.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "engine/engine.hpp"
#include "server/core/clients/client.hpp"

namespace kilokv::server {

class SnapshotStore {
 public:
  static constexpr std::size_t kReadersMax = 65536;

  // Called with every cell of type bytes that is kept (Engine::retain). Returns the size of its value.
  using Retain = std::function<std::uint64_t(Cell)>;
  // Called with the same cell when it is no longer kept (Engine::release).
  using Release = std::function<void(Cell)>;

  SnapshotStore(std::uint64_t bytes_max, DurationUs age_us_max, Retain retain, Release release);
  ~SnapshotStore();
  SnapshotStore(const SnapshotStore&) = delete;
  SnapshotStore& operator=(const SnapshotStore&) = delete;

  struct Boundary {
    Version version = 0;  // the highest version that it can show
    TimeUs time_us = 0;   // the stamp of its batch
    TimeUs opened_us = 0;
    std::vector<std::uint64_t> readers;
  };

  // Opens a boundary for `reader`, a name that was never used. `client`: null if nobody in particular reads.
  // RESOURCE_EXHAUSTED: kReadersMax readers are open already, or the client has its share of them. Requires: `boundary`
  // is the newest executed batch; now_us is monotonic.
  Status open(BatchNumber boundary, Version version, TimeUs time_us, TimeUs now_us, std::uint64_t reader,
              const std::shared_ptr<Client>& client = nullptr);
  // The reader has ended. A boundary without readers is dropped. Does nothing if there is no such reader (any more).
  void close(std::uint64_t reader);
  // Null if the boundary is not open (any more); the scan then ends with ABORTED, snapshot too old. The pointer is
  // valid until the next call that is not const.
  const Boundary* find(BatchNumber boundary) const;

  // Whether record() needs the images of the next batch.
  bool open() const { return !open_.empty(); }
  // Drops boundaries that are too old, and frees some of the images that no boundary needs any more.
  void free_old(TimeUs now_us);
  // Called after every batch, with the cells of the keys that it wrote as they were before (Engine::before_images).
  // Also called if no boundary is open; it then frees, in small steps, what the last boundary left. Drops boundaries
  // beyond the age. Then drops those whose images do not fit into the bytes, oldest first.
  void record(BatchNumber batch, std::span<const engine::BeforeImage> images, TimeUs now_us);

  // What `key` (engine::hash_key) had at the boundary, if it was written since. Empty: as in the table. Requires: the
  // boundary is open.
  std::optional<engine::BeforeImage> image_at(const KeyId& key, BatchNumber boundary) const;

  // The highest tombstone floor, up to `wanted`, with which every open boundary can still be read correctly.
  Version drop_floor(Version wanted) const;

  std::size_t images() const { return images_.size(); }
  std::uint64_t bytes() const { return bytes_; }
  // Without the values, which are in the engine.
  std::uint64_t image_bytes() const { return images_.size() * kImageBytes; }

 private:
  struct Image;
  // Images of one key, oldest first. A key that is written all the time has one for each boundary that was opened
  // meanwhile: tens of thousands. So image_at() searches them in halves.
  struct KeyImages {
    std::vector<const Image*> images;
    std::size_t freed = 0;  // as many at the begin of the vector are not there any more
  };
  struct KeyIdHash {  // a key id is a keyed hash already
    std::size_t operator()(const KeyId& key) const noexcept { return key.low; }
  };
  struct Image {
    BatchNumber batch = 0;  // the batch that overwrote the cell
    engine::BeforeImage before;
    std::uint64_t value_bytes = 0;  // of the retained value
  };
  struct OpenReader {
    BatchNumber boundary = 0;
    std::shared_ptr<Client> client;
  };
  void forget(std::unordered_map<std::uint64_t, OpenReader>::iterator reader);
  void drop_oldest_boundary();
  void drop_old_boundaries(TimeUs now_us);
  void free_stale(TimeUs now_us, std::size_t most);

  static constexpr std::uint64_t kImageBytes = sizeof(Image) + 112;  // with its share of the map
  void keep(BatchNumber batch, const engine::BeforeImage& image);
  bool oldest_is_stale() const;
  void free_oldest();

  const std::uint64_t bytes_max_;
  const DurationUs age_us_max_;
  Retain retain_;
  Release release_;
  std::map<BatchNumber, Boundary> open_;
  std::unordered_map<std::uint64_t, OpenReader> readers_;
  SharedLimit reader_count_;
  std::deque<Image> images_;  // by batch, oldest first
  std::unordered_map<KeyId, KeyImages, KeyIdHash> keys_;
  std::uint64_t bytes_ = 0;
};

}  // namespace kilokv::server
