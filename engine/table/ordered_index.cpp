#include "engine/table/ordered_index.hpp"

#include "engine/base/check.hpp"

namespace kilokv::engine {

std::size_t OrderedIndex::lower_bound(const Chunk& chunk, std::string_view key) const {
  const auto less = [this](std::uint32_t ref, std::string_view bound) { return keys_->view(ref) < bound; };
  return static_cast<std::size_t>(std::lower_bound(chunk.begin(), chunk.end(), key, less) - chunk.begin());
}

// Splits a full chunk so that a key fits at `position`; returns the half that gets it. Keys that come in order leave
// full chunks behind.
OrderedIndex::Chunks::iterator OrderedIndex::split(Chunks::iterator chunk, std::size_t position) {
  Chunk& full = chunk->second;
  const std::size_t keep = position == full.size() ? full.size() - 1 : full.size() / 2;
  Chunk upper(full.begin() + static_cast<std::ptrdiff_t>(keep), full.end());
  full.resize(keep);
  if (keep < kChunkKeysMax - 1) full.shrink_to_fit();
  const auto added = chunks_.emplace_hint(std::next(chunk), keys_->view(upper.front()), std::move(upper));
  return position > keep ? added : chunk;
}

void OrderedIndex::insert(std::uint32_t key_ref) {
  const std::string_view key = keys_->view(key_ref);
  auto chunk = std::prev(chunks_.upper_bound(key));
  std::size_t position = lower_bound(chunk->second, key);
  if (chunk->second.size() == kChunkKeysMax) {
    chunk = split(chunk, position);
    position = lower_bound(chunk->second, key);
  }
  chunk->second.insert(chunk->second.begin() + static_cast<std::ptrdiff_t>(position), key_ref);
}

void OrderedIndex::erase(std::uint32_t key_ref) {
  const std::string_view key = keys_->view(key_ref);
  const auto chunk = std::prev(chunks_.upper_bound(key));
  const std::size_t position = lower_bound(chunk->second, key);
  KILOKV_CHECK(position < chunk->second.size() && chunk->second[position] == key_ref);
  chunk->second.erase(chunk->second.begin() + static_cast<std::ptrdiff_t>(position));
  if (chunk->first.data() != key.data()) return;
  // The bound is this key's view, which dies with it: take the next key's, or drop the empty chunk.
  auto node = chunks_.extract(chunk);
  if (node.mapped().empty()) return;
  node.key() = keys_->view(node.mapped().front());
  chunks_.insert(std::move(node));
}

std::size_t OrderedIndex::memory_bytes() const {
  constexpr std::size_t kNodeBytes = sizeof(Chunks::value_type) + 4 * sizeof(void*) + 2 * sizeof(void*);
  std::size_t bytes = 0;
  for (const auto& [bound, chunk] : chunks_) bytes += kNodeBytes + chunk.capacity() * sizeof(std::uint32_t);
  return bytes;
}

}  // namespace kilokv::engine
