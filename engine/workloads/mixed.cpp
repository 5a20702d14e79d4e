#include "engine/workloads/mixed.hpp"

#include <algorithm>
#include <limits>

namespace kilokv::engine {

Mixed::Mixed(std::uint64_t keys, const MixedOptions& options, std::uint64_t seed)
    : keys_(std::min(keys, kKeysMax)),
      guard_kinds_(guard_kinds(options.ranges)),
      op_kinds_(op_kinds(options.ranges)),
      random_(seed),
      times_(~seed - 1),
      direction_(~seed),
      last_tries_(~seed - 2),
      ranges_(options.ranges) {
  std::erase(op_kinds_, OpKind::range_get_reverse);
  std::erase_if(guard_kinds_, compares_time);
}

std::int64_t Mixed::draw_integer() {
  switch (random_.below(8)) {
    case 0: return std::numeric_limits<std::int64_t>::max() - static_cast<std::int64_t>(random_.below(3));
    case 1: return std::numeric_limits<std::int64_t>::min() + static_cast<std::int64_t>(random_.below(3));
    default: return random_.between(-8, 8);
  }
}

// Draws versions of the recent past, of never, and of the far future, so that all answers of the version guards occur.
Version Mixed::draw_version() {
  switch (random_.below(4)) {
    case 0: return 0;
    case 1: return kVersionMax;
    default: return random_.below(std::min<std::uint64_t>(4 * transactions_, std::uint64_t{1} << 31) + 1);
  }
}

// Draws times of the past, of the far future, and of the first batches of a bench.
TimeUs Mixed::draw_time() {
  switch (times_.below(3)) {
    case 0: return times_.between(0, 8);
    case 1: return kNever - times_.between(0, 8);
    default: return 1'000'000 + times_.between(0, 100'000);
  }
}

Mixed::Range Mixed::draw_range() {
  const std::uint64_t from = draw_key();
  const std::uint64_t to = from + 1 + random_.below(keys_);
  return {KeyName(kPrefix, from), KeyName(kPrefix, to), random_.chance(0.1)};
}

// Draws from few different values, with the empty one, so that bytes_equal is sometimes true.
std::string_view Mixed::draw_bytes() {
  bytes_.assign(random_.below(4) * 5, static_cast<char>('a' + random_.below(2)));
  return bytes_;
}

void Mixed::for_each_initial(const InitialVisitor& visit) const {
  for (std::uint64_t i = 0; i < keys_; ++i) {
    const KeyName name(kPrefix, i);
    if (i % 3 == 1) visit({.key = name.view(), .integer = static_cast<std::int64_t>(i)});
    if (i % 3 == 2) visit({.key = name.view(), .type = ValueType::bytes, .bytes = "aaaaa"});
  }
}

InvariantRule Mixed::invariant() const {
  return {.statement = "at most " + std::to_string(keys_) + " live records", .records_max = keys_};
}

}  // namespace kilokv::engine
