// The sections of the columns that a kernel works on. Each struct of arguments lists its columns once, in its member
// for_columns(). For each column it calls column(member, count, section), where `member` is the pointer, and `count` is
// its number of elements. A column that is `kept` may have a fourth argument: the byte that its new memory is filled
// with, which is 0 if it is left out.
//
// From the list follow the memory of the columns on the host (exec/run/host_columns.hpp) and on a device
// (exec/device/device_block.hpp, exec/device/kept_columns.hpp), the copies between them, and the pointers.
#pragma once

#include <cstdint>

namespace kilokv::engine {

enum class Section : std::uint8_t {
  sent,      // made on the host before the batch, and only read
  returned,  // all zero at the start, unless the host has already made it; the host reads it after the batch
  zeroed,    // all zero at the start
  scratch,   // undefined at the start
  kept,      // as the batch before has left it; filled with one byte when it is new, or when the strategy asks for it
};

}  // namespace kilokv::engine
