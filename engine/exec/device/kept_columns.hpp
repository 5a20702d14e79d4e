// The columns that a strategy keeps on a device between batches (base/section.hpp). Each has memory of its own, so that
// none moves when another one grows. A column that grows gets its fill, and loses what it had.
//
// Not thread-safe. Memory only grows, so that the steady state allocates nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <type_traits>

#include "engine/base/section.hpp"
#include "engine/base/status.hpp"
#include "engine/exec/device/device_buffer.hpp"
#include "engine/platform/device.hpp"
#include "engine/stm/batch_shape.hpp"

namespace kilokv::engine {

// For arguments of one type, over DeviceSpace.
class KeptColumns {
 public:
  explicit KeptColumns(Device* device) : device_(*device) {}

  // Makes room for the kept columns of these arguments, fills what is new, and sets their addresses. Errors: those of
  // the device.
  template <class Arguments>
  [[nodiscard]] Status bind(DeviceStream stream, const BatchShape& shape, Arguments* arguments) {
    Status status;
    std::size_t number = 0;
    arguments->for_columns(shape, [&](auto& pointer, std::size_t count, Section section, std::uint8_t fill = 0) {
      using Element = typename std::pointer_traits<std::remove_reference_t<decltype(pointer)>>::element_type;
      if (section != Section::kept) return;
      const std::size_t column = number++;
      if (!status.ok() || count == 0) return;
      status = prepare(stream, column, count * sizeof(Element), fill);
      pointer = columns_[column].buffer.template at<Element>(0);
    });
    return status;
  }
  // At the next bind() that succeeds, all columns get their fill again.
  void refill();

 private:
  struct Column {
    explicit Column(Device* device) : buffer(device) {}

    DeviceBuffer buffer;
    bool is_filled = false;
  };

  [[nodiscard]] Status prepare(DeviceStream stream, std::size_t column, std::size_t bytes, std::uint8_t fill);

  Device& device_;
  std::deque<Column> columns_;  // by their place among the kept columns of the list
};

}  // namespace kilokv::engine
