#include "engine/table/expiry_table.hpp"

#include <utility>

namespace kilokv::engine {

TimeUs ExpiryTable::set(KeyId id, TimeUs expires_us) {
  if (expires_us == 0 && empty()) return 0;
  const Entry** const link = link_of(id);
  const TimeUs before_us = *link == nullptr ? 0 : (*link)->expires_us;
  if (before_us == expires_us) return before_us;
  if (before_us != 0) hash_ -= expiry_digest(id, before_us);
  if (expires_us != 0) hash_ += expiry_digest(id, expires_us);
  if (before_us == 0) {
    add(id, expires_us);
  } else if (expires_us == 0) {
    remove(link);
  } else {
    move(*link, expires_us);
  }
  return before_us;
}

// What refers to the entry of the key. If there is no entry, it is the end of the bucket.
const ExpiryTable::Entry** ExpiryTable::link_of(KeyId id) {
  const Entry** link = &buckets_[bucket_of(id)];
  while (*link != nullptr && (*link)->id != id) link = &(*link)->next;
  return link;
}

void ExpiryTable::add(KeyId id, TimeUs expires_us) {
  const Entry& entry = *by_time_.insert({expires_us, id}).first;
  if (size() > buckets_.size()) split_a_bucket();
  const Entry*& first = buckets_[bucket_of(id)];
  entry.next = std::exchange(first, &entry);
}

// The node stays where it is, so its bucket need not know.
void ExpiryTable::move(const Entry* entry, TimeUs expires_us) {
  auto node = by_time_.extract(*entry);
  node.value().expires_us = expires_us;
  by_time_.insert(std::move(node));
}

void ExpiryTable::remove(const Entry** link) {
  const Entry* const entry = *link;
  *link = entry->next;
  by_time_.erase(*entry);
  while (size() < buckets_.size() / 2) merge_a_bucket();  // at most two, because each call of set() does so
}

void ExpiryTable::split_a_bucket() {
  const std::size_t added = buckets_.size();
  buckets_.push_back(nullptr);
  const Entry** link = &buckets_[parent_of(added)];
  while (*link != nullptr) {
    const Entry* const entry = *link;
    if (bucket_of(entry->id) == added) {
      *link = entry->next;
      entry->next = std::exchange(buckets_.back(), entry);
    } else {
      link = &entry->next;
    }
  }
}

void ExpiryTable::merge_a_bucket() {
  const Entry** link = &buckets_[parent_of(buckets_.size() - 1)];
  while (*link != nullptr) link = &(*link)->next;
  *link = buckets_.back();
  buckets_.pop_back();
}

Wide ExpiryTable::compute_hash() const {
  Wide sum = 0;
  for (const Entry& entry : by_time_) sum += expiry_digest(entry.id, entry.expires_us);
  return sum;
}

}  // namespace kilokv::engine
