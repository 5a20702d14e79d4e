// Takes memory from the system ahead of its use, on a thread of its own. Without that, whoever first uses a huge page
// waits for it, which takes up to 18 ms on a virtual machine.
//
// The thread writes to each page. MADV_POPULATE_WRITE would stop everybody who maps memory meanwhile.
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

  // Starts to take the memory of these parts. If there is no thread, the first use will take it. Requires: all of it is
  // zero, and nobody uses it until is_done() or stop().
  void take(std::vector<Part> parts);
  bool is_done() const;
  // Ends the work early. Waits for no more than one page.
  void stop();

 private:
  struct Worker;
  std::unique_ptr<Worker> worker_;
};

}  // namespace kilokv::engine
