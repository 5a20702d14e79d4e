#include "engine/state_sum.hpp"

#include "engine/table/blob_store.hpp"
#include "engine/table/state_hash.hpp"

namespace kilokv::engine {

Hash128 StateSum::share(std::string_view key, Version version, ValueType type, std::int64_t integer,
                        std::string_view bytes) const {
  Hash128 content;
  if (type == ValueType::bytes) content = BlobStore::hash_of(bytes);
  if (type == ValueType::integer) content.low = static_cast<std::uint64_t>(integer);
  return from_wide(record_digest(hash_key(key, secret_), make_tag(version, type), content));
}

void StateSum::add(const Hash128& share) { sum_ = from_wide(to_wide(sum_) + to_wide(share)); }

}  // namespace kilokv::engine
