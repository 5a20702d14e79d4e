// The columns of a batch in one block of device memory, and the pinned host memory for their copies (the staging
// memory). The columns are those that structs of arguments list (base/section.hpp), without those that are kept
// (kept_columns.hpp). The block has a part for each section, in the order of Section. The staging memory has the same
// offsets. It ends after the returned columns.
//
// Order of calls for a batch: clear(), add() for each struct, reserve(), bind() for each struct, pack(), send(),
// zero(), the kernels, fetch(), unpack().
//
// Errors are those of the device. Not thread-safe. Keeps its memory, so that the steady state allocates nothing.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <vector>

#include "engine/base/section.hpp"
#include "engine/base/status.hpp"
#include "engine/exec/device/device_buffer.hpp"
#include "engine/platform/device.hpp"

namespace kilokv::engine {

class DeviceBlock {
 public:
  explicit DeviceBlock(Device* device) : device_(*device), staging_(device), block_(device) {}

  // Forgets all columns.
  void clear() { columns_.clear(); }

  // Adds the columns of these arguments, which are over HostSpace. Returns the number of the first one, for bind().
  // Where the arguments have an address, pack() copies the column from there, or unpack() copies it to there.
  template <class Arguments, class Shape>
  std::size_t add(const Shape& shape, Arguments* arguments) {
    const std::size_t first = columns_.size();
    arguments->for_columns(shape, [&](auto& pointer, std::size_t count, Section section, std::uint8_t = 0) {
      using Element = std::remove_reference_t<decltype(*pointer)>;
      if (section == Section::kept) return;
      // Only the columns that are returned are written.
      columns_.push_back({const_cast<void*>(static_cast<const void*>(pointer)), count * sizeof(Element), 0, section});
    });
    return first;
  }

  // Lays the columns out, and makes room for them.
  [[nodiscard]] Status reserve();

  // Returns the arguments for a kernel: all values are those of `arguments`, and all columns are in the block, except
  // for kept columns, which are null. A column that is copied and has no address in `arguments` gets one there: its
  // place in the staging memory. Columns without elements are null. Requires: `first` is from add(), and the arguments
  // and the shape are those of that call.
  template <class OnDevice, class OnHost, class Shape>
  OnDevice bind(std::size_t first, const Shape& shape, OnHost* arguments) {
    std::size_t number = first;
    arguments->for_columns(shape, [&](auto& pointer, std::size_t, Section section, std::uint8_t = 0) {
      using Element = std::remove_reference_t<decltype(*pointer)>;
      if (section == Section::kept) return;
      const Place& place = columns_[number++];
      if (place.host != nullptr || place.bytes == 0 || !is_copied(section)) return;
      pointer = reinterpret_cast<Element*>(staging_.data() + place.offset);
    });
    // Both forms have the same members, and a pointer of either is as large as an address.
    OnDevice on_device = std::bit_cast<OnDevice>(*arguments);
    number = first;
    on_device.for_columns(shape, [&](auto& pointer, std::size_t, Section section, std::uint8_t = 0) {
      using Pointer = std::remove_reference_t<decltype(pointer)>;
      pointer = Pointer();
      if (section == Section::kept) return;
      const Place& place = columns_[number++];
      if (place.bytes > 0) pointer = block_.at<typename std::pointer_traits<Pointer>::element_type>(place.offset);
    });
    return on_device;
  }

  // Where the host fills a column that is sent, after bind(). Requires: the arguments had no address for it in add().
  template <class T>
  static T* staged(const T* column) {
    return const_cast<T*>(column);  // a kernel only reads it, so that its arguments have a pointer to const
  }

  // Copies the columns that are sent into the staging memory.
  void pack();
  [[nodiscard]] Status send(DeviceStream stream);
  // Zeroes the columns that have to be zero.
  [[nodiscard]] Status zero(DeviceStream stream);
  [[nodiscard]] Status fetch(DeviceStream stream);
  // Copies the returned columns out of the staging memory. Requires: fetch() has run.
  void unpack() const;

  std::size_t sent_bytes() const { return end(Section::sent); }
  std::size_t returned_bytes() const { return end(Section::returned) - end(Section::sent); }
  std::size_t staging_bytes() const { return staging_.bytes(); }

 private:
  static constexpr std::size_t kSections = 4;  // without `kept`
  struct Place {
    void* host;  // null: nowhere else than in the staging memory
    std::size_t bytes, offset;
    Section section;
  };

  static constexpr bool is_copied(Section section) { return section == Section::sent || section == Section::returned; }
  std::size_t end(Section section) const { return ends_[static_cast<std::size_t>(section)]; }

  Device& device_;
  std::vector<Place> columns_;
  std::array<std::size_t, kSections> ends_{};  // offsets
  PinnedBuffer staging_;
  DeviceBuffer block_;
};

}  // namespace kilokv::engine
