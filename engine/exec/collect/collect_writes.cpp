#include "engine/exec/collect/collect_writes.hpp"

#include <algorithm>
#include <cstring>

#include "engine/table/blob_store.hpp"

namespace kilokv::engine {
namespace {

// How much of the columns is filled. It is passed by value, so that it stays in registers. If it had an address, the
// compiler would have to assume that a store to the bytes of a key changes it.
struct Filled {
  std::size_t writes = 0, key_bytes = 0;
};

// Appends writes through raw pointers to columns that have the size of the worst case. end() cuts them to their size.
class Appender {
 public:
  Appender(const TransactionColumns& columns, const BatchResults& results, WriteColumns* writes)
      : columns_(columns),
        results_(results),
        op_flags_(results.op_flags.data()),
        op_kind_(columns.op_kind.data()),
        op_key_(columns.op_key.data()),
        op_cell_(results.op_cell.data()),
        writes_(writes) {
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
  Appender(const Appender&) = delete;
  Appender& operator=(const Appender&) = delete;

  Filled transaction(Filled filled, std::uint32_t t) {
    const OperationRange ran = operations_run(columns_, results_, t);
    const std::uint32_t rank = results_.rank[t];
    for (std::uint32_t i = ran.begin; i < ran.end; ++i) {
      if ((op_flags_[i] & BatchResults::kWrote) == 0) continue;
      if (op_kind_[i] == static_cast<std::uint8_t>(OpKind::delete_range)) [[unlikely]] {
        filled = deleted_range(filled, rank, op_key_[i]);
      } else {
        filled = add(filled, rank, columns_.key(op_key_[i]), op_cell_[i]);
      }
    }
    return filled;
  }
  void end(Filled filled) {
    writes_->rank.resize(filled.writes);
    writes_->type.resize(filled.writes);
    writes_->word.resize(filled.writes);
    writes_->key_end.resize(filled.writes);
    writes_->key_bytes.resize(filled.key_bytes);
  }

 private:
  static constexpr std::size_t kKeySlackBytes = 1024;

  [[gnu::noinline]] Filled deleted_range(Filled filled, std::uint32_t rank, std::uint32_t range) {
    for (std::uint32_t i = results_.range_begin[range]; i < results_.range_end[range]; ++i) {
      filled = add(filled, rank, results_.pair_key(i), Cell{});
    }
    return filled;
  }

  [[gnu::noinline]] void grow_keys(std::size_t room) {
    writes_->key_bytes.resize(std::max(writes_->key_bytes.size(), room));
    key_bytes_ = writes_->key_bytes.data();
    key_room_ = writes_->key_bytes.size();
  }

  [[gnu::noinline]] void add_value(Cell cell) {
    const std::string_view bytes = BlobStore::bytes(cell.word);
    writes_->value_bytes.insert(writes_->value_bytes.end(), bytes.begin(), bytes.end());
    writes_->value_end.push_back(static_cast<std::uint32_t>(writes_->value_bytes.size()));
  }

  Filled add(Filled filled, std::uint32_t rank, std::string_view key, Cell cell) {
    const ValueType type = type_of(cell.tag);
    rank_[filled.writes] = rank;
    type_[filled.writes] = static_cast<std::uint8_t>(type);
    word_[filled.writes] = type == ValueType::integer ? static_cast<std::int64_t>(cell.word) : 0;
    if (filled.key_bytes + key.size() > key_room_) [[unlikely]] {
      grow_keys(2 * key_room_ + key.size());
    }
    char* const to = key_bytes_ + filled.key_bytes;
    if (key.size() == 16) {
      std::memcpy(to, key.data(), 16);  // the usual size: the compiler inlines this copy
    } else {
      std::memcpy(to, key.data(), key.size());
    }
    filled.key_bytes += key.size();
    key_end_[filled.writes++] = static_cast<std::uint32_t>(filled.key_bytes);
    if (type == ValueType::bytes) add_value(cell);
    return filled;
  }

  const TransactionColumns& columns_;
  const BatchResults& results_;
  const std::uint8_t *const op_flags_, *const op_kind_;
  const std::uint32_t* const op_key_;
  const Cell* const op_cell_;
  WriteColumns* const writes_;
  std::uint32_t* rank_;
  std::uint8_t* type_;
  std::int64_t* word_;
  std::uint32_t* key_end_;
  char* key_bytes_ = nullptr;
  std::size_t key_room_ = 0;
};

}  // namespace

void collect_writes(const TransactionColumns& columns, const BatchResults& results, const RankOrder& order,
                    WriteColumns* writes) {
  Appender appender(columns, results, writes);
  Filled filled;
  order.for_each(results, [&](std::uint32_t t) { filled = appender.transaction(filled, t); });
  appender.end(filled);
}

}  // namespace kilokv::engine
