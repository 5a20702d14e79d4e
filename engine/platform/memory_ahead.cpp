#include "engine/platform/memory_ahead.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <stop_token>
#include <system_error>
#include <thread>
#include <utility>

namespace kilokv::engine {
namespace {

constexpr std::size_t kPageBytesMin = 4096;

void take_part(MemoryAhead::Part part, const std::stop_token& stop) {
  const std::size_t before_border = kPageBytesMin - reinterpret_cast<std::uintptr_t>(part.data()) % kPageBytesMin;
  for (std::size_t at = 0; at < part.size() && !stop.stop_requested(); at += at == 0 ? before_border : kPageBytesMin) {
    *static_cast<volatile std::byte*>(part.data() + at) = std::byte{0};
  }
}

}  // namespace

struct MemoryAhead::Worker {
  std::atomic<bool> is_done{true};
  std::jthread thread;  // ends before the flag
};

MemoryAhead::MemoryAhead() : worker_(std::make_unique<Worker>()) {}
MemoryAhead::~MemoryAhead() = default;

void MemoryAhead::take(std::vector<Part> parts) {
  stop();
  worker_->is_done.store(false, std::memory_order_relaxed);
  try {
    worker_->thread = std::jthread([worker = worker_.get(), parts = std::move(parts)](const std::stop_token& stop) {
      for (const Part part : parts) take_part(part, stop);
      worker->is_done.store(true, std::memory_order_release);
    });
  } catch (const std::system_error&) {
    worker_->is_done.store(true, std::memory_order_relaxed);
  }
}

bool MemoryAhead::is_done() const { return worker_->is_done.load(std::memory_order_acquire); }

void MemoryAhead::stop() { worker_->thread = {}; }

}  // namespace kilokv::engine
