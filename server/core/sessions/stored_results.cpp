// Layout, version 1. v: LEB128 varint of 64 bits; z: zigzag varint of a signed difference or integer.
//
//   slice:  version 1 byte | transactions v | batch v | batch time z | rows | end 1 byte: 128
//   row:    head 1 byte | fields by head and extension | items
//     head: bits 0-2 outcome | 8 index skips: skip v | 16 wrote | 32 admitted batch changes: z | 64 extension byte
//     extension: 1 cancelled | 2 failed: failed_in 1 byte, failed_index v | 4 version base changes: z
//     then the rank, z of the difference to the row before. Index, rank, admitted batch and version base start as
//     -1, 0, batch, 0; the version is base + rank, so the base is the same for a whole batch.
//   item:   tag 1 byte, whose bit 7 is set where a head's is not | fields by tag
//     tag:  bits 0-1 kind: 1 reads dropped (no fields; first item if at all), 2 guard value, 3 read |
//           bits 2-3 value type | 16 has version
//     then  operation v (read only) | key bytes v, key | integer z, or value bytes v, value | version v
#include "server/core/sessions/stored_results.hpp"

#include <algorithm>
#include <limits>
#include <optional>

#include "engine/base/check.hpp"

namespace kilokv::server {
namespace {

using engine::FailedIn;
using engine::kNone;
using engine::Outcome;

constexpr char kFormatVersion = 1;

constexpr std::uint8_t kOutcomeMask = 7, kIndexSkips = 8, kWrote = 16, kAdmittedChanges = 32, kExtended = 64;
constexpr std::uint8_t kCancelled = 1, kFailed = 2, kBaseChanges = 4, kExtensionMask = 7;
constexpr std::uint8_t kEnd = 128, kItem = 128, kItemKindMask = 3, kItemVersion = 16, kItemMask = 0x9F;
constexpr int kItemTypeShift = 2;
enum class ItemKind : std::uint8_t { reads_dropped = 1, guard_value = 2, read = 3 };

constexpr std::uint64_t zigzag(std::uint64_t difference) { return difference << 1 ^ (0 - (difference >> 63)); }
constexpr std::uint64_t unzigzag(std::uint64_t coded) { return coded >> 1 ^ (0 - (coded & 1)); }

void put_varint(std::uint64_t value, std::string* out) {
  while (value >= 0x80) {
    out->push_back(static_cast<char>(value | 0x80));
    value >>= 7;
  }
  out->push_back(static_cast<char>(value));
}

void put_bytes(std::string_view bytes, std::string* out) {
  put_varint(bytes.size(), out);
  out->append(bytes);
}

// The values that a row is coded against: those of the row before it.
struct RowContext {
  std::uint64_t next_index = 0;
  std::uint64_t rank = 0;
  BatchNumber admitted_batch = 0;
  std::uint64_t version_base = 0;
};

class Encoder : public ResultVisitor {
 public:
  Encoder(std::uint32_t size, std::uint64_t result_bytes_max, std::uint64_t* read_bytes, std::string* out)
      : size_(size), result_bytes_max_(result_bytes_max), read_bytes_(read_bytes), out_(out) {}

  void transaction(const TransactionResult& result) override {
    end_items();
    if (seen_++ == 0) {
      begin(result.batch, result.batch_time_us);
    }
    KILOKV_CHECK(result.batch == batch_ && result.index >= row_.next_index);
    put_row(result);
    items_begin_ = out_->size();
    item_bytes_max_ = std::min(result_bytes_max_, *read_bytes_);
    dropped_ = false;
    if (result.reads_dropped) {
      drop_items();
    }
  }

  void guard_value(const ReadValue& value) override { put_item(ItemKind::guard_value, 0, value); }
  void read(std::uint32_t operation, const ReadValue& value) override { put_item(ItemKind::read, operation, value); }

  void finish() {
    KILOKV_CHECK(seen_ == size_);
    end_items();
    if (size_ == 0) {
      begin(0, 0);
    }
    out_->push_back(static_cast<char>(kEnd));
  }

 private:
  void end_items() {
    if (seen_ > 0 && !dropped_) *read_bytes_ -= out_->size() - items_begin_;
  }

  void begin(BatchNumber batch, TimeUs time_us) {
    out_->push_back(kFormatVersion);
    put_varint(size_, out_);
    put_varint(batch, out_);
    put_varint(zigzag(static_cast<std::uint64_t>(time_us)), out_);
    batch_ = batch;
    row_.admitted_batch = batch;
  }

