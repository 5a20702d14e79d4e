#include "engine/exec/collect_writes.hpp"

#include <algorithm>
#include <cstring>

#include "engine/table/blob_store.hpp"

namespace kilokv::engine {
namespace {

// Writes through raw pointers into columns that were sized for the worst case, and cuts them when done. The pointers
// are members, not looked up in the columns again after each store of a byte, which could have changed them for all
// that the compiler knows.
class Appender {
 public:
  Appender(const TransactionColumns& columns, const BatchResults& results, WriteColumns* writes)
      : columns_(columns), results_(results), writes_(writes) {
    const std::size_t writes_max = columns.op_kind.size() + results.pair_cell.size();
    writes->rank.resize(writes_max);
    writes->type.resize(writes_max);
    writes->word.resize(writes_max);
    writes->key_end.resize(writes_max);
    grow_keys(columns.key_bytes.size() + kKeySlackBytes);
    writes->value_end.clear();
    writes->value_bytes.clear();
    rank_ = writes->rank.data();
    type_ = writes->type.data();
    word_ = writes->word.data();
    key_end_ = writes->key_end.data();
  }
  ~Appender() {
    writes_->rank.resize(count_);
    writes_->type.resize(count_);
    writes_->word.resize(count_);
    writes_->key_end.resize(count_);
    writes_->key_bytes.resize(key_bytes_count_);
  }
  Appender(const Appender&) = delete;
  Appender& operator=(const Appender&) = delete;

  void transaction(std::uint32_t t) {
    if (results_.wrote[t] == 0) return;
    const bool in_else = results_.outcome[t] == static_cast<std::uint8_t>(Outcome::guard_failed);
    const std::uint32_t begin = in_else ? columns_.then_end[t] : columns_.then_begin(t);
    const std::uint32_t end = in_else ? columns_.else_end[t] : columns_.then_end[t];
    const std::uint32_t rank = results_.rank[t];
    for (std::uint32_t i = begin; i < end; ++i) {
      if ((results_.op_flags[i] & BatchResults::kWrote) == 0) continue;
      if (columns_.op_kind[i] == static_cast<std::uint8_t>(OpKind::delete_range)) {
        deleted_range(rank, columns_.op_key[i]);
      } else {
        add(rank, columns_.key(columns_.op_key[i]), results_.op_cell[i]);
      }
    }
  }

 private:
  static constexpr std::size_t kKeySlackBytes = 1024;

  void deleted_range(std::uint32_t rank, std::uint32_t range) {
    for (std::uint32_t i = results_.range_begin[range]; i < results_.range_end[range]; ++i) {
      add(rank, results_.pair_key(i), Cell{});
    }
  }

  void grow_keys(std::size_t room) {
    writes_->key_bytes.resize(std::max(writes_->key_bytes.size(), room));
    key_bytes_ = writes_->key_bytes.data();
    key_room_ = writes_->key_bytes.size();
  }

  void add(std::uint32_t rank, std::string_view key, Cell cell) {
    const ValueType type = type_of(cell.tag);
    rank_[count_] = rank;
    type_[count_] = static_cast<std::uint8_t>(type);
    word_[count_] = type == ValueType::integer ? static_cast<std::int64_t>(cell.word) : 0;
    if (key_bytes_count_ + key.size() > key_room_) [[unlikely]] {
      grow_keys(2 * key_room_ + key.size());
    }
    char* const to = key_bytes_ + key_bytes_count_;
    if (key.size() == 16) {
      std::memcpy(to, key.data(), 16);  // the usual size, inlined
    } else {
      std::memcpy(to, key.data(), key.size());
    }
    key_bytes_count_ += key.size();
    key_end_[count_++] = static_cast<std::uint32_t>(key_bytes_count_);
    if (type != ValueType::bytes) return;
    const std::string_view bytes = BlobStore::bytes(cell.word);
    writes_->value_bytes.insert(writes_->value_bytes.end(), bytes.begin(), bytes.end());
    writes_->value_end.push_back(static_cast<std::uint32_t>(writes_->value_bytes.size()));
  }

  const TransactionColumns& columns_;
  const BatchResults& results_;
  WriteColumns* const writes_;
  std::uint32_t* rank_;
  std::uint8_t* type_;
  std::int64_t* word_;
  std::uint32_t* key_end_;
  char* key_bytes_ = nullptr;
  std::size_t key_room_ = 0;
  std::size_t count_ = 0;
  std::size_t key_bytes_count_ = 0;
};

}  // namespace

void WriteCollector::collect(const TransactionColumns& columns, const BatchResults& results, bool in_order,
                             WriteColumns* writes) {
  const auto n = static_cast<std::uint32_t>(columns.size());
  if (!in_order) {
    by_rank_.assign(std::size_t{results.passes} * n, kNone);
    for (std::uint32_t t = 0; t < n; ++t) {
      if (results.wrote[t] != 0) by_rank_[results.rank[t]] = t;
    }
    by_rank_.erase(std::remove(by_rank_.begin(), by_rank_.end(), kNone), by_rank_.end());
  }
  const std::uint32_t* const by_rank = by_rank_.data();
  const std::size_t transactions = in_order ? n : by_rank_.size();
  Appender appender(columns, results, writes);
  for (std::uint32_t i = 0; i < transactions; ++i) appender.transaction(in_order ? i : by_rank[i]);
}

}  // namespace kilokv::engine
