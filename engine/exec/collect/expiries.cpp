#include "engine/exec/collect/expiries.hpp"

#include "engine/txn/kinds.hpp"

namespace kilokv::engine {

// A batch without an expiry, on a store without one, costs nothing.
void BatchExpiries::settle(const BatchWrites& writes, RecordStore* store, WriteColumns* collected) {
  before_.clear();
  collected->expiry_write.clear();
  collected->expires_us.clear();
  const TransactionColumns& columns = *writes.columns;
  ExpiryTable* const expiries = store->expiries();
  if (expiries->empty() && columns.expiry_op.empty()) return;
  expiry_of_op_.assign(columns.op_kind.size(), kNone);
  for (std::uint32_t i = 0; i < columns.expiry_op.size(); ++i) expiry_of_op_[columns.expiry_op[i]] = i;
  std::uint32_t write = 0;
  const auto set = [&](KeyId id, TimeUs expires_us) {
    const TimeUs before_us = expiries->set(id, expires_us);
    if (before_us != expires_us) before_.try_emplace(id, before_us);
    if (expires_us != 0) {
      collected->expiry_write.push_back(write);
      collected->expires_us.push_back(expires_us);
    }
    ++write;
  };
  writes.for_each(store->table(), [&](std::uint32_t op, KeyId id, Cell, Cell after) {
    if (type_of(after.tag) == ValueType::absent) return set(id, 0);
    if (const std::uint32_t i = expiry_of_op_[op]; i != kNone) {
      const auto kind = static_cast<Expiry>(columns.expiry_kind[i]);
      return set(id, time_of_expiry(kind, columns.expiry_us[i], writes.header.time_us));
    }
    const bool keeps = static_cast<OpKind>(columns.op_kind[op]) == OpKind::add;
    set(id, keeps ? expiries->find(id) : 0);
  });
}

TimeUs BatchExpiries::before(KeyId id, const RecordStore& store) const {
  const auto found = before_.find(id);
  return found != before_.end() ? found->second : store.expiries().find(id);
}

}  // namespace kilokv::engine
