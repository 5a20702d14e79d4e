#include "engine/exec/device/device_strategy.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "engine/exec/papers/stage_scratch.hpp"
#include "engine/exec/papers/ticketed_scratch.hpp"

namespace kilokv::engine {
namespace {

class OrderedOnDevice final : public DeviceStrategy {
 public:
  OrderedOnDevice(FirstEpochs first, Device* device, DeviceKernels* kernels)
      : device_(*device), kernels_(*kernels), reservations_(device), epochs_(first.reservations) {}

  bool leaves_deltas() const override { return OrderedArguments<DeviceSpace>::kLeavesDeltas; }
  std::uint32_t threads(std::uint32_t transactions) const override { return kernels_.ordered_threads(transactions); }

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
    // ~0 is of no epoch.
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
    a.tuning = kernels_.tuning();
    return kernels_.ordered(stream, a);
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
  DeviceBuffer reservations_;
  EpochCounter epochs_;
  // Places of the batch.
  std::size_t words_ = 0, counts_ = 0, delta_sums_ = 0, op_adds_ = 0, undo_ = 0, pass_of_ = 0, chain_of_ = 0,
              undecided_ = 0;
};

class TicketedOnDevice final : public DeviceStrategy {
 public:
  TicketedOnDevice(TicketedStrategy strategy, const TicketedTuning& tuning, Device* device, DeviceKernels* kernels)
      : strategy_(strategy), tuning_(tuning), device_(*device), kernels_(*kernels), locks_(device) {
    tuning_.idle_sweeps_max = kIdleSweepsMax;
    const std::uint32_t asked_bits = static_cast<std::uint32_t>(std::bit_width(tuning.local.stage_blocks) - 1);
    part_bits_max_ = std::min(asked_bits, kernels->part_bits_max());
  }

  bool leaves_deltas() const override { return TicketedArguments<DeviceSpace>::kLeavesDeltas; }
  void begin(const ResolvedBatch& batch, const BatchRecords& records) override {
    if (!has_stage()) return find_class_ends(batch, &class_ends_);
    plan_.make(batch, records, std::min(tuning_.local.staged_records, stage_slots_max(part_bits_max_)));
    class_ends_ = plan_.class_end();
    part_bits_ = 0;
    while (part_bits_ < part_bits_max_ && !is_enough(part_bits_)) ++part_bits_;
  }

  std::uint32_t threads(std::uint32_t transactions) const override {
    const std::uint32_t each = std::max(tuning_.transactions_per_thread, 1u);
    if (has_stage()) {
      const std::uint32_t staging = stage_threads();
      const std::uint32_t others =
          std::max((plan_.beside_stage() + each - 1) / each + staging, (plan_.behind_stage() + each - 1) / each);
      const std::uint64_t words =
          stage_part_words(plan_.staged(), tuning_.local.signature_bits, staging, kernels_.group_width(), part_bits_);
      return kernels_.local_threads(std::max(others, staging), words, part_bits_, tuning_.local.times);
    }
    return kernels_.ticketed_threads(strategy_, (transactions + each - 1) / each);
  }

  void add_columns(const ResolvedBatch&, const BatchShape& shape, BlockSection section, BlockLayout* layout) override {
    const auto n = static_cast<std::uint32_t>(shape.transactions);
    const std::size_t uses = 2 * shape.guards + shape.operations;
    switch (section) {
      case BlockSection::sent:
        class_end_ = layout->add<std::uint32_t>(class_ends_.size());
        if (has_stage()) add_plan(layout);
        break;
      case BlockSection::returned:
        words_ = layout->add<std::uint64_t>(kTicketedWords);
        counts_ = layout->add<TicketedCounts>(shape.threads / kernels_.group_width());
        if (has_stage()) times_ = layout->add<LocalTimes>(timed_threads());
        break;
      case BlockSection::zeroed:
        if (strategy_ == TicketedStrategy::kilo) add_kilo_zeroed(n, layout);
        break;
      case BlockSection::scratch:
        if (strategy_ == TicketedStrategy::kilo) {
          accesses_ = layout->add<std::uint32_t>((std::size_t{tuning_.kilo.buffered} + 1) * n);
          spill_ = layout->add<std::uint32_t>(uses);
        }
        use_entry_ = layout->add<std::uint32_t>(uses);
        entry_record_ = layout->add<std::uint32_t>(uses);
        entry_head_ = layout->add<std::uint32_t>(uses);
        entry_cell_ = layout->add<std::uint64_t>(2 * uses);
        entry_version_ = layout->add<std::uint64_t>(uses);
        entry_tag_ = layout->add<std::uint64_t>(uses);
        entry_flags_ = layout->add<std::uint8_t>(uses);
        entry_count_ = layout->add<std::uint32_t>(n);
        tries_ = layout->add<std::uint8_t>(n);
        pass_of_ = layout->add<std::uint32_t>(n);
        undecided_ = layout->add<std::uint32_t>(undecided_slots(n, shape.threads));
        break;
    }
  }

