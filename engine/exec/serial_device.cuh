// `serial` on a device: one thread of one block runs the specification over a batch that is already resolved to slots.
// It is the baseline that the parallel strategies are measured against, and it shows that the interpreter runs there as
// it is.
//
// What a batch must not have, as the host keeps it: ranges and `bytes equal`. Byte constants travel as words: the host
// resolves them before the launch.
#pragma once

#include <cstdint>

#include "engine/table/record_table.hpp"
#include "engine/txn/view.hpp"

namespace kilokv::engine {

// A write in the order of execution: the slot and what it held.
struct DeviceImage {
  std::uint32_t slot;
  Cell before;
};

// All arrays are in device memory.
struct SerialDeviceArguments {
  BatchView batch;
  ResultView results;
  const std::uint8_t* last_try = nullptr;      // [n]
  const std::uint32_t* order = nullptr;        // [n], or null: positions are the transactions' numbers
  std::uint32_t* waiting = nullptr;            // [n], scratch
  Slot* slots = nullptr;                       // [capacity + 1]
  const std::uint32_t* slot_of_key = nullptr;  // [k]
  const std::uint64_t* value_word = nullptr;   // [v]
  DeviceImage* log = nullptr;                  // [m], out: what each write replaced
  std::uint32_t* log_size = nullptr;           // [1], out
  std::uint32_t* passes = nullptr;             // [1], out
};

// Stream: ordered behind what was launched on it before; returns at once. The result is cudaGetLastError() of the
// launch. `stream` is a cudaStream_t.
int launch_serial_async(const SerialDeviceArguments& arguments, void* stream);

}  // namespace kilokv::engine
