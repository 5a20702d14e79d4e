#include "engine/table/sorted_keys.hpp"

#include <algorithm>
#include <bit>
#include <limits>

#include "engine/base/check.hpp"

namespace kilokv::engine {
namespace {

constexpr std::size_t kHeadBytes = sizeof(std::uint32_t);

std::uint32_t byte_at(std::string_view key, std::size_t at) { return static_cast<unsigned char>(key[at]); }

// The number of items that are below `bound`, or up to it. It has no branch that depends on the items, because such a
// branch cannot be predicted.
template <bool kUpTo>
std::size_t count_below(std::span<const std::uint32_t> sorted, std::uint32_t bound) {
  const std::uint32_t* base = sorted.data();
  std::size_t left = sorted.size();
  if (left == 0) return 0;
  while (left > 1) {
    const std::size_t half = left / 2;
    const std::uint32_t item = base[half - 1];
    base += half * static_cast<std::size_t>(kUpTo ? item <= bound : item < bound);
    left -= half;
  }
  return static_cast<std::size_t>(base - sorted.data()) + (kUpTo ? *base <= bound : *base < bound);
}

}  // namespace

std::uint32_t SortedKeys::head_of(std::string_view key, std::size_t prefix) {
  if (prefix + kHeadBytes <= key.size()) {
    return byte_at(key, prefix) << 24 | byte_at(key, prefix + 1) << 16 | byte_at(key, prefix + 2) << 8 |
           byte_at(key, prefix + 3);
  }
  std::uint32_t head = 0;
  for (std::size_t at = prefix; at < prefix + kHeadBytes; ++at)
    head = head << 8 | (at < key.size() ? byte_at(key, at) : 0);
  return head;
}

std::size_t SortedKeys::shared_bytes(std::string_view a, std::string_view b) {
  const std::size_t both = std::min(a.size(), b.size());
  return static_cast<std::size_t>(
      std::mismatch(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(both), b.begin()).first - a.begin());
}

// Without a branch inside a block of references, so that the compiler compares several of them at once.
std::size_t SortedKeys::position_of(std::uint32_t ref) const {
  constexpr std::size_t kBlock = 16;
  const std::span<const std::uint32_t> all = refs();
  std::size_t begin = 0;
  for (; begin + kBlock <= all.size(); begin += kBlock) {
    std::uint32_t found = 0;
    for (std::size_t i = 0; i < kBlock; ++i) found |= static_cast<std::uint32_t>(all[begin + i] == ref);
    if (found != 0) break;
  }
  while (begin < all.size() && all[begin] != ref) ++begin;
  KILOKV_CHECK(begin < all.size());
  return begin;
}

SortedKeys::Sought SortedKeys::seek(std::string_view key, const KeyArena& arena) const {
  Sought sought{key, prefix_, 0, 0};
  if (prefix_ > 0) {
    const std::string_view prefix = arena.view(refs()[0]).substr(0, prefix_);
    if (!key.starts_with(prefix)) {
      sought.shared = shared_bytes(key, prefix);
      const bool is_less = sought.shared == key.size() || byte_at(key, sought.shared) < byte_at(prefix, sought.shared);
      sought.side = is_less ? -1 : 1;
      return sought;
    }
  }
  sought.head = head_of(key, prefix_);
  return sought;
}

std::size_t SortedKeys::lower_bound(const Sought& sought, const KeyArena& arena) const {
  if (sought.side != 0) return sought.side < 0 ? 0 : size_;
  const std::size_t begin = count_below<false>(heads(), sought.head);
  if (begin == size_ || heads()[begin] != sought.head) return begin;
  const std::span<const std::uint32_t> same =
      refs().subspan(begin, count_below<true>(heads().subspan(begin), sought.head));
  const auto less = [&](std::uint32_t ref, std::string_view key) { return arena.view(ref) < key; };
  return begin + static_cast<std::size_t>(std::lower_bound(same.begin(), same.end(), sought.key, less) - same.begin());
}

std::size_t SortedKeys::upper_bound(const Sought& sought, const KeyArena& arena) const {
  const std::size_t position = lower_bound(sought, arena);
  const bool is_here = sought.side == 0 && position < size_ && heads()[position] == sought.head &&
                       arena.view(refs()[position]) == sought.key;
  return position + (is_here ? 1 : 0);
}

bool SortedKeys::is_less(const Sought& sought, std::size_t position, const KeyArena& arena) const {
  if (sought.side != 0) return sought.side < 0;
  const std::uint32_t head = heads()[position];
  return sought.head != head ? sought.head < head : sought.key < arena.view(refs()[position]);
}

std::size_t SortedKeys::shared_with(const Sought& sought, std::size_t position, const KeyArena& arena) const {
  if (sought.side != 0) return sought.shared;
  const std::uint32_t different = sought.head ^ heads()[position];
  if (different == 0) return shared_bytes(sought.key, arena.view(refs()[position]));
  return std::min(prefix_ + static_cast<std::size_t>(std::countl_zero(different)) / 8, sought.key.size());
}

// The bytes of the keys may be far away, so all are asked for before the first is read.
void SortedKeys::set_prefix(std::size_t bytes, const KeyArena& arena) {
  prefix_ = static_cast<std::uint32_t>(bytes);
  for (const std::uint32_t ref : refs()) arena.prefetch(ref);
  for (std::size_t i = 0; i < size_; ++i) heads()[i] = head_of(arena.view(refs()[i]), bytes);
}

// Makes the prefix as long as it can be. Where the first byte of the heads is not the same in all of them, it is as
// long as it can be already.
void SortedKeys::lengthen_prefix(const KeyArena& arena) {
  if (empty() || std::countl_zero(heads().front() ^ heads().back()) < 8) return;
  const std::size_t shared = shared_bytes(arena.view(refs().front()), arena.view(refs().back()));
  if (shared > prefix_) set_prefix(shared, arena);
}

void SortedKeys::set_capacity(std::size_t capacity) {
  auto entries = capacity == 0 ? nullptr : std::make_unique_for_overwrite<std::uint32_t[]>(2 * capacity);
  std::copy_n(heads().data(), size_, entries.get());
  std::copy_n(refs().data(), size_, entries.get() + capacity);
  entries_ = std::move(entries);
  capacity_ = static_cast<std::uint32_t>(capacity);
}

void SortedKeys::reserve(std::size_t size, std::size_t size_max) {
  if (size <= capacity_) return;
  set_capacity(std::min(size - 1 + std::max(kGrowth, size / 8), size_max));
}

void SortedKeys::insert(std::size_t position, std::uint32_t ref, std::uint32_t head, std::size_t size_max) {
  reserve(std::size_t{size_} + 1, size_max);
  ++size_;
  for (const auto& [items, added] : {std::pair{heads(), head}, std::pair{refs(), ref}}) {
    std::copy_backward(items.begin() + static_cast<std::ptrdiff_t>(position), items.end() - 1, items.end());
    items[position] = added;
  }
}

void SortedKeys::insert(std::size_t position, std::uint32_t ref, const KeyArena& arena) {
  const std::string_view key = arena.view(ref);
  if (empty()) {
    prefix_ = static_cast<std::uint32_t>(key.size());
  } else {
    limit_prefix(seek(key, arena).shared, arena);
  }
  insert(position, ref, head_of(key, prefix_), std::numeric_limits<std::size_t>::max());
}

void SortedKeys::erase(std::size_t position) {
  for (const std::span<std::uint32_t> items : {heads(), refs()}) {
    std::copy(items.begin() + static_cast<std::ptrdiff_t>(position) + 1, items.end(),
              items.begin() + static_cast<std::ptrdiff_t>(position));
  }
  if (--size_ == 0) prefix_ = 0;
}

void SortedKeys::assign(std::span<const std::uint32_t> refs, std::span<const std::uint32_t> heads, std::size_t prefix,
                        const KeyArena& arena) {
  size_ = 0;
  set_capacity(refs.size());
  size_ = static_cast<std::uint32_t>(refs.size());
  prefix_ = static_cast<std::uint32_t>(prefix);
  std::copy(heads.begin(), heads.end(), this->heads().begin());
  std::copy(refs.begin(), refs.end(), this->refs().begin());
  lengthen_prefix(arena);
}

SortedKeys SortedKeys::cut(std::size_t keep, const KeyArena& arena) {
  SortedKeys upper;
  upper.assign(refs().subspan(keep), heads().subspan(keep), prefix_, arena);
  size_ = static_cast<std::uint32_t>(keep);
  lengthen_prefix(arena);
  return upper;
}

}  // namespace kilokv::engine