  void pack(std::byte* staging) override {
    const auto put = [staging](std::size_t place, const std::vector<std::uint32_t>& column) {
      if (!column.empty()) std::memcpy(staging + place, column.data(), column.size() * sizeof(column[0]));
    };
    put(class_end_, class_ends_);
    if (!has_stage()) return;
    put(hot_end_, plan_.hot_end());
    put(behind_, plan_.behind());
    put(slot_of_, plan_.slot_of());
    put(record_of_, plan_.record_of());
    put(order_, plan_.order());
  }

  // Lock words are free and of any version between batches, and unclaimed; new ones are all zero, like the clock before
  // them. A batch that was given up may leave others: then the device is given up, too.
  Status reserve(DeviceStream stream, const BatchShape& shape) override {
    const std::size_t before = locks_.bytes();
    const std::uint64_t words = kClockWords + lock_words_of(shape.records, tuning_.records_per_lock);
    Status status = locks_.reserve_growing(words * sizeof(std::uint64_t));
    if (!status.ok() || locks_.bytes() == before) return status;
    return device_.fill(stream, locks_.address(), 0, locks_.bytes());
  }

  Status launch(DeviceStream stream, const DeviceBuffer& block, const BatchArguments<DeviceSpace>& batch,
                const BatchShape& shape) override {
    TicketedArguments<DeviceSpace> a;
    static_cast<BatchArguments<DeviceSpace>&>(a) = batch;
    a.class_end = block.at<const std::uint32_t>(class_end_);
    a.clock = locks_.at<std::uint64_t>(0);
    a.locks = locks_.at<std::uint64_t>(kClockWords * sizeof(std::uint64_t));
    a.use_entry = block.at<std::uint32_t>(use_entry_);
    a.entry_record = block.at<std::uint32_t>(entry_record_);
    a.entry_head = block.at<std::uint32_t>(entry_head_);
    a.entry_count = block.at<std::uint32_t>(entry_count_);
    a.entry_cell = block.at<std::uint64_t>(entry_cell_);
    a.entry_version = block.at<std::uint64_t>(entry_version_);
    a.entry_tag = block.at<std::uint64_t>(entry_tag_);
    a.entry_flags = block.at<std::uint8_t>(entry_flags_);
    a.tries = block.at<std::uint8_t>(tries_);
    a.pass_of = block.at<std::uint32_t>(pass_of_);
    a.undecided = block.at<std::uint32_t>(undecided_);
    a.words = block.at<std::uint64_t>(words_);
    a.counts = block.at<TicketedCounts>(counts_);
    a.classes = static_cast<std::uint32_t>(class_ends_.size());
    a.threads = shape.threads;
    a.tuning = tuning_;
    if (strategy_ == TicketedStrategy::kilo) a.kilo = kilo_arguments(block);
    if (has_stage()) a.local = local_arguments(block);
    return kernels_.ticketed(stream, strategy_, a);
  }

  void report(const BatchHeader& header, const BatchShape& shape, const std::byte* staging, BatchResults* results,
              ExecutionReport* report) override {
    report_ticketed(
        name_of(strategy_), header, {reinterpret_cast<const std::uint64_t*>(staging + words_), kTicketedWords},
        {reinterpret_cast<const TicketedCounts*>(staging + counts_), shape.threads / kernels_.group_width()}, results,
        report);
    if (!has_stage()) return;
    report->counters.add("stage_blocks", 1u << part_bits_, CounterKind::largest);
    add_times({reinterpret_cast<const LocalTimes*>(staging + times_), timed_threads()}, report);
  }

 private:
  void add_kilo_zeroed(std::uint32_t n, BlockLayout* layout) {
    const KiloTuning& kilo = tuning_.kilo;
    kilo_words_ = layout->add<std::uint64_t>(kilo_words(kilo.units));
    slots_ = layout->add<std::uint64_t>(n);
    hazards_ = layout->add<std::uint32_t>(n);
    table_ = layout->add<std::uint64_t>(std::size_t{kilo.units} * kilo.history_entries);
    filter_ = layout->add<std::uint32_t>(std::size_t{kilo.units} * kilo.filter_buckets);
  }
  KiloArguments<DeviceSpace> kilo_arguments(const DeviceBuffer& block) const {
    KiloArguments<DeviceSpace> a;
    a.words = block.at<std::uint64_t>(kilo_words_);
    a.slots = block.at<std::uint64_t>(slots_);
    a.hazards = block.at<std::uint32_t>(hazards_);
    a.table = block.at<std::uint64_t>(table_);
    a.filter = block.at<std::uint32_t>(filter_);
    a.accesses = block.at<std::uint32_t>(accesses_);
    a.spill = block.at<std::uint32_t>(spill_);
    return a;
  }

