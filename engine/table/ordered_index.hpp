// The keys of the table in key order, for ranges. Sorted chunks of 32-bit key references (table/key_arena.hpp), in
// sorted groups of chunks: about 6 bytes a key, 5 when keys come in order.
//
// Each chunk and each group knows the newest version and the number of live records under it, so that who looks for
// what changed, or for what is not deleted, passes over the rest: a look at the groups, at the chunks of two of them,
// and at the keys of few chunks, however many keys a range has. The records are not known here: the record store says
// what is written (raise, add_live) and counts a chunk anew after it was split (summarize).
//
// Invariants: a chunk holds the keys from its first one up to the next chunk's first; what is before all of them goes
// to the first chunk, which alone may be empty. No group is empty. `live` is exact. `newest` is that of the records, or
// of one that was erased. Not thread-safe. Host only: ranges are resolved before a batch goes to a device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

#include "engine/base/types.hpp"
#include "engine/table/key_arena.hpp"

namespace kilokv::engine {

// Of the records of a chunk or a group.
struct RangeSummary {
  Version newest = 0;
  std::uint32_t live = 0;
};

class OrderedIndex {
 public:
  static constexpr std::uint32_t kNoChunk = std::numeric_limits<std::uint32_t>::max();
  // The chunk that a key went to. If that was full, some of the keys of `split` moved to the new chunk `added`, and the
  // summaries of both are to be replaced.
  struct Inserted {
    std::uint32_t chunk;
    std::uint32_t split = kNoChunk, added = kNoChunk;
  };
  // What raise() replaced.
  struct Newest {
    Version chunk, group;
  };

  // `keys` must outlive it.
  explicit OrderedIndex(const KeyArena* keys) : keys_(keys) {
    order_.push_back(new_group());
    groups_[order_.front()].chunks.push_back(new_chunk(order_.front()));
  }

  // The key counts as never written. Requires: it is in the arena and not in the index.
  Inserted insert(std::uint32_t key_ref);
  // Requires: the key is in the index and still in the arena, and not live.
  void erase(std::uint32_t key_ref);

  // A record of the chunk has this version now.
  void raise(std::uint32_t chunk, Version version) {
    ChunkSummary& of_chunk = summaries_[chunk];
    if (of_chunk.newest < version) of_chunk.newest = version;
    RangeSummary& of_group = groups_[of_chunk.group].summary;
    if (of_group.newest < version) of_group.newest = version;
  }
  // Takes back what was raised since newest() gave this.
  Newest newest(std::uint32_t chunk) const {
    return {summaries_[chunk].newest, groups_[summaries_[chunk].group].summary.newest};
  }
  void restore(std::uint32_t chunk, Newest newest) {
    summaries_[chunk].newest = newest.chunk;
    groups_[summaries_[chunk].group].summary.newest = newest.group;
  }
  // A record of the chunk became live (1) or ceased to be (-1).
  void add_live(std::uint32_t chunk, int one) {
    summaries_[chunk].live += static_cast<std::uint32_t>(one);
    groups_[summaries_[chunk].group].summary.live += static_cast<std::uint32_t>(one);
  }
  RangeSummary summary(std::uint32_t chunk) const { return {summaries_[chunk].newest, summaries_[chunk].live}; }
  // Replaces a chunk's summary after a split: its group's is that of the same keys as before.
  void summarize(std::uint32_t chunk, RangeSummary summary) {
    summaries_[chunk].newest = summary.newest;
    summaries_[chunk].live = summary.live;
  }
  std::span<const std::uint32_t> keys(std::uint32_t chunk) const { return chunks_[chunk]; }

  // Calls f(key_ref, key) for the keys of [from, to) in order until it returns false, but for those in chunks whose
  // summary is not `wanted`. `to` empty: no upper bound. f must not change the index; it may raise() and add_live().
  template <class Wanted, class F>
  void scan(std::string_view from, std::string_view to, const Wanted& wanted, const F& f) const {
    if (!to.empty() && from >= to) return;
    const Place begin = locate(from);
    const Place last = to.empty() ? Place{order_.size() - 1, groups_[order_.back()].chunks.size() - 1} : locate(to);
    for (std::size_t g = begin.group; g <= last.group; ++g) {
      const Group& group = groups_[order_[g]];
      if (!wanted(group.summary)) continue;
      const std::size_t end = g == last.group ? last.chunk + 1 : group.chunks.size();
      for (std::size_t c = g == begin.group ? begin.chunk : 0; c < end; ++c) {
        if (!wanted(summary(group.chunks[c]))) continue;
        const Chunk& chunk = chunks_[group.chunks[c]];
        const bool is_first = g == begin.group && c == begin.chunk;
        const bool is_last = !to.empty() && g == last.group && c == last.chunk;
        const std::size_t keys_end = is_last ? lower_bound(chunk, to) : chunk.size();
        for (std::size_t i = is_first ? lower_bound(chunk, from) : 0; i < keys_end; ++i) {
          if (!f(chunk[i], keys_->view(chunk[i]))) return;
        }
      }
    }
  }

  std::size_t memory_bytes() const;

 private:
  using Chunk = std::vector<std::uint32_t>;
  struct ChunkSummary {  // apart from the chunk: every write touches one
    Version newest = 0;
    std::uint32_t live = 0;
    std::uint32_t group = 0;
  };
  struct Group {
    std::vector<std::uint32_t> chunks;
    RangeSummary summary;
  };
  struct Place {
    std::size_t group, chunk;  // positions in order_ and in the group's chunks
  };

  static constexpr std::size_t kChunkKeysMax = 128;
  static constexpr std::size_t kGroupChunksMax = 256;
  static constexpr std::size_t kChunkGrowth = 8;  // keys

  std::string_view first_key(std::uint32_t chunk) const { return keys_->view(chunks_[chunk].front()); }
  // The chunk that has the key, or would have it.
  Place locate(std::string_view key) const;
  // Position of the first key of the chunk that is not less than `key`.
  std::size_t lower_bound(const Chunk& chunk, std::string_view key) const;
  std::uint32_t new_group();
  std::uint32_t new_chunk(std::uint32_t group);
  void split_group(std::size_t position);
  std::uint32_t split_chunk(Place at, std::size_t keep);
  void remove_chunk(Place at);

  const KeyArena* keys_;
  std::vector<Chunk> chunks_;            // by number
  std::vector<ChunkSummary> summaries_;  // by number
  std::vector<Group> groups_;            // by number
  std::vector<std::uint32_t> order_;     // of the groups
  std::vector<std::uint32_t> free_chunks_, free_groups_;
};

}  // namespace kilokv::engine
