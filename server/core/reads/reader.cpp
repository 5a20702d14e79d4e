#include "server/core/reads/reader.hpp"

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "engine/txn/validate.hpp"

namespace kilokv::server {
namespace {

// How many records a page may look at for each pair that it may have. Then it ends short, because deleted records take
// time too.
constexpr std::size_t kVisitedPerPair = 4;

// The most that a message takes for a page beside its pairs, and for a pair beside its key and value.
constexpr std::uint64_t kPageBytes = 256 + engine::kKeyBytesMax;
constexpr std::uint64_t kPairBytes = 48;

Status too_old(BatchNumber boundary) {
  return Status(StatusCode::aborted, ErrorReason::snapshot_too_old,
                "the snapshot at batch " + std::to_string(boundary) +
                    " is too old: its pages are no longer kept (--snapshot-age-max, "
                    "--snapshot-bytes-max); start the scan again");
}

ScanPage::Pair pair_of(const engine::Engine& engine, std::string_view key, Cell cell, TimeUs expires_us) {
  ScanPage::Pair pair{std::string(key), type_of(cell.tag), 0, {}, version_of(cell.tag), expires_us};
  if (pair.type == ValueType::integer) pair.integer = static_cast<std::int64_t>(cell.word);
  if (pair.type == ValueType::bytes) pair.bytes = engine.bytes_of(cell);
  return pair;
}

}  // namespace

Reader::Reader(const DatabaseOptions& options, const Environment& environment, engine::Engine* engine,
               const engine::KeyHashSecret& secret)
    : options_(options),
      environment_(environment),
      engine_(engine),
      secret_(secret),
      snapshots_(
          options.snapshot_bytes_max, options.snapshot_age_us_max,
          [engine](Cell cell) {
            engine->retain(cell);
            return engine->bytes_of(cell).size();
          },
          [engine](Cell cell) { engine->release(cell); }) {}

void Reader::record(BatchNumber batch) {
  std::span<const engine::BeforeImage> images;  // the engine builds them only on request
  if (snapshots_.open()) images = engine_->before_images();
  snapshots_.record(batch, images, environment_.clock->monotonic_us());
  image_bytes_.store(snapshots_.image_bytes(), std::memory_order_relaxed);
}

bool Reader::free_old(TimeUs now_us) {
  const std::uint64_t before = snapshots_.image_bytes();
  snapshots_.free_old(now_us);
  image_bytes_.store(snapshots_.image_bytes(), std::memory_order_relaxed);
  return snapshots_.image_bytes() != before;
}

void Reader::fill(const ScanRequest& request, bool older, ScanPage* page) const {
  const std::uint32_t limit =
      request.limit == 0 ? options_.scan_pairs_max : std::min(request.limit, options_.scan_pairs_max);
  const std::size_t visited_max = kVisitedPerPair * options_.scan_pairs_max;
  const std::uint64_t bytes_max = std::min(request.bytes_max, options_.scan_bytes_max);
  std::size_t visited = 0;
  std::uint64_t bytes = kPageBytes;
  std::string_view last;  // the last key that was passed, also one without a value
  const auto stop_at = [&](const engine::RecordView& record) {
    page->more = true;
    (request.reverse ? page->next_to : page->next_from) = request.reverse ? last : record.key;
    return false;
  };
  const auto visit = [&](const engine::RecordView& record) {
    if (++visited > visited_max) return stop_at(record);
    Cell cell = record.cell;
    TimeUs expires_us = record.expires_us;
    if (older) {
      const KeyId id = engine::hash_key(record.key, secret_);
      if (const auto image = snapshots_.image_at(id, page->boundary)) {
        cell = image->cell;
        expires_us = image->expires_us;
      }
    }
    if (type_of(cell.tag) == ValueType::absent) {
      last = record.key;
      return true;
    }
    bytes += kPairBytes + record.key.size();
    if (type_of(cell.tag) == ValueType::bytes) bytes += engine_->bytes_of(cell).size();
    if (page->pairs.size() == limit || (bytes > bytes_max && !page->pairs.empty())) return stop_at(record);
    page->pairs.push_back(pair_of(*engine_, record.key, cell, expires_us));
    last = record.key;
    return true;
  };
  request.reverse ? engine_->scan_reverse(request.from, request.to, visit)
                  : engine_->scan(request.from, request.to, visit);
}

Result<ScanPage> Reader::read(const ScanRequest& request, const Position& now) {
  ScanPage page;
  page.boundary = request.boundary.value_or(now.batch);
  page.reverse = request.reverse;
  page.boundary_version = now.next_version - 1;
  page.batch_time_us = now.time_us;
  const bool older = page.boundary != now.batch;
  if (older) {
    const SnapshotStore::Boundary* kept = snapshots_.find(page.boundary);
    if (kept == nullptr) return too_old(page.boundary);
    page.boundary_version = kept->version;
    page.batch_time_us = kept->time_us;
  }
  fill(request, older, &page);
  const bool goes_on = request.keep_boundary && page.more;
  if (goes_on && !request.boundary) {
    page.reader = environment_.random->next() | 1;  // not 0
    Status status = snapshots_.open(page.boundary, page.boundary_version, page.batch_time_us,
                                    environment_.clock->monotonic_us(), page.reader, request.client);
    if (!status.ok()) return status;
  } else if (goes_on) {
    page.reader = request.reader;
  } else {
    snapshots_.close(request.reader);
  }
  return page;
}

}  // namespace kilokv::server
