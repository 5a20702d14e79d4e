#include "server/core/reads/snapshot_store.hpp"

#include <algorithm>
#include <utility>

#include "engine/base/check.hpp"

namespace kilokv::server {

// How many images a batch frees at most, beyond as many as it brings, so that closing a large boundary does not delay a
// batch.
static constexpr std::size_t kFreedPerBatch = 1024;
static constexpr std::int64_t kReadersRetryAfterUs = 1000000;

static Held* account_of(const std::shared_ptr<Client>& client) {
  return client == nullptr ? nullptr : client->account(&Client::boundaries);
}

SnapshotStore::SnapshotStore(std::uint64_t bytes_max, DurationUs age_us_max, Retain retain, Release release)
    : bytes_max_(bytes_max),
      age_us_max_(age_us_max),
      retain_(std::move(retain)),
      release_(std::move(release)),
      reader_count_(kReadersMax,
                    {ErrorReason::scans_full, "keep_boundary", " scans between two pages", "", kReadersRetryAfterUs}) {}

SnapshotStore::~SnapshotStore() {
  while (!images_.empty()) {
    free_oldest();
  }
}

Status SnapshotStore::open(BatchNumber boundary, Version version, TimeUs time_us, TimeUs now_us, std::uint64_t reader,
                           const std::shared_ptr<Client>& client) {
  drop_old_boundaries(now_us);  // also needed if no batch comes: readers that went away must not block others
  Status status = reader_count_.charge(account_of(keeper_of(client)), 1);
  if (!status.ok()) return status;
  const auto [it, inserted] = open_.try_emplace(boundary, Boundary{version, time_us, now_us, {}});
  KILOKV_CHECK(!inserted || std::next(it) == open_.end());
  it->second.readers.push_back(reader);
  readers_.emplace(reader, OpenReader{boundary, keeper_of(client)});
  return {};
}

void SnapshotStore::close(std::uint64_t reader) {
  const auto found = readers_.find(reader);
  if (found == readers_.end()) {
    return;
  }
  const auto it = open_.find(found->second.boundary);
  std::erase(it->second.readers, reader);
  if (it->second.readers.empty()) {
    open_.erase(it);
  }
  forget(found);
}

void SnapshotStore::forget(std::unordered_map<std::uint64_t, OpenReader>::iterator reader) {
  reader_count_.release(account_of(reader->second.client), 1);
  readers_.erase(reader);
}

void SnapshotStore::drop_oldest_boundary() {
  for (const std::uint64_t reader : open_.begin()->second.readers) {
    forget(readers_.find(reader));
  }
  open_.erase(open_.begin());
}

void SnapshotStore::drop_old_boundaries(TimeUs now_us) {
  while (!open_.empty() && open_.begin()->second.opened_us + age_us_max_ <= now_us) {
    drop_oldest_boundary();
  }
}

const SnapshotStore::Boundary* SnapshotStore::find(BatchNumber boundary) const {
  const auto it = open_.find(boundary);
  return it == open_.end() ? nullptr : &it->second;
}

void SnapshotStore::free_old(TimeUs now_us) { free_stale(now_us, kFreedPerBatch); }

void SnapshotStore::free_stale(TimeUs now_us, std::size_t most) {
  drop_old_boundaries(now_us);
  for (std::size_t freed = 0; freed < most && oldest_is_stale(); ++freed) {
    free_oldest();
  }
}

void SnapshotStore::record(BatchNumber batch, std::span<const engine::BeforeImage> images, TimeUs now_us) {
  free_stale(now_us, kFreedPerBatch + images.size());
  if (open_.empty()) {
    return;
  }
  for (const engine::BeforeImage& image : images) {
    keep(batch, image);
  }
  while (bytes_ > bytes_max_ && !open_.empty()) {
    if (oldest_is_stale()) {
      free_oldest();
    } else {
      drop_oldest_boundary();
    }
  }
}

void SnapshotStore::keep(BatchNumber batch, const engine::BeforeImage& image) {
  KeyImages& key = keys_[image.id];
  if (!key.images.empty() && key.images.back()->batch > open_.rbegin()->first) {
    return;  // every boundary before this batch has an image of the key already
  }
  const std::uint64_t value_bytes = type_of(image.cell.tag) == ValueType::bytes ? retain_(image.cell) : 0;
  key.images.push_back(&images_.emplace_back(Image{batch, image, value_bytes}));
  bytes_ += kImageBytes + value_bytes;
}

std::optional<engine::BeforeImage> SnapshotStore::image_at(const KeyId& key, BatchNumber boundary) const {
  KILOKV_CHECK(open_.contains(boundary));
  const auto it = keys_.find(key);
  if (it == keys_.end()) {
    return std::nullopt;
  }
  const std::span<const Image* const> images = std::span(it->second.images).subspan(it->second.freed);
  const auto is_after = [](BatchNumber at, const Image* image) { return at < image->batch; };
  const auto image = std::upper_bound(images.begin(), images.end(), boundary, is_after);
  return image == images.end() ? std::nullopt : std::optional((*image)->before);
}

Version SnapshotStore::drop_floor(Version wanted) const {
  return open_.empty() ? wanted : std::min(wanted, open_.begin()->second.version);
}

bool SnapshotStore::oldest_is_stale() const {
  return !images_.empty() && (open_.empty() || images_.front().batch <= open_.begin()->first);
}

void SnapshotStore::free_oldest() {
  const Image& image = images_.front();
  if (type_of(image.before.cell.tag) == ValueType::bytes) {
    release_(image.before.cell);
  }
  // The oldest image of all is the oldest of its key.
  const auto it = keys_.find(image.before.id);
  auto& [images, freed] = it->second;
  ++freed;
  if (freed == images.size()) {
    keys_.erase(it);
  } else if (2 * freed > images.size()) {
    images = std::vector(images.begin() + static_cast<std::ptrdiff_t>(freed), images.end());  // and its memory goes
    freed = 0;
  }
  bytes_ -= kImageBytes + image.value_bytes;
  images_.pop_front();
}

}  // namespace kilokv::server
