#include "engine/table/ordered_index.hpp"

#include <algorithm>

#include "engine/base/check.hpp"

namespace kilokv::engine {
namespace {

template <class T>
auto at_position(std::vector<T>& items, std::size_t position) {
  return items.begin() + static_cast<std::ptrdiff_t>(position);
}

std::uint32_t take_last(std::vector<std::uint32_t>* numbers) {
  const std::uint32_t last = numbers->back();
  numbers->pop_back();
  return last;
}

// Moves the items at position `keep` and after it to another vector.
std::vector<std::uint32_t> cut(std::vector<std::uint32_t>* items, std::size_t keep) {
  std::vector<std::uint32_t> upper(at_position(*items, keep), items->end());
  items->resize(keep);
  return upper;
}

}  // namespace

OrderedIndex::Place OrderedIndex::locate(std::string_view key) const {
  const auto group = std::upper_bound(order_.begin() + 1, order_.end(), key, [this](std::string_view k, auto g) {
    return k < first_key(groups_[g].chunks.front());
  });
  const std::vector<std::uint32_t>& chunks = groups_[*std::prev(group)].chunks;
  const auto chunk = std::upper_bound(chunks.begin() + 1, chunks.end(), key,
                                      [this](std::string_view k, auto c) { return k < first_key(c); });
  return {static_cast<std::size_t>(group - order_.begin()) - 1, static_cast<std::size_t>(chunk - chunks.begin()) - 1};
}

std::size_t OrderedIndex::lower_bound(const Chunk& chunk, std::string_view key) const {
  const auto less = [this](std::uint32_t ref, std::string_view bound) { return keys_->view(ref) < bound; };
  return static_cast<std::size_t>(std::lower_bound(chunk.begin(), chunk.end(), key, less) - chunk.begin());
}

std::uint32_t OrderedIndex::new_group() {
  if (!free_groups_.empty()) return take_last(&free_groups_);
  groups_.emplace_back();
  return static_cast<std::uint32_t>(groups_.size() - 1);
}

std::uint32_t OrderedIndex::new_chunk(std::uint32_t group) {
  if (free_chunks_.empty()) {
    free_chunks_.push_back(static_cast<std::uint32_t>(chunks_.size()));
    chunks_.emplace_back();
    summaries_.emplace_back();
    masks_.emplace_back();
  }
  const std::uint32_t chunk = take_last(&free_chunks_);
  summaries_[chunk] = {0, 0, group};
  masks_[chunk] = {};
  return chunk;
}

// If chunks come in order, the group that is split stays full: only its last chunk moves.
void OrderedIndex::split_group(std::size_t position) {
  const std::uint32_t upper = new_group();  // moves the groups
  Group& full = groups_[order_[position]];
  const bool at_end = position + 1 == order_.size();
  groups_[upper].chunks = cut(&full.chunks, at_end ? full.chunks.size() - 1 : full.chunks.size() / 2);
  order_.insert(at_position(order_, position + 1), upper);
  for (const std::uint32_t group : {order_[position], upper}) {
    groups_[group].summary = {};
    for (const std::uint32_t chunk : groups_[group].chunks) {
      summaries_[chunk].group = group;
      groups_[group].summary.newest = std::max(groups_[group].summary.newest, summaries_[chunk].newest);
      groups_[group].summary.live += summaries_[chunk].live;
    }
  }
}

// The keys at position `keep` and after it go to a new chunk, which follows this one in its group.
std::uint32_t OrderedIndex::split_chunk(Place at, std::size_t keep) {
  const std::uint32_t added = new_chunk(order_[at.group]);
  Group& group = groups_[order_[at.group]];
  const std::uint32_t split = group.chunks[at.chunk];
  Chunk& full = chunks_[split];
  chunks_[added] = cut(&full, keep);
  masks_[added] = masks_[split].cut(keep);
  summaries_[added].live = masks_[added].count();
  summaries_[split].live -= summaries_[added].live;
  if (keep < kChunkKeysMax - 1) full.shrink_to_fit();
  group.chunks.insert(at_position(group.chunks, at.chunk + 1), added);
  return added;
}

OrderedIndex::Inserted OrderedIndex::insert(std::uint32_t key_ref) {
  const std::string_view key = keys_->view(key_ref);
  Place at = locate(key);
  if (chunks_[groups_[order_[at.group]].chunks[at.chunk]].size() == kChunkKeysMax &&
      groups_[order_[at.group]].chunks.size() == kGroupChunksMax) {
    split_group(at.group);
    at = locate(key);
  }
  const std::uint32_t chunk = groups_[order_[at.group]].chunks[at.chunk];
  Inserted inserted{chunk};
  std::size_t position = lower_bound(chunks_[chunk], key);
  if (chunks_[chunk].size() == kChunkKeysMax) {
    // If keys come in order, the chunk that is split stays full but for one key.
    const std::size_t keep = position == kChunkKeysMax ? kChunkKeysMax - 1 : kChunkKeysMax / 2;
    const std::uint32_t added = split_chunk(at, keep);
    inserted = {position > keep ? added : chunk, chunk, added};
    if (position > keep) position -= keep;
  }
  Chunk& keys = chunks_[inserted.chunk];
  if (keys.size() == keys.capacity()) keys.reserve(std::min(keys.size() + kChunkGrowth, kChunkKeysMax));
  keys.insert(at_position(keys, position), key_ref);
  masks_[inserted.chunk].insert(position);
  return inserted;
}

void OrderedIndex::erase(std::uint32_t key_ref) {
  const std::string_view key = keys_->view(key_ref);
  const Place at = locate(key);
  const std::uint32_t number = groups_[order_[at.group]].chunks[at.chunk];
  Chunk& chunk = chunks_[number];
  const std::size_t position = lower_bound(chunk, key);
  KILOKV_CHECK(position < chunk.size() && chunk[position] == key_ref && !masks_[number].has(position));
  masks_[number].erase(position);
  chunk.erase(at_position(chunk, position));
  if (chunk.empty() && at.group + at.chunk > 0) remove_chunk(at);
}

void OrderedIndex::remove_chunk(Place at) {
  Group& group = groups_[order_[at.group]];
  const auto removed = at_position(group.chunks, at.chunk);
  chunks_[*removed] = Chunk();  // assigning {} would keep its memory
  free_chunks_.push_back(*removed);
  group.chunks.erase(removed);
  if (!group.chunks.empty()) return;
  group = {};
  free_groups_.push_back(order_[at.group]);
  order_.erase(at_position(order_, at.group));
}

std::size_t OrderedIndex::memory_bytes() const {
  std::size_t bytes = chunks_.size() * sizeof(Chunk) + summaries_.capacity() * sizeof(ChunkSummary) +
                      masks_.size() * sizeof(LiveMask) + groups_.capacity() * sizeof(Group) +
                      (order_.capacity() + free_chunks_.capacity() + free_groups_.capacity()) * sizeof(std::uint32_t);
  for (const Chunk& chunk : chunks_) bytes += chunk.capacity() * sizeof(std::uint32_t);
  for (const Group& group : groups_) bytes += group.chunks.capacity() * sizeof(std::uint32_t);
  return bytes;
}

}  // namespace kilokv::engine
