#include "engine/stm/papers/local.hpp"

#include <algorithm>
#include <bit>

#include "engine/exec/papers/stage_scratch.hpp"
#include "engine/exec/papers/ticketed_strategy.hpp"

namespace kilokv::engine {
namespace {

constexpr const char *kName = "local", *kInClusters = "local in clusters", *kTimed = "local with times";

// Its stage is in the shared words of one block, or is spread over those of all blocks of a cluster.
class LocalOnDevice final : public TicketedOnDeviceOf<LocalArguments<DeviceSpace>> {
 public:
  LocalOnDevice(const char* strategy, const LocalArguments<DeviceSpace>& tuned, const DeviceStrategyPlace& place)
      : TicketedOnDeviceOf(strategy, tuned, place),
        in_block_(place.kernels->find(tuning().times ? kTimed : kName)),
        in_clusters_(place.kernels->find(kInClusters)) {
    const std::uint32_t blocks = kernels_.cluster_blocks_max(in_clusters_, tuning().stage_blocks);
    part_bits_max_ = static_cast<std::uint32_t>(std::bit_width(blocks) - 1);
  }

  void begin(const ResolvedBatch& batch, const BatchRecords& records) override {
    plan_.make(batch, records, std::min(tuning().staged_records, slots_max(part_bits_max_)));
    class_ends_ = plan_.class_end();
    part_bits_ = 0;
    while (part_bits_ < part_bits_max_ && !is_enough(part_bits_)) ++part_bits_;
  }

  std::uint32_t threads(std::uint32_t) const override {
    const std::uint32_t each = std::max(transactions_per_thread(), 1u), staging = stage_threads(part_bits_);
    const std::uint32_t others =
        std::max((plan_.beside_stage() + each - 1) / each + staging, (plan_.behind_stage() + each - 1) / each);
    return kernels_.threads(kernel(), std::max(others, staging), part_words(), 1u << part_bits_);
  }

  void add_columns(const ResolvedBatch& batch, const BatchShape& shape, BlockSection section,
                   BlockLayout* layout) override {
    if (section == BlockSection::sent) {
      hot_end_ = layout->add<std::uint32_t>(plan_.hot_end().size());
      behind_ = layout->add<std::uint32_t>(plan_.behind().size());
      slot_of_ = layout->add<std::uint32_t>(plan_.slot_of().size());
      record_of_ = layout->add<std::uint32_t>(plan_.record_of().size());
      order_ = layout->add<std::uint32_t>(plan_.order().size());
    }
    if (section == BlockSection::returned) times_ = layout->add<std::uint64_t>(timed_words());
    TicketedOnDeviceOf::add_columns(batch, shape, section, layout);
  }

  void pack(std::byte* staging) override {
    TicketedOnDeviceOf::pack(staging);
    put(staging, hot_end_, plan_.hot_end());
    put(staging, behind_, plan_.behind());
    put(staging, slot_of_, plan_.slot_of());
    put(staging, record_of_, plan_.record_of());
    put(staging, order_, plan_.order());
  }

  void report(const BatchHeader& header, const BatchShape& shape, const std::byte* staging, BatchResults* results,
              ExecutionReport* report) override {
    TicketedOnDeviceOf::report(header, shape, staging, results, report);
    report->counters.add(kStageBlocks, 1u << part_bits_, CounterKind::largest);
    add_times({reinterpret_cast<const std::uint64_t*>(staging + times_), timed_words()}, report);
  }

  static constexpr const char* kStageBlocks = "stage_blocks";  // the number of blocks that held the stage

 private:
  std::uint64_t undecided_slots(std::uint32_t, std::uint32_t threads) const override {
    return plan_.slots(stage_threads(part_bits_), threads, kernels_.group_width(), transactions_per_thread());
  }

  void add_own(const DeviceBuffer& block, LocalArguments<DeviceSpace>* arguments) const override {
    LocalColumns<DeviceSpace>& local = arguments->local;
    if (!plan_.slot_of().empty()) {
      local.slot_of = block.at<const std::uint32_t>(slot_of_);
      local.record_of = block.at<const std::uint32_t>(record_of_);
      local.order = block.at<const std::uint32_t>(order_);
    }
    local.hot_end = block.at<const std::uint32_t>(hot_end_);
    local.behind = block.at<const std::uint32_t>(behind_);
    local.staged = plan_.staged();
    if (tuning().times) local.times = block.at<std::uint64_t>(times_);
    local.part_bits = part_bits_;
    local.threads = stage_threads(part_bits_);
    local.hot_slots =
        static_cast<std::uint32_t>(plan_.hot_slots(local.threads, kernels_.group_width(), transactions_per_thread()));
  }

  Status launch_kernel(DeviceStream stream, const LocalArguments<DeviceSpace>& arguments,
                       std::uint32_t threads) override {
    return kernels_.launch(stream, kernel(), &arguments,
                           {.threads = threads, .shared_words = part_words(), .cluster_blocks = 1u << part_bits_});
  }

  const LocalTuning& tuning() const { return tuned_.local_tuning; }
  KernelHandle kernel() const { return part_bits_ > 0 ? in_clusters_ : in_block_; }
  // How many threads share the stage.
  std::uint32_t stage_threads(std::uint32_t part_bits) const { return kernels_.block_threads(kernel()) << part_bits; }
  std::size_t timed_words() const {
    return tuning().times ? std::size_t{stage_threads(part_bits_)} * kLocalTimeWords : 0;
  }
  std::uint64_t part_words() const {
    return stage_part_words(plan_.staged(), tuning().signature_bits, stage_threads(part_bits_), kernels_.group_width(),
                            part_bits_);
  }
  std::uint32_t slots_max(std::uint32_t part_bits) const {
    return stage_slots_max(kernels_.shared_words_max(), tuning().signature_bits, stage_threads(part_bits),
                           kernels_.group_width(), part_bits);
  }
  // Whether a stage in 2^part_bits blocks has room for the plan's records, and enough threads for its transactions. The
  // smallest number of blocks that is enough is best. With more blocks, each access is slower, and each lane looks at
  // more other lanes.
  bool is_enough(std::uint32_t part_bits) const {
    const std::uint64_t each = std::max(transactions_per_thread(), 1u);
    return plan_.staged() <= slots_max(part_bits) && plan_.hot() <= each * stage_threads(part_bits);
  }

  KernelHandle in_block_, in_clusters_;
  StagePlan plan_;
  std::uint32_t part_bits_max_ = 0, part_bits_ = 0;
  // Offsets of the batch's columns.
  std::size_t times_ = 0, hot_end_ = 0, behind_ = 0, slot_of_ = 0, record_of_ = 0, order_ = 0;
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
