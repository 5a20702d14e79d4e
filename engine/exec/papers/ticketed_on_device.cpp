#include "engine/exec/papers/ticketed_on_device.hpp"

#include <algorithm>
#include <cstring>

#include "engine/exec/papers/ticketed_scratch.hpp"

namespace kilokv::engine {

void TicketedOnDevice::begin(const ResolvedBatch& batch, const BatchRecords&) { find_class_ends(batch, &class_ends_); }

std::uint32_t TicketedOnDevice::threads(std::uint32_t transactions) const {
  const std::uint32_t each = std::max(tuning_.transactions_per_thread, 1u);
  return (transactions + each - 1) / each;
}

std::uint64_t TicketedOnDevice::undecided_slots(std::uint32_t transactions, std::uint32_t threads) const {
  return position_room(transactions, threads, kernels_.group_width(), tuning_.transactions_per_thread);
}

void TicketedOnDevice::add_columns(const ResolvedBatch&, const BatchShape& shape, BlockSection section,
                                   BlockLayout* layout) {
  const auto n = static_cast<std::uint32_t>(shape.transactions);
  const std::size_t uses = 2 * shape.guards + shape.operations;
  switch (section) {
    case BlockSection::sent: class_end_ = layout->add<std::uint32_t>(class_ends_.size()); break;
    case BlockSection::returned:
      words_ = layout->add<std::uint64_t>(kTicketedWords);
      counts_ = layout->add<TicketedCounts>(shape.threads / kernels_.group_width());
      break;
    case BlockSection::zeroed: break;
    case BlockSection::scratch:
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

void TicketedOnDevice::put(std::byte* staging, std::size_t offset, const std::vector<std::uint32_t>& column) {
  if (!column.empty()) std::memcpy(staging + offset, column.data(), column.size() * sizeof(column[0]));
}

void TicketedOnDevice::pack(std::byte* staging) { put(staging, class_end_, class_ends_); }

// Between batches, a lock word is free and unclaimed, with any version. New lock words are all zero, and so is the
// clock before them. A batch that was given up may leave lock words in another state. Then the device is given up, too.
Status TicketedOnDevice::reserve(DeviceStream stream, const BatchShape& shape) {
  const std::size_t before = locks_.bytes();
  const std::uint64_t words = kClockWords + lock_words_of(shape.records, tuning_.records_per_lock);
  Status status = locks_.reserve_growing(words * sizeof(std::uint64_t));
  if (!status.ok() || locks_.bytes() == before) return status;
  return device_.fill(stream, locks_.address(), 0, locks_.bytes());
}

void TicketedOnDevice::fill(const DeviceBuffer& block, const BatchArguments<DeviceSpace>& batch,
                            const BatchShape& shape, TicketedArguments<DeviceSpace>* arguments) const {
  TicketedArguments<DeviceSpace>& a = *arguments;
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
}

void TicketedOnDevice::report(const BatchHeader& header, const BatchShape& shape, const std::byte* staging,
                              BatchResults* results, ExecutionReport* report) {
  report_ticketed(strategy_, header, {reinterpret_cast<const std::uint64_t*>(staging + words_), kTicketedWords},
                  {reinterpret_cast<const TicketedCounts*>(staging + counts_), shape.threads / kernels_.group_width()},
                  results, report);
}

}  // namespace kilokv::engine
