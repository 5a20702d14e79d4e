#include "engine/stm/ordered.hpp"

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

class OrderedOnDevice final : public DeviceStrategy {
 public:
  explicit OrderedOnDevice(const DeviceStrategyPlace& place)
      : device_(*place.device),
        kernels_(*place.kernels),
        kernel_(kernels_.find(kName)),
        tuning_(device_.info().kind == "emulated" ? kEmulated : kOnDevice),
        reservations_(place.device),
        epochs_(place.first_epochs.reservations) {}

  bool leaves_deltas() const override { return OrderedArguments<DeviceSpace>::kLeavesDeltas; }
  std::uint32_t threads(std::uint32_t transactions) const override { return kernels_.threads(kernel_, transactions); }

  void add_columns(const ResolvedBatch&, const BatchShape& shape, BlockSection section, BlockLayout* layout) override {
    const auto n = static_cast<std::uint32_t>(shape.transactions);
    switch (section) {
      case BlockSection::sent: break;
      case BlockSection::returned:
        words_ = layout->add<std::uint64_t>(kOrderedWords);
        counts_ = layout->add<OrderedCounts>(shape.threads / kernels_.group_width());
        break;
      case BlockSection::zeroed: delta_sums_ = layout->add<std::uint64_t>(shape.records); break;
      case BlockSection::scratch:
        op_adds_ = layout->add<std::uint8_t>(shape.operations);
        undo_ = layout->add<std::uint64_t>(2 * shape.operations);
        pass_of_ = layout->add<std::uint32_t>(n);
        chain_of_ = layout->add<std::uint32_t>(n);
        undecided_ = layout->add<std::uint32_t>(position_room(n, shape.threads, kernels_.group_width()));
        break;
    }
  }

  Status reserve(DeviceStream stream, const BatchShape& shape) override {
    const std::size_t before = reservations_.bytes();
    Status status = reservations_.reserve_growing(kReservationWords * shape.records * sizeof(std::uint64_t));
    if (!status.ok()) return status;
    const bool restart = epochs_.must_restart(shape.transactions);
    if (reservations_.bytes() == before && !restart) return {};
    // ~0 belongs to no epoch.
    return device_.fill(stream, reservations_.address(), 0xFF, reservations_.bytes());
  }

  Status launch(DeviceStream stream, const DeviceBuffer& block, const BatchArguments<DeviceSpace>& batch,
                const BatchShape& shape) override {
    OrderedArguments<DeviceSpace> a;
    static_cast<BatchArguments<DeviceSpace>&>(a) = batch;
    a.reservations = reservations_.at<std::uint64_t>(0);
    a.delta_sums = block.at<std::uint64_t>(delta_sums_);
    a.op_adds = block.at<std::uint8_t>(op_adds_);
    a.undo = block.at<std::uint64_t>(undo_);
    a.pass_of = block.at<std::uint32_t>(pass_of_);
    a.chain_of = block.at<std::uint32_t>(chain_of_);
    a.undecided = block.at<std::uint32_t>(undecided_);
    a.words = block.at<std::uint64_t>(words_);
    a.counts = block.at<OrderedCounts>(counts_);
    a.first_epoch = epochs_.last();
    a.delta_max = ordered_delta_max(shape.operations);
    a.tuning = tuning_;
    return kernels_.launch(stream, kernel_, &a, {.threads = shape.threads});
  }

  void report(const BatchHeader& header, const BatchShape& shape, const std::byte* staging, BatchResults* results,
              ExecutionReport* report) override {
    const auto* const words = reinterpret_cast<const std::uint64_t*>(staging + words_);
    epochs_.use(ordered_epochs_used(words[kWordRounds]));
    report_ordered(header, {words, kOrderedWords},
                   {reinterpret_cast<const OrderedCounts*>(staging + counts_), shape.threads / kernels_.group_width()},
                   results, report);
  }

 private:
  Device& device_;
  DeviceKernels& kernels_;
  KernelHandle kernel_;
  OrderedTuning tuning_;
  DeviceBuffer reservations_;
  EpochCounter epochs_;
  // Offsets of the batch's columns.
  std::size_t words_ = 0, counts_ = 0, delta_sums_ = 0, op_adds_ = 0, undo_ = 0, pass_of_ = 0, chain_of_ = 0,
              undecided_ = 0;
};

}  // namespace

const Strategy& ordered_strategy() {
  static const Strategy kStrategy{
      .name = kName,
      .summary = "Runs a batch on several threads. The results are those of serial, bit for bit.",
      .traits = {.auto_choice = AutoChoice::always},
      .settings = {},
      .counters = ordered_counters(),
      .make_host = [](std::uint32_t threads, const SettingTexts&) { return std::make_unique<OrderedHost>(threads); },
      .make_device = [](const DeviceStrategyPlace& place,
                        const SettingTexts&) { return std::make_unique<OrderedOnDevice>(place); },
      .kernels = {emulated_kernel<OrderedRun<EmulatedPlatform>, OrderedArguments<DeviceSpace>>(kName)}};
  return kStrategy;
}

}  // namespace kilokv::engine
