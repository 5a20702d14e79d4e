// The order of a batch: by precedence, lower first, and then by arrival. It is a stable counting sort, and it sorts
// only when precedences differ.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace kilokv::engine {

// Fills order[position] = transaction. Leaves it empty when each position is the transaction's own number.
inline void order_by_precedence(const std::uint8_t* precedence, std::size_t n, std::vector<std::uint32_t>* order) {
  order->clear();
  if (n == 0 || std::all_of(precedence, precedence + n, [&](std::uint8_t p) { return p == precedence[0]; })) return;
  std::array<std::uint32_t, 257> next{};
  for (std::size_t t = 0; t < n; ++t) ++next[precedence[t] + std::size_t{1}];
  for (std::size_t p = 1; p < next.size(); ++p) next[p] += next[p - 1];
  order->resize(n);
  for (std::size_t t = 0; t < n; ++t) (*order)[next[precedence[t]]++] = static_cast<std::uint32_t>(t);
}

}  // namespace kilokv::engine