  bool has_stage() const { return strategy_ == TicketedStrategy::local; }
  std::uint32_t stage_threads() const { return kernels_.stage_threads(part_bits_); }
  std::uint32_t timed_threads() const { return tuning_.local.times ? stage_threads() : 0; }
  std::uint32_t stage_slots_max(std::uint32_t part_bits) const {
    return kernels_.stage_slots_max(tuning_.local.signature_bits, part_bits);
  }
  // Whether a stage in 2^part_bits blocks has room for the plan's records, and threads for its transactions: more
  // blocks make each access slower, and each lane's look at the others longer.
  bool is_enough(std::uint32_t part_bits) const {
    const std::uint64_t each = std::max(tuning_.transactions_per_thread, 1u);
    return plan_.staged() <= stage_slots_max(part_bits) && plan_.hot() <= each * kernels_.stage_threads(part_bits);
  }
  // In a launch of that many threads.
  std::uint64_t undecided_slots(std::uint32_t transactions, std::uint32_t threads) const {
    const std::uint32_t width = kernels_.group_width(), each = tuning_.transactions_per_thread;
    if (has_stage()) return plan_.slots(stage_threads(), threads, width, each);
    return position_room(transactions, threads, width, each);
  }
  void add_plan(BlockLayout* layout) {
    hot_end_ = layout->add<std::uint32_t>(plan_.hot_end().size());
    behind_ = layout->add<std::uint32_t>(plan_.behind().size());
    slot_of_ = layout->add<std::uint32_t>(plan_.slot_of().size());
    record_of_ = layout->add<std::uint32_t>(plan_.record_of().size());
    order_ = layout->add<std::uint32_t>(plan_.order().size());
  }
  LocalArguments<DeviceSpace> local_arguments(const DeviceBuffer& block) const {
    LocalArguments<DeviceSpace> a;
    if (!plan_.slot_of().empty()) {
      a.slot_of = block.at<const std::uint32_t>(slot_of_);
      a.record_of = block.at<const std::uint32_t>(record_of_);
      a.order = block.at<const std::uint32_t>(order_);
    }
    a.hot_end = block.at<const std::uint32_t>(hot_end_);
    a.behind = block.at<const std::uint32_t>(behind_);
    a.staged = plan_.staged();
    if (tuning_.local.times) a.times = block.at<LocalTimes>(times_);
    a.part_bits = part_bits_;
    a.threads = stage_threads();
    a.hot_slots =
        static_cast<std::uint32_t>(plan_.hot_slots(a.threads, kernels_.group_width(), tuning_.transactions_per_thread));
    return a;
  }

  static constexpr std::size_t kClockWords = 2;  // the second for alignment: a lock's two words share a line
  // A sweep takes a device some microseconds: the kernel gives up before the host gives the device up.
  static constexpr std::uint32_t kIdleSweepsMax = 1u << 20;

  TicketedStrategy strategy_;
  TicketedTuning tuning_;
  Device& device_;
  DeviceKernels& kernels_;
  DeviceBuffer locks_;  // the clock, then the locks
  std::vector<std::uint32_t> class_ends_;
  StagePlan plan_;  // of local
  std::uint32_t part_bits_max_ = 0, part_bits_ = 0;
  // Places of the batch.
  std::size_t class_end_ = 0, words_ = 0, counts_ = 0, use_entry_ = 0, entry_record_ = 0, entry_head_ = 0;
  std::size_t entry_cell_ = 0, entry_version_ = 0, entry_tag_ = 0, entry_flags_ = 0, entry_count_ = 0;
  std::size_t tries_ = 0, pass_of_ = 0, undecided_ = 0;
  std::size_t kilo_words_ = 0, slots_ = 0, hazards_ = 0, table_ = 0, filter_ = 0, accesses_ = 0, spill_ = 0;
  std::size_t times_ = 0, hot_end_ = 0, behind_ = 0, slot_of_ = 0, record_of_ = 0, order_ = 0;
};

}  // namespace

std::unique_ptr<DeviceStrategy> make_device_strategy(const std::string& name, const TicketedTuning& tuning,
                                                     FirstEpochs first, Device* device, DeviceKernels* kernels) {
  if (name == "ordered") return std::make_unique<OrderedOnDevice>(first, device, kernels);
  for (const TicketedStrategy strategy : kTicketedStrategies) {
    if (name == name_of(strategy)) return std::make_unique<TicketedOnDevice>(strategy, tuning, device, kernels);
  }
  return nullptr;
}

}  // namespace kilokv::engine
