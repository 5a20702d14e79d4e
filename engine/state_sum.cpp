#include "engine/state_sum.hpp"

#include "engine/table/blob_store.hpp"
#include "engine/table/state_hash.hpp"

namespace kilokv::engine {

Hash128 StateSum::share(std::string_view key, Version version, ValueType type, std::int64_t integer,
                        std::string_view bytes, TimeUs expires_us) const {
  Hash128 content;
  if (type == ValueType::bytes) content = BlobStore::hash_of(bytes);
  if (type == ValueType::integer) content.low = static_cast<std::uint64_t>(integer);
  const KeyId id = hash_key(key, secret_);
  const Wide expiry = expires_us == 0 ? Wide{0} : expiry_digest(id, expires_us);
  return from_wide(record_digest(id, make_tag(version, type), content) + expiry);
}

void StateSum::add(const Hash128& share) { sum_ = from_wide(to_wide(sum_) + to_wide(share)); }

}  // namespace kilokv::engine
