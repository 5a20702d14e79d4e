#include "engine/stm/papers/local.hpp"

#include <algorithm>
#include <bit>

#include "engine/exec/papers/local_inputs.hpp"
#include "engine/exec/papers/ticketed_strategy.hpp"

namespace kilokv::engine {
namespace {

constexpr const char *kName = "local", *kInClusters = "local in clusters", *kTimed = "local with times";

// Its stage is in the shared words of one block, or is spread over those of all blocks of a cluster.
class LocalOnDevice final : public TicketedOnDevice<LocalArguments<HostSpace>, LocalArguments<DeviceSpace>> {
 public:
  LocalOnDevice(const char* strategy, const LocalArguments<HostSpace>& tuned, const DeviceStrategyPlace& place)
      : TicketedOnDevice(strategy, tuned, place),
        in_block_(place.kernels->find(tuning().times ? kTimed : kName)),
        in_clusters_(place.kernels->find(kInClusters)) {
    const std::uint32_t blocks = kernels_.cluster_blocks_max(in_clusters_, tuning().stage_blocks);
    part_bits_max_ = static_cast<std::uint32_t>(std::bit_width(blocks) - 1);
  }

  bool needs_numbers() const override { return true; }  // for the plan of the stage
  void open(const ResolvedBatch& batch, BatchRecords* records, BatchResults* results, DeviceBlock* block) override {
    const StagePlan& plan = inputs_.plan(batch, *records, std::min(tuning().staged_records, slots_max(part_bits_max_)));
    part_bits_ = 0;
    while (part_bits_ < part_bits_max_ && !is_enough(plan, part_bits_)) ++part_bits_;
    part_words_ = stage_part_words(plan.staged(), tuning().signature_bits, stage_threads(part_bits_),
                                   kernels_.group_width(), part_bits_);
    on_host_ = tuned_;
    shape_ = inputs_.fill(batch, threads_of(threads(plan)), records, results, &on_host_, stage_threads(part_bits_),
                          part_bits_);
    add_columns(block);
  }

  Status launch(DeviceStream stream) override {
    return kernels_.launch(
        stream, kernel(), &on_device_,
        {.threads = shape_.threads.number, .shared_words = part_words_, .cluster_blocks = 1u << part_bits_});
  }

  void close(BatchResults* results, ExecutionReport* report) override {
    TicketedOnDevice::close(results, report);
    report->counters.add(kStageBlocks, 1u << part_bits_, CounterKind::largest);
  }

  static constexpr const char* kStageBlocks = "stage_blocks";  // the number of blocks that held the stage

 private:
  const LocalTuning& tuning() const { return tuned_.local_tuning; }
  KernelHandle kernel() const { return part_bits_ > 0 ? in_clusters_ : in_block_; }
  // How many threads share the stage.
  std::uint32_t stage_threads(std::uint32_t part_bits) const { return kernels_.block_threads(kernel()) << part_bits; }
  // For the launch.
  std::uint32_t threads(const StagePlan& plan) const {
    const std::uint32_t each = transactions_per_thread(), staging = stage_threads(part_bits_);
    const std::uint32_t others =
        std::max((plan.beside_stage() + each - 1) / each + staging, (plan.behind_stage() + each - 1) / each);
    return kernels_.threads(kernel(), std::max(others, staging), part_words_, 1u << part_bits_);
  }
  std::uint32_t slots_max(std::uint32_t part_bits) const {
    return stage_slots_max(kernels_.shared_words_max(), tuning().signature_bits, stage_threads(part_bits),
                           kernels_.group_width(), part_bits);
  }
  // Whether a stage in 2^part_bits blocks has room for the plan's records, and enough threads for its transactions. The
  // smallest number of blocks that is enough is best. With more blocks, each access is slower, and each lane looks at
  // more other lanes.
  bool is_enough(const StagePlan& plan, std::uint32_t part_bits) const {
    const std::uint64_t each = transactions_per_thread();
    return plan.staged() <= slots_max(part_bits) && plan.hot() <= each * stage_threads(part_bits);
  }

  KernelHandle in_block_, in_clusters_;
  std::uint32_t part_bits_max_ = 0;
  // These belong to the current batch.
  std::uint32_t part_bits_ = 0;
  std::uint64_t part_words_ = 0;
};

void tune(const SettingTexts& texts, TicketedTuning* tuning, LocalTuning* local) {
  assign_settings(texts, kLockingSettings, tuning);
  assign_settings(texts, kLocalSettings, local);
}

Status check(const SettingTexts& texts) {
  TicketedTuning tuning;
  LocalTuning local;
  tune(texts, &tuning, &local);
  const bool in_one_block = local.staged_records != 0 && local.stage_blocks == 1;
  if (!local.times || in_one_block) return {};
  const char* allowed = local.staged_records == 0
                            ? "off where --staged-records is 0: there is no stage"
                            : "off where --stage-blocks is not 1: only a stage in one block is measured";
  return Status::invalid({"stage-times", allowed, "on", "--stage-times"});
}

// The stage in several blocks of a CUDA device has not passed all checks on a GPU yet (docs/gpu.md).
Status check_device(const DeviceInfo& device, const SettingTexts& texts) {
  LocalTuning local;
  assign_settings(texts, kLocalSettings, &local);
  if (device.kind != "cuda" || local.stage_blocks == 1) return {};
  return Status::invalid({"stage-blocks",
                          "1 on a CUDA device, because a stage in several blocks has not passed all checks on a GPU "
                          "yet (docs/gpu.md)",
                          std::to_string(local.stage_blocks), "--stage-blocks"});
}

// Makes the timed protocol only if times are wanted, because reading the clock takes registers.
std::unique_ptr<Executor> make_host(std::uint32_t threads, const SettingTexts& texts) {
  LocalArguments<HostSpace> tuned;
  tune(texts, &tuned.tuning, &tuned.local_tuning);
  if (!tuned.local_tuning.times) {
    return std::make_unique<TicketedHost<Local<HostPlatform>>>(kName, threads, tuned);
  }
  return std::make_unique<TicketedHost<Local<HostPlatform, TimedLocalRules>>>(kName, threads, tuned);
}

Strategy make_strategy() {
  using Untimed = Local<EmulatedPlatform>;
  using Timed = Local<EmulatedPlatform, TimedLocalRules>;
  using Arguments = LocalArguments<DeviceSpace>;
  Strategy strategy = ticketed_strategy<Local<HostPlatform>, Untimed, LocalOnDevice>(
      kName,
      "Finds an order of its own (GPU-LocalTM). Transactions on the most wanted records run on a stage in fast "
      "memory. The others run as in prstm.",
      {.has_locks = true, .auto_choice = AutoChoice::any}, shown_settings(kLockingSettings, kLocalSettings),
      [](const SettingTexts& texts, auto* arguments) { tune(texts, &arguments->tuning, &arguments->local_tuning); });
  strategy.counters.push_back(LocalOnDevice::kStageBlocks);
  strategy.check = check;
  strategy.check_device = check_device;
  strategy.make_host = make_host;
  strategy.kernels = {
      emulated_kernel<TicketedRun<EmulatedPlatform, Untimed>, Arguments>(kName),
      emulated_kernel<TicketedRun<EmulatedPlatform, Untimed>, Arguments>(kInClusters),
      emulated_kernel<TicketedRun<EmulatedPlatform, Timed>, Arguments>(kTimed),
  };
  return strategy;
}

}  // namespace

const Strategy& local_strategy() {
  static const Strategy kStrategy = make_strategy();
  return kStrategy;
}

}  // namespace kilokv::engine
