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
    const OperationRange ran = operations_run(columns_, results_, t);
    const std::uint32_t rank = results_.rank[t];
    for (std::uint32_t i = ran.begin; i < ran.end; ++i) {
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

void collect_writes(const TransactionColumns& columns, const BatchResults& results, const RankOrder& order,
                    WriteColumns* writes) {
  Appender appender(columns, results, writes);
  order.for_each(results, [&](std::uint32_t t) { appender.transaction(t); });
}

}  // namespace kilokv::engine
