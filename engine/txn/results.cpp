#include "engine/txn/results.hpp"

namespace kilokv::engine {

BatchResults::BatchResults(std::pmr::memory_resource* memory)
    : outcome(memory),
      failed_in(memory),
      failed_index(memory),
      rank(memory),
      wrote(memory),
      guard_cell(memory),
      op_cell(memory),
      op_flags(memory),
      range_begin(memory),
      range_end(memory),
      pair_key_end(memory),
      pair_key_bytes(memory),
      pair_cell(memory),
      pair_flags(memory) {}

void BatchResults::reset(const TransactionColumns& columns) {
  const std::size_t n = columns.size();
  // A strategy writes these columns for every transaction, and for the operations of the list that ran. So only the
  // outcome has to be cleared.
  outcome.assign(n, 0);
  failed_in.resize(n);
  failed_index.resize(n);
  rank.resize(n);
  wrote.resize(n);
  guard_cell.resize(n);
  op_cell.resize(columns.op_kind.size());
  op_flags.resize(columns.op_kind.size());
  range_begin.assign(columns.range_limit.size(), 0);
  range_end.assign(columns.range_limit.size(), 0);
  pair_key_end.clear();
  pair_key_bytes.clear();
  pair_cell.clear();
  pair_flags.clear();
  passes = 0;
  next_version = 1;
}

std::string_view BatchResults::pair_key(std::size_t i) const {
  const std::uint32_t begin = i == 0 ? 0 : pair_key_end[i - 1];
  return {pair_key_bytes.data() + begin, pair_key_end[i] - begin};
}

WriteColumns::WriteColumns(std::pmr::memory_resource* memory)
    : rank(memory),
      type(memory),
      word(memory),
      key_end(memory),
      key_bytes(memory),
      value_end(memory),
      value_bytes(memory),
      expiry_write(memory),
      expires_us(memory) {}

void WriteColumns::clear() {
  rank.clear();
  type.clear();
  word.clear();
  key_end.clear();
  key_bytes.clear();
  value_end.clear();
  value_bytes.clear();
  expiry_write.clear();
  expires_us.clear();
}

std::string_view WriteColumns::key(std::size_t i) const {
  const std::uint32_t begin = i == 0 ? 0 : key_end[i - 1];
  return {key_bytes.data() + begin, key_end[i] - begin};
}

}  // namespace kilokv::engine
