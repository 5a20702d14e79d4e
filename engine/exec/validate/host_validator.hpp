// The cooperative validator (stm/validator.hpp) on threads of the host. The caller's thread is the front. The other
// threads are the back, and park between read sets. Thread safety: one caller at a time.
#pragma once

#include <array>
#include <barrier>
#include <cstdint>
#include <optional>
#include <vector>

#include "engine/exec/validate/read_set.hpp"
#include "engine/platform/host.hpp"
#include "engine/stm/validator.hpp"

namespace kilokv::engine {

class HostValidator {
 public:
  // `threads`: how many are wanted, including the caller's.
  explicit HostValidator(std::uint32_t threads);

  std::uint32_t threads() const { return team_.size(); }  // as many as the system gave; 1: there is no back
  // Requires: threads() is at least 2.
  ValidatorResult run(const ReadSet& set);
  std::size_t memory_bytes() const { return entries_.capacity() * sizeof(std::uint64_t); }

 private:
  static constexpr std::uint32_t kSlots = 16;

  ThreadTeam team_;
  std::optional<std::barrier<>> meeting_;  // the barrier of the back's threads
  alignas(sizeof(std::uint64_t) * kRingLineWords) std::array<std::uint64_t, kRingWords> words_{};
  alignas(sizeof(std::uint64_t) * kRingLineWords) std::array<std::uint64_t, kGridWords> grid_{};
  std::vector<std::uint64_t> entries_;
  std::uint64_t position_ = 0;
};

}  // namespace kilokv::engine
