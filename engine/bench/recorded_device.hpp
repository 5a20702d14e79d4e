// Devices whose kernels and copies cost the host nothing, because a bench leaves their time out. So a bench can measure
// the work of the host alone, on a machine without a device.
//
// A replayed device returns what another device returned before. open_recording() writes down the bytes of each copy to
// the host, and open_replayed() gives these bytes back, in the same order, to code that makes the same calls. Its
// memory does not exist: copies to the device, fills and launches do nothing.
//
// A live device is another device, whose work is done while the code under test waits for it. The words of byte values
// are addresses, which differ from one engine to the next, so a recording of them is of no use to another engine. Its
// work leaves less in the caches than a replay does, so the host's part is a little slower than after a replay.
//
// With both, what the copies to the host wrote is flushed from the caches, because a real device writes to memory.
//
// Thread safety: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "engine/exec/device/device_kernels.hpp"
#include "engine/platform/device.hpp"
#include "engine/platform/stopwatch.hpp"

namespace kilokv::engine::bench {

// The bytes of all copies to the host, in the order in which they were asked for.
struct DeviceRecording {
  std::vector<std::byte> bytes;
  std::vector<std::size_t> ends;  // of each copy
};

// What the host asked of a device.
struct DeviceCalls {
  std::uint64_t calls = 0;    // of all kinds
  std::uint64_t patches = 0;  // records that were sent to keep the device's table up to date
  std::uint64_t sent_bytes = 0, returned_bytes = 0;
  // Processor time for what a device would have done: of the calling thread, and of all threads of the process.
  double left_out_seconds = 0, left_out_of_all = 0;
};

// Opens `device` again, so that all copies to the host are recorded. `recording` and `calls` outlive it.
OpenedDevice open_recording(OpenedDevice device, DeviceRecording* recording, DeviceCalls* calls);
// Opens a device that replays. Launches have the shapes that they had on `original`, which is not used for anything
// else. `recording` and `calls` outlive it. A copy that is not the next one of the recording is an INTERNAL error.
OpenedDevice open_replayed(OpenedDevice original, const DeviceRecording* recording, DeviceCalls* calls);
// Opens the device so that the time of its own work is left out. `calls` outlives it.
OpenedDevice open_live(OpenedDevice device, DeviceCalls* calls);

}  // namespace kilokv::engine::bench
