#include "engine/table/expiry_table.hpp"

namespace kilokv::engine {

TimeUs ExpiryTable::set(KeyId id, TimeUs expires_us) {
  if (expires_us == 0 && of_key_.empty()) return 0;
  const auto found = of_key_.find(id);
  const TimeUs before_us = found == of_key_.end() ? 0 : found->second;
  if (before_us == expires_us) return before_us;
  if (before_us != 0) {
    by_time_.erase({before_us, id});
    hash_ -= expiry_digest(id, before_us);
  }
  if (expires_us != 0) {
    by_time_.insert({expires_us, id});
    hash_ += expiry_digest(id, expires_us);
  }
  if (expires_us == 0) {
    of_key_.erase(found);
  } else if (before_us != 0) {
    found->second = expires_us;
  } else {
    of_key_.emplace(id, expires_us);
  }
  return before_us;
}

Wide ExpiryTable::compute_hash() const {
  Wide sum = 0;
  for (const auto& [id, expires_us] : of_key_) sum += expiry_digest(id, expires_us);
  return sum;
}

}  // namespace kilokv::engine
