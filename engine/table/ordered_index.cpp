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

// In how many equal parts so many items go, if a part should have room for more. A part has at most `most` items.
std::size_t parts_of(std::size_t items, std::size_t most) { return (items + most * 3 / 4 - 1) / (most * 3 / 4); }

}  // namespace

OrderedIndex::Place OrderedIndex::locate(std::string_view key) const {
  return locate(key, separators_.upper_bound(separators_.seek(key, *keys_), *keys_));
}

OrderedIndex::Place OrderedIndex::locate(std::string_view key, std::size_t g) const {
  const Group& group = groups_[order_[g]];
  const SortedKeys::Sought sought = group.separators.seek(key, *keys_);
  const std::size_t c = group.separators.upper_bound(sought, *keys_);
  if (c > 0) return {g, c, group.separators.shared_with(sought, c - 1, *keys_)};
  const SortedKeys& first = chunks_[group.chunks.front()];
  return {g, c, first.empty() ? 0 : SortedKeys::shared_bytes(key, keys_->view(first[0]))};
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
  const bool at_end = position + 1 == order_.size();
  for (; groups_[order_[position]].chunks.size() > kGroupChunksMax; ++position) {
    const std::uint32_t upper = new_group();  // moves the groups
    Group& full = groups_[order_[position]];
    const std::size_t size = full.chunks.size();
    const std::size_t keep = at_end ? kGroupChunksMax - 1 : size / parts_of(size, kGroupChunksMax);
    groups_[upper].chunks = cut(&full.chunks, keep);
    groups_[upper].separators = full.separators.cut(keep, *keys_);
    separators_.insert(position, full.separators[keep - 1], *keys_);
    full.separators.erase(keep - 1);
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
}

// Adds the runs from the last to the first, so that chunks that are added leave the places of the others as they are. A
// group may have too many chunks until all of its runs are there.
void OrderedIndex::insert(std::span<const std::uint32_t> key_refs, bool live, std::uint32_t* chunks,
                          std::vector<KeyPlace>* moved) {
  find_runs(key_refs);
  constexpr std::size_t kPreparedAhead = 4;
  std::size_t not_prepared = runs_.size();
  for (std::size_t i = runs_.size(); i-- > 0;) {
    for (; not_prepared > 0 && not_prepared + kPreparedAhead > i; --not_prepared)
      prepare_run(key_refs, not_prepared - 1);
    const Run& run = runs_[i];
    add_run(key_refs, live, run, chunks, moved);
    if (i == 0 || runs_[i - 1].at.group != run.at.group) split_group(run.at.group);
  }
}

void OrderedIndex::find_runs(std::span<const std::uint32_t> key_refs) {
  runs_.clear();
  Place at{};
  std::string_view group_end;  // the first key of the next group; empty: there is none, or no group was looked at yet
  for (std::uint32_t k = 0; k < key_refs.size(); ++k) {
    const std::string_view key = keys_->view(key_refs[k]);
    const std::size_t chunk = at.chunk, group = at.group;
    if (k == 0 || (!group_end.empty() && key >= group_end)) {
      at = locate(key);
      group_end = at.group < separators_.size() ? keys_->view(separators_[at.group]) : std::string_view();
    } else {
      at = locate(key, group);
    }
    if (k > 0 && at.group == group && at.chunk == chunk) {
      Run& run = runs_.back();
      run.at.shared = std::min(run.at.shared, at.shared);
      run.end = k + 1;
    } else {
      runs_.push_back({at, groups_[order_[at.group]].chunks[at.chunk], k, k + 1, 0});
    }
  }
}

// Finds the place of the run's first key in its chunk. The runs that come next need memory that is far away, so their
// chunks are asked for in the order in which they need it: first where the keys are, then heads, then what an insert
// moves.
void OrderedIndex::prepare_run(std::span<const std::uint32_t> key_refs, std::size_t run) {
  constexpr std::size_t kChunksAhead = 16, kHeadsAhead = 8;
  if (run >= kChunksAhead) {
    const std::uint32_t chunk = runs_[run - kChunksAhead].chunk;
    prefetch_for_write(&chunks_[chunk]);
    prefetch_for_write(&masks_[chunk]);
    prefetch_for_write(&summaries_[chunk]);
  }
  if (run >= kHeadsAhead) chunks_[runs_[run - kHeadsAhead].chunk].prefetch_heads();
  SortedKeys& keys = chunks_[runs_[run].chunk];
  keys.limit_prefix(runs_[run].at.shared, *keys_);
  const SortedKeys::Sought first = keys.seek_with_prefix(keys_->view(key_refs[runs_[run].begin]));
  runs_[run].position = static_cast<std::uint32_t>(keys.lower_bound(first, *keys_));
  keys.prefetch_refs(runs_[run].position);
}

void OrderedIndex::add_run(std::span<const std::uint32_t> key_refs, bool live, const Run& run, std::uint32_t* chunks,
                           std::vector<KeyPlace>* moved) {
  if (live) count_live(run.chunk, run.end - run.begin);
  SortedKeys& keys = chunks_[run.chunk];
  if (keys.empty() || keys.size() + run.end - run.begin > kChunkKeysMax) {
    const bool at_end = merge_run(key_refs, run);
    return spread_run(run, live, at_end, chunks, moved);
  }
  for (std::uint32_t k = run.begin; k < run.end; ++k) {
    const SortedKeys::Sought key = keys.seek_with_prefix(keys_->view(key_refs[k]));
    const std::size_t position = k == run.begin ? run.position : keys.lower_bound(key, *keys_);
    keys.insert(position, key_refs[k], key.head, kChunkKeysMax);
    masks_[run.chunk].insert(position);
    masks_[run.chunk].set(position, live);
    chunks[k] = run.chunk;
  }
}

// Merges the run with the keys of its chunk. Returns whether all of its keys come after those of the chunk.
bool OrderedIndex::merge_run(std::span<const std::uint32_t> key_refs, const Run& run) {
  const SortedKeys& keys = chunks_[run.chunk];
  merged_refs_.clear();
  merged_heads_.clear();
  merged_from_.clear();
  const auto add = [this](std::uint32_t ref, std::uint32_t head, std::uint32_t from) {
    merged_refs_.push_back(ref);
    merged_heads_.push_back(head);
    merged_from_.push_back(from);
  };
  std::size_t old = 0;
  const auto add_old = [&](std::size_t end) {
    for (; old < end; ++old) add(keys[old], keys.head(old), masks_[run.chunk].has(old) ? kOldLive : kOld);
  };
  bool at_end = false;
  for (std::uint32_t k = run.begin; k < run.end; ++k) {
    const SortedKeys::Sought key = keys.seek_with_prefix(keys_->view(key_refs[k]));
    add_old(keys.lower_bound(key, *keys_));
    if (k == run.begin) at_end = old == keys.size();
    add(key_refs[k], key.head, k);
  }
  add_old(keys.size());
  return at_end;
}

// Spreads the merged keys over the run's chunk and new chunks after it. If keys come in order, the chunks stay full but
// for one key each.
void OrderedIndex::spread_run(const Run& run, bool live, bool at_end, std::uint32_t* chunks,
                              std::vector<KeyPlace>* moved) {
  const std::span<const std::uint32_t> refs(merged_refs_), heads(merged_heads_);
  const std::size_t prefix = chunks_[run.chunk].prefix(), parts = parts_of(refs.size(), kChunkKeysMax);
  for (std::size_t part = 0, begin = 0; begin < refs.size(); ++part) {
    const std::size_t left = refs.size() - begin;
    std::size_t size = refs.size() * (part + 1) / parts - begin;
    if (at_end) size = left <= kChunkKeysMax ? left : kChunkKeysMax - 1;
    const std::uint32_t chunk = part == 0 ? run.chunk : new_chunk(order_[run.at.group]);
    chunks_[chunk].assign(refs.subspan(begin, size), heads.subspan(begin, size), prefix, *keys_);
    LiveMask mask;
    for (std::size_t i = 0; i < size; ++i) {
      const std::uint32_t from = merged_from_[begin + i];
      mask.set(i, from == kOldLive || (from < kOld && live));
      if (from < kOld) {
        chunks[from] = chunk;
      } else if (part > 0) {
        moved->push_back({refs[begin + i], chunk});
      }
    }
    masks_[chunk] = mask;
    summaries_[chunk].live = mask.count();
    if (part > 0) {
      Group& group = groups_[order_[run.at.group]];
      group.chunks.insert(at_position(group.chunks, run.at.chunk + part), chunk);
      group.separators.insert(run.at.chunk + part - 1, refs[begin], *keys_);
    }
    begin += size;
  }
}

void OrderedIndex::erase(std::uint32_t key_ref) {
  const std::string_view key = keys_->view(key_ref);
  const Place at = locate(key);
  const std::uint32_t number = groups_[order_[at.group]].chunks[at.chunk];
  SortedKeys& chunk = chunks_[number];
  const std::size_t position = lower_bound(chunk, key);
  KILOKV_CHECK(position < chunk.size() && chunk[position] == key_ref);
  if (masks_[number].has(position)) {
    masks_[number].set(position, false);
    count_live(number, static_cast<std::uint32_t>(-1));
  }
  masks_[number].erase(position);
  chunk.erase(position);
  if (chunk.empty() && at.group + at.chunk > 0) return remove_chunk(at);
  if (position == 0 && at.group + at.chunk > 0) replace_separator(at, chunk[0]);
}

// The first key of the chunk is another one now.
void OrderedIndex::replace_separator(Place at, std::uint32_t key_ref) {
  if (at.chunk > 0) {
    groups_[order_[at.group]].separators.replace(at.chunk - 1, key_ref, *keys_);
  } else {
    separators_.replace(at.group - 1, key_ref, *keys_);
  }
}

void OrderedIndex::remove_chunk(Place at) {
  Group& group = groups_[order_[at.group]];
  const auto removed = at_position(group.chunks, at.chunk);
  chunks_[*removed] = SortedKeys();
  free_chunks_.push_back(*removed);
  group.chunks.erase(removed);
  if (at.chunk > 0) return group.separators.erase(at.chunk - 1);
  if (!group.chunks.empty()) {
    replace_separator(at, group.separators[0]);
    return group.separators.erase(0);
  }
  group = {};
  free_groups_.push_back(order_[at.group]);
  order_.erase(at_position(order_, at.group));
  separators_.erase(at.group - 1);
}

std::size_t OrderedIndex::memory_bytes() const {
  std::size_t bytes = chunks_.size() * sizeof(SortedKeys) + summaries_.capacity() * sizeof(ChunkSummary) +
                      masks_.size() * sizeof(LiveMask) + groups_.capacity() * sizeof(Group) +
                      (order_.capacity() + free_chunks_.capacity() + free_groups_.capacity()) * sizeof(std::uint32_t);
  for (const SortedKeys& chunk : chunks_) bytes += chunk.memory_bytes();
  for (const Group& group : groups_) {
    bytes += group.chunks.capacity() * sizeof(std::uint32_t) + group.separators.memory_bytes();
  }
  return bytes + separators_.memory_bytes() + runs_.capacity() * sizeof(Run) +
         (merged_refs_.capacity() + merged_heads_.capacity() + merged_from_.capacity()) * sizeof(std::uint32_t);
}

}  // namespace kilokv::engine
