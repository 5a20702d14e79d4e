#include "engine/stm/ordered.hpp"

#include "engine/exec/run/host_arguments.hpp"
#include "engine/exec/run/ordered_host.hpp"
#include "engine/exec/run/ordered_totals.hpp"
#include "engine/exec/strategy.hpp"

namespace kilokv::engine {
namespace {

constexpr const char* kName = "ordered";

// These follow from costs on a device. A round costs a grid barrier of some microseconds, and about a nanosecond for
// each transaction in it. One thread alone takes one to a few microseconds for a transaction, and some tens of
// nanoseconds to look at a position.
constexpr OrderedTuning kOnDevice{.decided_min = 8, .divisor = 1024, .walks = true, .few_of_max = 256};
// On the emulated device the limits are lower, so that tests reach all paths.
constexpr OrderedTuning kEmulated{.decided_min = 4, .divisor = 32, .walks = true, .few_of_max = 64};

class OrderedOnDevice final : public DeviceStrategyOf<OrderedArguments<HostSpace>, OrderedArguments<DeviceSpace>> {
 public:
  explicit OrderedOnDevice(const DeviceStrategyPlace& place)
      : DeviceStrategyOf(place),
        kernel_(kernels_.find(kName)),
        tuning_(place.device->info().kind == "emulated" ? kEmulated : kOnDevice),
        epochs_(place.first_epochs.reservations) {}

  void open(const ResolvedBatch& batch, BatchRecords* records, BatchResults* results, DeviceBlock* block) override {
    const auto n = static_cast<std::uint32_t>(batch.columns.size());
    shape_ = shape_of(batch, *records, threads_of(kernels_.threads(kernel_, n)));
    if (epochs_.must_restart(n)) kept_.refill();
    on_host_ = ordered_arguments(batch, records, results, tuning_, epochs_);
    add_columns(block);
  }
  Status launch(DeviceStream stream) override {
    return kernels_.launch(stream, kernel_, &on_device_, {.threads = shape_.threads.number});
  }
  void close(BatchResults* results, ExecutionReport* report) override {
    epochs_.use(ordered_epochs_used(on_host_.words[kWordRounds]));
    report_ordered(on_host_, shape_, results, report);
  }

 private:
  KernelHandle kernel_;
  OrderedTuning tuning_;
  EpochCounter epochs_;
};

}  // namespace

const Strategy& ordered_strategy() {
  static const Strategy kStrategy{
      .name = kName,
      .summary = "Runs a batch on several threads. The results are those of serial, bit for bit.",
      .traits = {.auto_choice = AutoChoice::on_device},
      .settings = {},
      .counters = ordered_counters(),
      .make_host = [](std::uint32_t threads, const SettingTexts&) { return std::make_unique<OrderedHost>(threads); },
      .make_device = [](const DeviceStrategyPlace& place,
                        const SettingTexts&) { return std::make_unique<OrderedOnDevice>(place); },
      .kernels = {emulated_kernel<OrderedRun<EmulatedPlatform>, OrderedArguments<DeviceSpace>>(kName)}};
  return kStrategy;
}

}  // namespace kilokv::engine
