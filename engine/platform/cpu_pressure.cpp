#include "engine/platform/cpu_pressure.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace kilokv::engine {
namespace {

constexpr std::chrono::milliseconds kWindow{200}, kWindowMax{1000};

}  // namespace

CpuPressure::CpuPressure(const std::string& file, Clock::time_point now)
    : file_(open(file.c_str(), O_RDONLY | O_CLOEXEC)), looked_at_(now), waited_(waited_seconds()) {}

CpuPressure::~CpuPressure() {
  if (file_ >= 0) close(file_);
}

double CpuPressure::waited_seconds() const {
  if (file_ < 0) return -1;
  char text[128];
  const ssize_t bytes = pread(file_, text, sizeof(text) - 1, 0);
  if (bytes <= 0) return -1;
  text[bytes] = '\0';
  unsigned long long microseconds = 0;
  if (std::sscanf(text, "some avg10=%*f avg60=%*f avg300=%*f total=%llu", &microseconds) != 1) return -1;
  return static_cast<double>(microseconds) * 1e-6;
}

double CpuPressure::share(Clock::time_point now) {
  const Clock::duration window = now - looked_at_;
  if (window < kWindow) return share_;
  const double waited = waited_seconds();
  if (waited < 0 || waited_ < 0) {
    share_ = 0;
  } else if (window <= kWindowMax) {
    share_ = std::clamp((waited - waited_) / std::chrono::duration<double>(window).count(), 0.0, 1.0);
  }
  looked_at_ = now;
  waited_ = waited;
  return share_;
}

}  // namespace kilokv::engine
