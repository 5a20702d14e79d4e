// The keys of the table in key order, for ranges. It holds sorted groups of sorted chunks of 32-bit key references
// (table/key_arena.hpp), each with a head of its key (table/sorted_keys.hpp). A key takes about 10 bytes, or 9 if keys
// come in order.
//
// A group has the first keys of its chunks, all but that of its first chunk, as separators. The root has the same of
// the groups. So the way to a chunk reads only separators.
//
// Each chunk and each group knows the newest version and the number of live records in it. A search for changed
// records, or for records that are not deleted, skips the chunks and groups that have none. Such a search looks at the
// groups, at the chunks of two groups, and at the keys of a few chunks, however many keys the range has. Each chunk
// also knows which of its keys are live, so a search for live records looks at no other. The index does not know the
// records: the record store reports writes (raise, set_live), and the versions of keys that a split moved.
//
// Invariants: a chunk holds the keys from its first key up to the next chunk's first key. A key before all of them goes
// to the first chunk. Only the first chunk may be empty. No group is empty. `live` is exact, and so are the masks.
// `newest` is the newest version of a record that is or was in it.
//
// Thread safety: none. Host only: ranges are resolved before a batch goes to a device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string_view>
#include <vector>

#include "engine/base/types.hpp"
#include "engine/table/key_arena.hpp"
#include "engine/table/live_mask.hpp"
#include "engine/table/sorted_keys.hpp"

namespace kilokv::engine {

// Counts over the records of a chunk or of a group.
struct RangeSummary {
  Version newest = 0;
  std::uint32_t live = 0;
};

// A key, and the chunk that it is in now.
struct KeyPlace {
  std::uint32_t key_ref, chunk;
};

class OrderedIndex {
 public:
  // The versions that raise() replaced.
  struct Newest {
    Version chunk, group;
  };

  // Requires: `keys` outlives the index.
  explicit OrderedIndex(const KeyArena* keys) : keys_(keys) {
    order_.push_back(new_group());
    groups_[order_.front()].chunks.push_back(new_chunk(order_.front()));
  }

  // Adds keys, all of them live or none. Puts the chunk of each into `chunks`, and the keys that went from a chunk to a
  // new one into `moved`. The caller then reports the versions of these to their new chunks (raise). Requires: the keys
  // are in key order, in the arena, and not in the index.
  void insert(std::span<const std::uint32_t> key_refs, bool live, std::uint32_t* chunks, std::vector<KeyPlace>* moved);
  // Removes a key. Requires: the key is in the index and still in the arena.
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
    masks_[chunk].set(chunks_[chunk].position_of(key_ref), live);
    count_live(chunk, static_cast<std::uint32_t>(live ? 1 : -1));
  }
  RangeSummary summary(std::uint32_t chunk) const { return {summaries_[chunk].newest, summaries_[chunk].live}; }
  std::span<const std::uint32_t> keys(std::uint32_t chunk) const { return chunks_[chunk].references(); }
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
  // The same from the last key to the first, for all keys and for those that are live.
  template <class F>
  void scan_reverse(std::string_view from, std::string_view to, const F& f) const {
    visit_reverse(
        from, to, [](RangeSummary) { return true; },
        [](std::uint32_t, std::size_t position) { return position == 0 ? LiveMask::kPositions : position - 1; }, f);
  }
  template <class F>
  void scan_live_reverse(std::string_view from, std::string_view to, const F& f) const {
    visit_reverse(
        from, to, [](RangeSummary of) { return of.live > 0; },
        [this](std::uint32_t chunk, std::size_t position) { return masks_[chunk].previous(position); }, f);
  }

  std::size_t memory_bytes() const;
  // About the same, in constant time. `keys`: how many the index holds.
  std::size_t memory_bytes_of(std::size_t keys) const {
    constexpr std::size_t kAllocation = 16;  // what an allocator adds to a chunk
    return keys * SortedKeys::kEntryBytes +
           chunks_.size() * (sizeof(SortedKeys) + sizeof(ChunkSummary) + sizeof(LiveMask) +
                             SortedKeys::kGrowth / 2 * SortedKeys::kEntryBytes + kAllocation + sizeof(std::uint32_t) +
                             SortedKeys::kEntryBytes);
  }

