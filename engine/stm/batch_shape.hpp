// The numbers from which the counts of a batch's columns follow (base/section.hpp). Plain data.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kilokv::engine {

// The threads that run a batch.
struct BatchThreads {
  std::uint32_t number = 0;
  std::uint32_t group_width = 1;  // the most threads of a group
  std::uint32_t groups = 0;
};

struct BatchShape {
  std::size_t transactions = 0, guards = 0, operations = 0, keys = 0, values = 0, records = 0;
  bool host_records = true;     // the host has numbered the records; if not, the device does
  std::size_t positions = 0;    // transactions in BatchArguments::order; 0: it is null
  std::size_t equal_words = 0;  // in BatchArguments::equal_word
  BatchThreads threads;
  std::size_t undecided = 0;    // slots for the undecided transactions of all threads
  std::size_t stage_words = 0;  // of the stage of `local`; 0: it is in the memory of blocks

  std::size_t uses() const { return 2 * guards + operations; }  // of records, by guards and operations
};

}  // namespace kilokv::engine
