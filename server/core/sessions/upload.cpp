#include "server/core/sessions/upload.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "engine/base/check.hpp"

namespace kilokv::server {
namespace {

using engine::Column;
using engine::GuardKind;
using engine::kNone;
using engine::OnFalse;
using engine::TransactionColumns;

constexpr std::uint64_t kUploadBytes = 2048;  // what even an empty upload takes
// The bytes of a key beside its own: id, end, and its guard's kind, on_false, key, other key and operand.
constexpr std::uint64_t kKeyBytes = sizeof(KeyId) + 4 + 1 + 1 + 4 + 4 + 8;

// Grows the column by a quarter only, because room that a column has and does not use is not counted.
template <class T>
void make_room(Column<T>* column, std::size_t more) {
  const std::size_t needed = column->size() + more;
  if (needed > column->capacity()) column->reserve(std::max(needed, column->size() + column->size() / 4));
}

void make_room(TransactionColumns* c, std::size_t keys, std::size_t key_bytes, std::size_t guards) {
  make_room(&c->key_id, keys), make_room(&c->key_end, keys), make_room(&c->key_bytes, key_bytes);
  make_room(&c->guard_kind, guards), make_room(&c->guard_on_false, guards), make_room(&c->guard_key, guards);
  make_room(&c->guard_other, guards), make_room(&c->guard_operand, guards);
}

// The read set as a whole can never be committed.
Status too_large(const UploadLimits& limits, std::uint64_t limit, std::uint64_t actual) {
  const char* setting = limit == limits.session_uploads_bytes_max ? "--session-uploads-bytes-max"
                        : limit == limits.uploads_bytes_max       ? "--uploads-bytes-max"
                                                                  : "--queue-bytes-max";
  return Status::invalid({"keys", std::to_string(limit) + " bytes of one read set in memory",
                          std::to_string(actual) + " bytes with this chunk", setting});
}

}  // namespace

Status missing_upload(std::uint64_t number, std::uint64_t needed, std::uint64_t there) {
  return Status(StatusCode::failed_precondition, ErrorReason::upload_missing,
                "uploaded_keys: request number " + std::to_string(number) + " has " + std::to_string(there) +
                    " uploaded keys, not " + std::to_string(needed) + ": upload the read set again");
}

Upload::Upload(const UploadLimits& limits, UploadCounts* of_all, std::shared_ptr<UploadCounts> of_session,
               SessionOwner owner, TimeUs now_us)
    : limits_(limits),
      of_all_(of_all),
      of_session_(std::move(of_session)),
      owner_(std::move(owner)),
      touched_us_(now_us) {
  of_all_->uploads.fetch_add(1, std::memory_order_relaxed);
  of_session_->uploads.fetch_add(1, std::memory_order_relaxed);
}

Upload::~Upload() {
  of_all_->uploads.fetch_sub(1, std::memory_order_relaxed);
  of_session_->uploads.fetch_sub(1, std::memory_order_relaxed);
  of_all_->bytes.release(owner_.account(&Client::upload_bytes), bytes_);
  of_session_->bytes.release(nullptr, bytes_);
}

void Upload::touch(TimeUs now_us) { touched_us_.store(now_us, std::memory_order_relaxed); }
TimeUs Upload::idle_from_us() const { return touched_us_.load(std::memory_order_relaxed) + limits_.upload_idle_us_max; }

Result<std::uint64_t> Upload::append(const ReadSetChunk& chunk, const engine::KeyHashSecret& secret) {
  const std::scoped_lock lock(mutex_);
  const std::uint64_t there = completed_ ? 0 : keys();
  if (completed_ || chunk.offset > there) {
    return Status(StatusCode::failed_precondition, ErrorReason::upload_missing,
                  "offset: " + std::to_string(chunk.offset) + " keys before these, but request number " +
                      std::to_string(chunk.identity.number) + " has " + std::to_string(there) +
                      " uploaded keys: go on from there, or upload the read set again");
  }
  const std::uint64_t repeated = std::min<std::uint64_t>(there - chunk.offset, chunk.keys.size());
  if (!holds(chunk, repeated)) {
    return Status(StatusCode::invalid_argument,
                  "keys: those that were uploaded at offset " + std::to_string(chunk.offset) + " of request number " +
                      std::to_string(chunk.identity.number) + " have other content: a retry must be the same")
        .because(ErrorReason::content_differs);
  }
  if (repeated == chunk.keys.size()) return there;
  if (Status status = charge(chunk, repeated); !status.ok()) return status;
  add(chunk, repeated, secret);
  return keys();
}

// Whether the first `count` keys of the chunk are the same as the keys that are there.
bool Upload::holds(const ReadSetChunk& chunk, std::uint64_t count) const {
  for (std::uint64_t i = 0; i < count; ++i) {
    if (columns_.guard_operand[chunk.offset + i] != static_cast<std::int64_t>(chunk.versions[i]) ||
        columns_.key(chunk.offset + i) != chunk.keys[i]) {
      return false;
    }
  }
  return true;
}

Status Upload::charge(const ReadSetChunk& chunk, std::uint64_t skipped) {
  const std::uint64_t keys_after = keys() + chunk.keys.size() - skipped;
  if (keys_after > limits_.read_set_keys_max) {
    return Status::invalid({"keys", std::to_string(limits_.read_set_keys_max) + " keys in one read set",
                            std::to_string(keys_after) + " keys with this chunk", "--read-set-keys-max"});
  }
  std::uint64_t bytes = (chunk.keys.size() - skipped) * kKeyBytes + (bytes_ == 0 ? kUploadBytes : 0);
  for (std::uint64_t i = skipped; i < chunk.keys.size(); ++i) bytes += chunk.keys[i].size();
  const std::uint64_t most =
      std::min({limits_.session_uploads_bytes_max, limits_.uploads_bytes_max, limits_.queue_bytes_max});
  if (bytes_ + bytes > most) return too_large(limits_, most, bytes_ + bytes);
  Status status = of_session_->bytes.charge(nullptr, bytes);
  if (!status.ok()) return status;
  status = of_all_->bytes.charge(owner_.account(&Client::upload_bytes), bytes);
  if (!status.ok()) {
    of_session_->bytes.release(nullptr, bytes);
    return status;
  }
  bytes_ += bytes;
  return {};
}

void Upload::add(const ReadSetChunk& chunk, std::uint64_t skipped, const engine::KeyHashSecret& secret) {
  TransactionColumns& c = columns_;
  const std::size_t count = chunk.keys.size() - skipped, first = c.guard_kind.size();
  std::size_t key_bytes = 0;
  for (std::size_t i = skipped; i < chunk.keys.size(); ++i) key_bytes += chunk.keys[i].size();
  make_room(&c, count, key_bytes, count);
  c.guard_kind.resize(first + count, static_cast<std::uint8_t>(GuardKind::version_equal));
  c.guard_on_false.resize(first + count, static_cast<std::uint8_t>(OnFalse::fail));
  c.guard_other.resize(first + count, kNone);
  for (std::size_t i = skipped; i < chunk.keys.size(); ++i) {
    const std::string_view key = chunk.keys[i];
    c.guard_key.push_back(static_cast<std::uint32_t>(c.key_end.size()));
    c.guard_operand.push_back(static_cast<std::int64_t>(chunk.versions[i]));
    c.key_id.push_back(engine::hash_key(key, secret));
    c.key_bytes.insert(c.key_bytes.end(), key.begin(), key.end());
    c.key_end.push_back(static_cast<std::uint32_t>(c.key_bytes.size()));
  }
  keys_.store(first + count, std::memory_order_release);
}

bool Upload::complete(std::uint64_t keys, TransactionColumns* transaction) {
  const std::scoped_lock lock(mutex_);
  if (completed_ || keys != this->keys()) return false;
  KILOKV_CHECK(transaction->size() == 1);
  completed_ = true;
  const TransactionColumns& t = *transaction;  // without this, append() would grow the columns to twice their size
  make_room(&columns_, t.key_id.size(), t.key_bytes.size(), t.guard_kind.size());
  columns_.append(t, 0, 1);  // its guards now begin with those of the upload, which have no transaction of their own
  *transaction = std::move(columns_);
  columns_.clear();
  return true;
}

void Upload::reclaim(TransactionColumns* transaction) {
  const std::scoped_lock lock(mutex_);
  KILOKV_CHECK(completed_ && transaction->guard_kind.size() >= keys());
  TransactionColumns& c = columns_;
  c = std::move(*transaction);
  transaction->clear();
  c.precedence.clear(), c.wait_timeout_us.clear(), c.expire_runs_else.clear();
  c.guard_end.clear(), c.then_end.clear(), c.else_end.clear();
  c.key_id.resize(keys()), c.key_end.resize(keys()), c.key_bytes.resize(c.key_end.empty() ? 0 : c.key_end.back());
  c.guard_kind.resize(keys()), c.guard_on_false.resize(keys()), c.guard_key.resize(keys());
  c.guard_other.resize(keys()), c.guard_operand.resize(keys());
  c.op_kind.clear(), c.op_operand.clear(), c.op_key.clear(), c.op_value.clear();
  c.range_from_end.clear(), c.range_to_end.clear(), c.range_limit.clear(), c.range_bytes.clear();
  c.value_end.clear(), c.value_bytes.clear();
  completed_ = false;
}

}  // namespace kilokv::server
