#include "engine/stm/papers/kilo.hpp"

#include "engine/exec/papers/kilo_scratch.hpp"
#include "engine/exec/papers/ticketed_strategy.hpp"

namespace kilokv::engine {
namespace {

class KiloOnDevice final : public TicketedOnDeviceOf<KiloArguments<DeviceSpace>> {
 public:
  using TicketedOnDeviceOf::TicketedOnDeviceOf;

  void add_columns(const ResolvedBatch& batch, const BatchShape& shape, BlockSection section,
                   BlockLayout* layout) override {
    const KiloTuning& tuning = tuned_.kilo_tuning;
    const std::size_t n = shape.transactions, uses = 2 * shape.guards + shape.operations;
    if (section == BlockSection::zeroed) {
      words_ = layout->add<std::uint64_t>(kilo_words(tuning.units));
      slots_ = layout->add<std::uint64_t>(n);
      hazards_ = layout->add<std::uint32_t>(n);
      table_ = layout->add<std::uint64_t>(std::size_t{tuning.units} * tuning.history_entries);
      filter_ = layout->add<std::uint32_t>(std::size_t{tuning.units} * tuning.filter_buckets);
    }
    if (section == BlockSection::scratch) {
      accesses_ = layout->add<std::uint32_t>((std::size_t{tuning.buffered} + 1) * n);
      spill_ = layout->add<std::uint32_t>(uses);
    }
    TicketedOnDeviceOf::add_columns(batch, shape, section, layout);
  }

 private:
  void add_own(const DeviceBuffer& block, KiloArguments<DeviceSpace>* arguments) const override {
    KiloColumns<DeviceSpace>& kilo = arguments->kilo;
    kilo.words = block.at<std::uint64_t>(words_);
    kilo.slots = block.at<std::uint64_t>(slots_);
    kilo.hazards = block.at<std::uint32_t>(hazards_);
    kilo.table = block.at<std::uint64_t>(table_);
    kilo.filter = block.at<std::uint32_t>(filter_);
    kilo.accesses = block.at<std::uint32_t>(accesses_);
    kilo.spill = block.at<std::uint32_t>(spill_);
  }

  // Offsets of the batch's columns.
  std::size_t words_ = 0, slots_ = 0, hazards_ = 0, table_ = 0, filter_ = 0, accesses_ = 0, spill_ = 0;
};

}  // namespace

const Strategy& kilo_strategy() {
  static const Strategy kStrategy = ticketed_strategy<Kilo<HostPlatform>, Kilo<EmulatedPlatform>, KiloOnDevice>(
      "kilo",
      "Finds an order of its own (KILO TM). Validation is by value, and commits follow the order of commit IDs.",
      {.auto_choice = AutoChoice::any}, shown_settings(kTicketedSettings, kKiloSettings),
      [](const SettingTexts& texts, auto* arguments) {
        assign_settings(texts, kTicketedSettings, &arguments->tuning);
        assign_settings(texts, kKiloSettings, &arguments->kilo_tuning);
      });
  return kStrategy;
}

}  // namespace kilokv::engine
