#include "engine/platform/helper_cores.hpp"

#if defined(__linux__)
#include <pthread.h>
#include <sched.h>

#include <algorithm>
#endif

namespace kilokv::engine {

#if defined(__linux__)

namespace {

// On a machine with more cores, the other helpers go where the scheduler puts them: a system call for each of them
// would take longer than it gains.
constexpr std::size_t kHelpersMax = 7;

}  // namespace

struct HelperCores::Cores {
  cpu_set_t all;  // that the helpers may use
  cpu_set_t set;  // that they were allowed last
  int left_out = -1;

  // An error is no harm: the helper may run where it could run before.
  void allow(const cpu_set_t& cores, std::vector<std::thread>* helpers) {
    set = cores;
    const std::size_t count = std::min(helpers->size(), kHelpersMax);
    for (std::size_t i = 0; i < count; ++i) {
      pthread_setaffinity_np((*helpers)[i].native_handle(), sizeof(set), &set);
    }
  }
};

HelperCores::HelperCores(std::uint32_t threads) {
  auto cores = std::make_unique<Cores>();
  // It fails on a machine with more cores than a cpu_set_t has.
  if (sched_getaffinity(0, sizeof(cores->all), &cores->all) != 0) return;
  const int count = CPU_COUNT(&cores->all);
  if (count < 2 || static_cast<std::uint32_t>(count) < threads) return;
  cores->set = cores->all;
  cores_ = std::move(cores);
}

void HelperCores::keep_off_this_core(std::vector<std::thread>* helpers) {
  if (cores_ == nullptr || helpers->empty()) return;
  const int core = sched_getcpu();
  if (core < 0 || core == cores_->left_out) return;
  // If somebody else has changed what the helpers may use, this holds from now on.
  cpu_set_t now;
  if (pthread_getaffinity_np(helpers->front().native_handle(), sizeof(now), &now) != 0) return;
  if (CPU_EQUAL(&now, &cores_->set) == 0) cores_->all = now;
  cpu_set_t others = cores_->all;
  CPU_CLR(static_cast<unsigned>(core), &others);
  if (CPU_COUNT(&others) == 0) return;
  cores_->left_out = core;
  cores_->allow(others, helpers);
}

void HelperCores::allow_all(std::vector<std::thread>* helpers) {
  if (cores_ == nullptr || cores_->left_out < 0) return;
  cores_->left_out = -1;
  cores_->allow(cores_->all, helpers);
}

#else

struct HelperCores::Cores {};
HelperCores::HelperCores(std::uint32_t) {}
void HelperCores::keep_off_this_core(std::vector<std::thread>*) {}
void HelperCores::allow_all(std::vector<std::thread>*) {}

#endif

HelperCores::~HelperCores() = default;

}  // namespace kilokv::engine
