#include "engine/platform/helper_cores.hpp"

#if defined(__linux__)
#include <pthread.h>
#include <sched.h>
#endif

namespace kilokv::engine {

#if defined(__linux__)

struct HelperCores::Cores {
  cpu_set_t all;
  int left_out = -1;
};

HelperCores::HelperCores() {
  auto cores = std::make_unique<Cores>();
  // It fails on a machine with more cores than a cpu_set_t has.
  if (sched_getaffinity(0, sizeof(cores->all), &cores->all) == 0 && CPU_COUNT(&cores->all) > 1) {
    cores_ = std::move(cores);
  }
}

void HelperCores::keep_off_this_core(std::vector<std::thread>* helpers) {
  if (cores_ == nullptr) return;
  const int core = sched_getcpu();
  if (core < 0 || core == cores_->left_out) return;
  cores_->left_out = core;
  cpu_set_t others = cores_->all;
  CPU_CLR(static_cast<unsigned>(core), &others);
  // An error is no harm: the helper may run where it could run before.
  for (std::thread& helper : *helpers) pthread_setaffinity_np(helper.native_handle(), sizeof(others), &others);
}

#else

struct HelperCores::Cores {};
HelperCores::HelperCores() = default;
void HelperCores::keep_off_this_core(std::vector<std::thread>*) {}

#endif

HelperCores::~HelperCores() = default;

}  // namespace kilokv::engine