 private:
  // `next`: a function of a chunk and a position that gives the first position from there on that is of interest.
  template <class Wanted, class Next, class F>
  void visit(std::string_view from, std::string_view to, const Wanted& wanted, const Next& next, const F& f) const {
    if (!to.empty() && from >= to) return;
    const Place begin = locate(from), last = locate_end(to);
    for (std::size_t g = begin.group; g <= last.group; ++g) {
      const Group& group = groups_[order_[g]];
      if (!wanted(group.summary)) continue;
      const std::size_t end = g == last.group ? last.chunk + 1 : group.chunks.size();
      for (std::size_t c = g == begin.group ? begin.chunk : 0; c < end; ++c) {
        if (!wanted(summary(group.chunks[c]))) continue;
        const SortedKeys& chunk = chunks_[group.chunks[c]];
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

  // `previous`: a function of a chunk and a position that gives the last position before it that is of interest;
  // LiveMask::kPositions: there is none.
  template <class Wanted, class Previous, class F>
  void visit_reverse(std::string_view from, std::string_view to, const Wanted& wanted, const Previous& previous,
                     const F& f) const {
    if (!to.empty() && from >= to) return;
    const Place begin = locate(from), last = locate_end(to);
    for (std::size_t g = last.group + 1; g-- > begin.group;) {
      const Group& group = groups_[order_[g]];
      if (!wanted(group.summary)) continue;
      const std::size_t first = g == begin.group ? begin.chunk : 0;
      for (std::size_t c = g == last.group ? last.chunk + 1 : group.chunks.size(); c-- > first;) {
        const std::uint32_t number = group.chunks[c];
        if (!wanted(summary(number))) continue;
        const SortedKeys& chunk = chunks_[number];
        const std::size_t keys_begin = g == begin.group && c == begin.chunk ? lower_bound(chunk, from) : 0;
        const bool is_last = !to.empty() && g == last.group && c == last.chunk;
        const std::size_t keys_end = is_last ? lower_bound(chunk, to) : chunk.size();
        for (std::size_t i = previous(number, keys_end); i != LiveMask::kPositions && i >= keys_begin;
             i = previous(number, i)) {
          if (!f(chunk[i], keys_->view(chunk[i]))) return;
        }
      }
    }
  }

  struct ChunkSummary {  // kept apart from the chunk, because every write touches one
    Version newest = 0;
    std::uint32_t live = 0;
    std::uint32_t group = 0;
  };
  struct Group {
    std::vector<std::uint32_t> chunks;
    SortedKeys separators;  // first keys of the chunks, without the first chunk
    RangeSummary summary;
  };
  struct Place {
    std::size_t group, chunk;  // positions in order_ and in the group's chunks
    std::size_t shared;        // leading bytes that the key shares with the chunk's first key (SortedKeys::shared_with)
  };
  // New keys that go to the same chunk.
  struct Run {
    Place at;                  // `shared`: the least of all these keys
    std::uint32_t chunk;       // number
    std::uint32_t begin, end;  // positions among the new keys
    std::uint32_t position;    // of the first of them in the chunk
  };

  static constexpr std::size_t kChunkKeysMax = LiveMask::kPositions;
  static constexpr std::size_t kGroupChunksMax = 256;
  static constexpr std::uint32_t kOldLive = 0xFFFFFFFFu, kOld = kOldLive - 1;

  // The chunk that holds the key, or into which the key would go.
  Place locate(std::string_view key) const;
  Place locate(std::string_view key, std::size_t group) const;
  // The chunk that holds the last keys before `to`, or the chunk after it. Empty: the last chunk.
  Place locate_end(std::string_view to) const {
    return to.empty() ? Place{order_.size() - 1, groups_[order_.back()].chunks.size() - 1, 0} : locate(to);
  }
  // Position of the first key of the chunk that is not less than `key`.
  std::size_t lower_bound(const SortedKeys& chunk, std::string_view key) const {
    return chunk.lower_bound(chunk.seek(key, *keys_), *keys_);
  }
  void count_live(std::uint32_t chunk, std::uint32_t keys) {
    summaries_[chunk].live += keys;
    groups_[summaries_[chunk].group].summary.live += keys;
  }
  void find_runs(std::span<const std::uint32_t> key_refs);
  void prepare_run(std::span<const std::uint32_t> key_refs, std::size_t run);
  void add_run(std::span<const std::uint32_t> key_refs, bool live, const Run& run, std::uint32_t* chunks,
               std::vector<KeyPlace>* moved);
  bool merge_run(std::span<const std::uint32_t> key_refs, const Run& run);
  void spread_run(const Run& run, bool live, bool at_end, std::uint32_t* chunks, std::vector<KeyPlace>* moved);
  void replace_separator(Place at, std::uint32_t key_ref);
  std::uint32_t new_group();
  std::uint32_t new_chunk(std::uint32_t group);
  void split_group(std::size_t position);
  void remove_chunk(Place at);

  const KeyArena* keys_;
  std::deque<SortedKeys> chunks_;        // by number; a vector would take up to twice as much
  std::vector<ChunkSummary> summaries_;  // by number
  std::deque<LiveMask> masks_;           // by number; likewise
  std::vector<Group> groups_;            // by number
  std::vector<std::uint32_t> order_;     // of the groups
  SortedKeys separators_;                // first keys of the groups, without the first group
  std::vector<std::uint32_t> free_chunks_, free_groups_;
  // Of the insert() in progress: its runs, and a run merged with the keys of its chunk.
  std::vector<Run> runs_;
  std::vector<std::uint32_t> merged_refs_, merged_heads_;
  std::vector<std::uint32_t> merged_from_;  // position among the new keys, or kOld or kOldLive
};

}  // namespace kilokv::engine
