// The keys of the table in key order, for ranges. It holds sorted groups of sorted chunks of 32-bit key references
// (table/key_arena.hpp). A key takes about 6 bytes, or 5 if keys come in order.
//
// Each chunk and each group knows the newest version and the number of live records in it. A search for changed
// records, or for records that are not deleted, skips the chunks and groups that have none. Such a search looks at the
// groups, at the chunks of two groups, and at the keys of a few chunks, however many keys the range has. Each chunk
// also knows which of its keys are live, so a search for live records looks at no other. The index does not know the
// records: the record store reports writes (raise, set_live), and looks for the newest version again after a split
// (summarize).
//
// Invariants: a chunk holds the keys from its first key up to the next chunk's first key. A key before all of them goes
// to the first chunk. Only the first chunk may be empty. No group is empty. `live` is exact, and so are the masks.
// `newest` is the newest version of a record in it, or of a record that was erased.
//
// Thread safety: none. Host only: ranges are resolved before a batch goes to a device.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

#include "engine/base/types.hpp"
#include "engine/table/key_arena.hpp"
#include "engine/table/live_mask.hpp"

namespace kilokv::engine {

// Counts over the records of a chunk or of a group.
struct RangeSummary {
  Version newest = 0;
  std::uint32_t live = 0;
};

class OrderedIndex {
 public:
  static constexpr std::uint32_t kNoChunk = std::numeric_limits<std::uint32_t>::max();
  // The chunk that a key went to. If that chunk was full, some keys of `split` moved to the new chunk `added`. The
  // caller then replaces the newest versions of both (summarize).
  struct Inserted {
    std::uint32_t chunk;
    std::uint32_t split = kNoChunk, added = kNoChunk;
  };
  // The versions that raise() replaced.
  struct Newest {
    Version chunk, group;
  };

  // Requires: `keys` outlives the index.
  explicit OrderedIndex(const KeyArena* keys) : keys_(keys) {
    order_.push_back(new_group());
    groups_[order_.front()].chunks.push_back(new_chunk(order_.front()));
  }

  // Adds a key. The key counts as never written. Requires: it is in the arena and not in the index.
  Inserted insert(std::uint32_t key_ref);
  // Removes a key. Requires: the key is in the index, still in the arena, and not live.
  void erase(std::uint32_t key_ref);

  // A record of the chunk now has this version.
  void raise(std::uint32_t chunk, Version version) {
    ChunkSummary& of_chunk = summaries_[chunk];
    if (of_chunk.newest < version) of_chunk.newest = version;
    RangeSummary& of_group = groups_[of_chunk.group].summary;
    if (of_group.newest < version) of_group.newest = version;
  }
  // The versions now, for restore(), which takes back every raise() that came after this call.
  Newest newest(std::uint32_t chunk) const {
    return {summaries_[chunk].newest, groups_[summaries_[chunk].group].summary.newest};
  }
  void restore(std::uint32_t chunk, Newest newest) {
    summaries_[chunk].newest = newest.chunk;
    groups_[summaries_[chunk].group].summary.newest = newest.group;
  }
  // A record of the chunk became live, or is no longer live. Requires: it was not as it is now, and its key is there.
  void set_live(std::uint32_t chunk, std::uint32_t key_ref, bool live) {
    const Chunk& keys = chunks_[chunk];
    masks_[chunk].set(static_cast<std::size_t>(std::find(keys.begin(), keys.end(), key_ref) - keys.begin()), live);
    const auto one = static_cast<std::uint32_t>(live ? 1 : -1);
    summaries_[chunk].live += one;
    groups_[summaries_[chunk].group].summary.live += one;
  }
  RangeSummary summary(std::uint32_t chunk) const { return {summaries_[chunk].newest, summaries_[chunk].live}; }
  // Replaces a chunk's newest version after a split. The group's summary stays, because the group holds the same keys
  // as before.
  void summarize(std::uint32_t chunk, Version newest) { summaries_[chunk].newest = newest; }
  std::span<const std::uint32_t> keys(std::uint32_t chunk) const { return chunks_[chunk]; }
  // All chunks have lower numbers. A number that no chunk has stands for a chunk without keys.
  std::uint32_t chunk_numbers() const { return static_cast<std::uint32_t>(chunks_.size()); }

  // Calls f(key_ref, key) for the keys of [from, to) in order, until f returns false. It skips chunks and groups whose
  // summary is not `wanted`. An empty `to` means no upper bound. f must not change the index, but it may call raise()
  // and set_live().
  template <class Wanted, class F>
  void scan(std::string_view from, std::string_view to, const Wanted& wanted, const F& f) const {
    visit(
        from, to, wanted, [](std::uint32_t, std::size_t position) { return position; }, f);
  }
  // The same for the keys that are live.
  template <class F>
  void scan_live(std::string_view from, std::string_view to, const F& f) const {
    visit(
        from, to, [](RangeSummary of) { return of.live > 0; },
        [this](std::uint32_t chunk, std::size_t position) { return masks_[chunk].next(position); }, f);
  }

  std::size_t memory_bytes() const;
  // About the same, in constant time. `keys`: how many the index holds.
  std::size_t memory_bytes_of(std::size_t keys) const {
    constexpr std::size_t kAllocation = 16;  // what an allocator adds to a chunk
    return keys * sizeof(std::uint32_t) +
           chunks_.size() * (sizeof(Chunk) + sizeof(ChunkSummary) + sizeof(LiveMask) +
                             kChunkGrowth / 2 * sizeof(std::uint32_t) + kAllocation + sizeof(std::uint32_t));
  }

 private:
  // `next`: a function of a chunk and a position that gives the first position from there on that is of interest.
  template <class Wanted, class Next, class F>
  void visit(std::string_view from, std::string_view to, const Wanted& wanted, const Next& next, const F& f) const {
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
        const std::uint32_t number = group.chunks[c];
        for (std::size_t i = next(number, is_first ? lower_bound(chunk, from) : 0); i < keys_end;
             i = next(number, i + 1)) {
          if (!f(chunk[i], keys_->view(chunk[i]))) return;
        }
      }
    }
  }

  using Chunk = std::vector<std::uint32_t>;
  struct ChunkSummary {  // kept apart from the chunk, because every write touches one
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

  static constexpr std::size_t kChunkKeysMax = LiveMask::kPositions;
  static constexpr std::size_t kGroupChunksMax = 256;
  static constexpr std::size_t kChunkGrowth = 8;  // keys

  std::string_view first_key(std::uint32_t chunk) const { return keys_->view(chunks_[chunk].front()); }
  // The chunk that holds the key, or into which the key would go.
  Place locate(std::string_view key) const;
  // Position of the first key of the chunk that is not less than `key`.
  std::size_t lower_bound(const Chunk& chunk, std::string_view key) const;
  std::uint32_t new_group();
  std::uint32_t new_chunk(std::uint32_t group);
  void split_group(std::size_t position);
  std::uint32_t split_chunk(Place at, std::size_t keep);
  void remove_chunk(Place at);

  const KeyArena* keys_;
  std::deque<Chunk> chunks_;             // by number; a vector would take up to twice as much
  std::vector<ChunkSummary> summaries_;  // by number
  std::deque<LiveMask> masks_;           // by number; likewise
  std::vector<Group> groups_;            // by number
  std::vector<std::uint32_t> order_;     // of the groups
  std::vector<std::uint32_t> free_chunks_, free_groups_;
};

}  // namespace kilokv::engine