  void put_row(const TransactionResult& result) {
    const std::uint64_t base = result.version ? *result.version - result.rank : row_.version_base;
    const bool failed = result.failed_in != FailedIn::none || result.failed_index != kNone;
    const std::uint8_t extension = static_cast<std::uint8_t>(
        (result.cancelled ? kCancelled : 0) | (failed ? kFailed : 0) | (base != row_.version_base ? kBaseChanges : 0));
    const std::uint8_t head = static_cast<std::uint8_t>(
        static_cast<std::uint8_t>(result.outcome) | (result.index != row_.next_index ? kIndexSkips : 0) |
        (result.version ? kWrote : 0) | (result.admitted_batch != row_.admitted_batch ? kAdmittedChanges : 0) |
        (extension != 0 ? kExtended : 0));
    out_->push_back(static_cast<char>(head));
    if ((head & kIndexSkips) != 0) {
      put_varint(result.index - row_.next_index, out_);
    }
    if ((head & kAdmittedChanges) != 0) {
      put_varint(zigzag(result.admitted_batch - row_.admitted_batch), out_);
    }
    if (extension != 0) {
      out_->push_back(static_cast<char>(extension));
      if (failed) {
        out_->push_back(static_cast<char>(result.failed_in));
        put_varint(result.failed_index, out_);
      }
      if ((extension & kBaseChanges) != 0) {
        put_varint(zigzag(base - row_.version_base), out_);
      }
    }
    put_varint(zigzag(result.rank - row_.rank), out_);
    row_ = {result.index + std::uint64_t{1}, result.rank, result.admitted_batch, base};
  }

  void put_item(ItemKind kind, std::uint32_t operation, const ReadValue& value) {
    if (dropped_) {
      return;
    }
    // Checked before the append, so that a large value is not copied for nothing.
    if (out_->size() - items_begin_ + value.key.size() + value.bytes.size() > item_bytes_max_) {
      drop_items();
      return;
    }
    out_->push_back(static_cast<char>(kItem | static_cast<std::uint8_t>(kind) |
                                      static_cast<std::uint8_t>(value.type) << kItemTypeShift |
                                      (value.version ? kItemVersion : 0)));
    if (kind == ItemKind::read) {
      put_varint(operation, out_);
    }
    put_bytes(value.key, out_);
    if (value.type == ValueType::integer) {
      put_varint(zigzag(static_cast<std::uint64_t>(value.integer)), out_);
    } else if (value.type == ValueType::bytes) {
      put_bytes(value.bytes, out_);
    }
    if (value.version) {
      put_varint(*value.version, out_);
    }
    if (out_->size() - items_begin_ > item_bytes_max_) {
      drop_items();
    }
  }

  void drop_items() {
    out_->resize(items_begin_);
    out_->push_back(static_cast<char>(kItem | static_cast<std::uint8_t>(ItemKind::reads_dropped)));
    dropped_ = true;
  }

  const std::uint32_t size_;
  const std::uint64_t result_bytes_max_;
  std::uint64_t* const read_bytes_;
  std::string* out_;
  std::uint32_t seen_ = 0;
  BatchNumber batch_ = 0;
  RowContext row_;
  std::size_t items_begin_ = 0;
  std::uint64_t item_bytes_max_ = 0;  // for the current transaction
  bool dropped_ = false;
};

// Reads from bytes that may be anything. After the first read out of bounds, ok() is false and every read returns 0.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  bool ok() const { return ok_; }
  bool at_end() const { return place_ == bytes_.size(); }
  bool at_item() const { return (peek() & kItem) != 0 && peek() != kEnd; }
  std::uint8_t peek() const { return at_end() ? 0 : static_cast<std::uint8_t>(bytes_[place_]); }

  std::uint8_t byte() { return require(place_ < bytes_.size()) ? static_cast<std::uint8_t>(bytes_[place_++]) : 0; }

  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const std::uint8_t next = byte();
      value |= static_cast<std::uint64_t>(next & 0x7F) << shift;
      if (next < 0x80) {
        require(shift < 63 || next <= 1);
        return value;
      }
    }
    require(false);
    return 0;
  }

  // A varint of at most `max`.
  std::uint32_t varint32(std::uint32_t max = std::numeric_limits<std::uint32_t>::max()) {
    const std::uint64_t value = varint();
    return require(value <= max) ? static_cast<std::uint32_t>(value) : 0;
  }

  std::string_view bytes() {
    const std::uint64_t length = varint();
    if (!require(length <= bytes_.size() - place_)) {
      return {};
    }
    const std::string_view found = bytes_.substr(place_, length);
    place_ += length;
    return found;
  }

  bool require(bool condition) {
    if (!condition) {
      ok_ = false;
      place_ = bytes_.size();
    }
    return ok_;
  }

 private:
  std::string_view bytes_;
  std::size_t place_ = 0;
  bool ok_ = true;
};

struct SliceHeader {
  std::uint32_t size = 0;
  BatchNumber batch = 0;
  TimeUs time_us = 0;
};

SliceHeader read_header(Reader* reader) {
  SliceHeader header;
  reader->require(reader->byte() == static_cast<std::uint8_t>(kFormatVersion));
  header.size = reader->varint32();
  header.batch = reader->varint();
  header.time_us = static_cast<TimeUs>(unzigzag(reader->varint()));
  return header;
}

void read_extension(Reader* reader, TransactionResult* result, RowContext* row) {
  const std::uint8_t extension = reader->byte();
  reader->require((extension & ~kExtensionMask) == 0);
  result->cancelled = (extension & kCancelled) != 0;
  if ((extension & kFailed) != 0) {
    const std::uint8_t failed_in = reader->byte();
    reader->require(failed_in <= static_cast<std::uint8_t>(FailedIn::else_ops));
    result->failed_in = static_cast<FailedIn>(failed_in);
    result->failed_index = reader->varint32();
  }
  if ((extension & kBaseChanges) != 0) {
    row->version_base += unzigzag(reader->varint());
  }
}

