// The memory of a strategy's own columns on the host. It is bound to the pointers in the arguments by their list of
// columns (base/section.hpp). What others own, the arguments have the address of already: the columns of the batch, and
// those of its results.
//
// Each column has memory of its own, so that a sanitizer finds a use beyond its end. Not thread-safe. Memory only
// grows, so that the steady state allocates nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <vector>

#include "engine/base/section.hpp"
#include "engine/stm/batch_shape.hpp"

namespace kilokv::engine {

// For arguments of one type, over HostSpace.
class HostColumns {
 public:
  // Gives an address to all columns that have none and are not sent. Zeroes those that must be zero. Columns without
  // elements stay null.
  template <class Arguments>
  void bind(const BatchShape& shape, Arguments* arguments) {
    std::size_t number = 0;
    arguments->for_columns(shape, [&](auto& pointer, std::size_t count, Section section, std::uint8_t fill = 0) {
      using Element = std::remove_pointer_t<std::remove_reference_t<decltype(pointer)>>;
      const std::size_t column = number++;
      if (section == Section::sent || pointer != nullptr || count == 0) return;
      pointer = reinterpret_cast<Element*>(prepared(column, count * sizeof(Element), section, fill));
    });
  }
  // At the next bind(), all columns that are kept get their fill again.
  void refill_kept();

  std::size_t memory_bytes() const;

 private:
  struct Memory {
    std::unique_ptr<std::byte[]> bytes;
    std::size_t size = 0;
    bool is_filled = false;
  };

  std::byte* prepared(std::size_t column, std::size_t bytes, Section section, std::uint8_t fill);

  std::vector<Memory> columns_;  // by their place in the list
};

}  // namespace kilokv::engine
