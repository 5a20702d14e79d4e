// Takes memory from the system ahead of its first use, on a thread of its own. Without that, whoever first uses a huge
// page waits for it, which takes up to 18 ms on a virtual machine.
//
// This is only a help: if there is no thread, or if the kernel cannot do it (MADV_POPULATE_WRITE, Linux 5.14), then the
// first use takes the memory.
//
// Not thread-safe.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace kilokv::engine {

class MemoryAhead {
 public:
  using Part = std::span<std::byte>;

  MemoryAhead();
  ~MemoryAhead();

  // Starts to take the memory of these parts, in this order. What the memory holds does not change. The caller may use
  // the memory meanwhile. Requires: the parts stay mapped until stop() or the next take().
  void take(std::vector<Part> parts);
  // Ends the work early. Returns when the thread has ended.
  void stop();

 private:
  struct Worker;
  std::unique_ptr<Worker> worker_;
};

}  // namespace kilokv::engine