TransactionResult read_row(Reader* reader, const SliceHeader& header, RowContext* row) {
  TransactionResult result;
  result.batch = header.batch;
  result.batch_time_us = header.time_us;
  const std::uint8_t head = reader->byte();
  reader->require((head & kItem) == 0);
  result.outcome = static_cast<Outcome>(head & kOutcomeMask);
  const std::uint64_t index = row->next_index + ((head & kIndexSkips) != 0 ? reader->varint32() : 0);
  reader->require(index < kNone);
  result.index = static_cast<std::uint32_t>(index);
  if ((head & kAdmittedChanges) != 0) {
    row->admitted_batch += unzigzag(reader->varint());
  }
  if ((head & kExtended) != 0) {
    read_extension(reader, &result, row);
  }
  reader->require(result.outcome != Outcome::postponed && (result.outcome == Outcome::undecided) == result.cancelled);
  row->rank += unzigzag(reader->varint());
  reader->require(row->rank <= std::numeric_limits<std::uint32_t>::max());
  row->next_index = index + 1;
  result.rank = static_cast<std::uint32_t>(row->rank);
  result.admitted_batch = row->admitted_batch;
  if ((head & kWrote) != 0) {
    result.version = row->version_base + row->rank;
  }
  if (reader->peek() == (kItem | static_cast<std::uint8_t>(ItemKind::reads_dropped))) {
    reader->byte();
    result.reads_dropped = true;
  }
  return result;
}

void read_item(Reader* reader, ResultVisitor* visitor) {
  const std::uint8_t tag = reader->byte();
  const auto kind = static_cast<ItemKind>(tag & kItemKindMask);
  const auto type = static_cast<ValueType>(tag >> kItemTypeShift & 3);
  reader->require((tag & ~(kItemMask)) == 0 && (kind == ItemKind::guard_value || kind == ItemKind::read) &&
                  type <= ValueType::bytes);
  const std::uint32_t operation = kind == ItemKind::read ? reader->varint32() : 0;
  ReadValue value;
  value.type = type;
  value.key = reader->bytes();
  if (type == ValueType::integer) {
    value.integer = static_cast<std::int64_t>(unzigzag(reader->varint()));
  } else if (type == ValueType::bytes) {
    value.bytes = reader->bytes();
  }
  if ((tag & kItemVersion) != 0) {
    value.version = reader->varint();
  }
  if (!reader->ok()) {
    return;
  }
  if (kind == ItemKind::guard_value) {
    visitor->guard_value(value);
  } else {
    visitor->read(operation, value);
  }
}

// Shows the visitor everything that can be read. Returns false if the bytes are not a complete, well-formed slice.
bool decode(std::string_view bytes, SliceHeader* header, ResultVisitor* visitor) {
  Reader reader(bytes);
  *header = read_header(&reader);
  RowContext row;
  row.admitted_batch = header->batch;
  for (std::uint32_t i = 0; i < header->size && reader.ok(); ++i) {
    const TransactionResult result = read_row(&reader, *header, &row);
    if (!reader.ok()) {
      return false;
    }
    // A transaction whose reads were dropped has no other item.
    if (!reader.require(!result.reads_dropped || !reader.at_item())) {
      return false;
    }
    visitor->transaction(result);
    while (reader.at_item()) {
      read_item(&reader, visitor);
    }
  }
  return reader.byte() == kEnd && reader.ok() && reader.at_end();
}

class NullVisitor : public ResultVisitor {
 public:
  void transaction(const TransactionResult& /*result*/) override {}
  void guard_value(const ReadValue& /*value*/) override {}
  void read(std::uint32_t /*operation*/, const ReadValue& /*value*/) override {}
};

}  // namespace

void encode_results(const ResultSlice& slice, std::uint64_t result_bytes_max, std::uint64_t* read_bytes,
                    std::string* out) {
  Encoder encoder(slice.size(), result_bytes_max, read_bytes, out);
  slice.visit(&encoder);
  encoder.finish();
}

Result<StoredSlice> StoredSlice::parse(StoredBytes bytes) {
  SliceHeader header;
  NullVisitor visitor;
  if (!decode(*bytes, &header, &visitor)) {
    return Status(StatusCode::data_loss, "stored results of " + std::to_string(bytes->size()) +
                                             " bytes are not in the format that this version reads");
  }
  return StoredSlice(std::move(bytes), header.size, header.batch);
}

StoredSlice StoredSlice::of_checked(StoredBytes bytes) {
  Reader reader(*bytes);
  const SliceHeader header = read_header(&reader);
  KILOKV_CHECK(reader.ok());
  return StoredSlice(std::move(bytes), header.size, header.batch);
}

void StoredSlice::visit(ResultVisitor* visitor) const {
  SliceHeader header;
  KILOKV_CHECK(decode(*bytes_, &header, visitor));
}

}  // namespace kilokv::server
