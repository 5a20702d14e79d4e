// Runs a parallel strategy (device_strategy.hpp) on a CUDA device or on the emulated device. A batch is one copy to the
// device, three launches, and one copy back, all in one stream. The launches find the records of the keys in the
// device's table and number them, run the batch, and write the records back to that table.
//
// The caller compares the two tables by digests: of the cells that the keys had before the batch, and of what all
// writes have changed (exec/collect/write_back.hpp).
//
// The host memory for copies is pinned. It is kept between batches, and so is the device's memory. Thread safety: one
// caller at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/strategy_setting.hpp"
#include "engine/base/types.hpp"
#include "engine/exec/device/device_block.hpp"
#include "engine/exec/device/device_kernels.hpp"
#include "engine/exec/device/device_records.hpp"
#include "engine/exec/device/device_strategy.hpp"
#include "engine/exec/run/executor.hpp"
#include "engine/exec/validate/device_validator.hpp"

namespace kilokv::engine {

class DeviceExecutor final : public Executor {
 public:
  // Requires: what the constructor of HostStrategies requires.
  explicit DeviceExecutor(OpenedDevice opened, std::vector<std::string> strategies = {"ordered"},
                          const SettingTexts& settings = {}, FirstEpochs first = {});

  std::vector<std::string> strategies() const override { return names_; }
  void use(std::size_t strategy) override { strategy_ = strategies_[strategy].get(); }
  Status prepare(const RecordStore& store) override;
  bool needs_records() const override { return false; }
  Status run(const ResolvedBatch& batch, BatchRecords* records, BatchResults* results,
             ExecutionReport* report) override;
  Status validate(const RecordStore& store, const ReadSet& set, ValidatorLanes lanes, ValidatorResult* result) override;
  CellDigests digests() const override { return {bulk_on_host_.words[kBulkDigest], bulk_on_host_.words[kBulkChange]}; }
  std::size_t transactions_max() const override { return kTransactionsMax; }
  void changed(KeyId id) override { table_.changed(id); }
  const DeviceInfo* device() const override { return &opened_.device->info(); }
  std::size_t memory_bytes() const override { return block_.staging_bytes() + validator_.memory_bytes(); }

  const DeviceRecords& table() const { return table_; }

 private:
  // The largest number of transactions in a batch that the kernels of every strategy take.
  static constexpr std::size_t kTransactionsMax = std::size_t{1} << 24;

  // Lays out the columns of the batch, makes room for them, and binds the arguments of all kernels.
  Status bind(const ResolvedBatch& batch, BatchRecords* records, BatchResults* results);
  // Creates the stream and the marks.
  Status create_stream();
  Status launch();
  Status unpack(BatchResults* results, ExecutionReport* report);
  // Reports the bytes of the batch's copies, and the time of its copies and kernels.
  void measure(ExecutionReport* report);

  OpenedDevice opened_;
  std::vector<std::string> names_;
  std::vector<std::unique_ptr<DeviceStrategy>> strategies_;
  DeviceStrategy* strategy_;  // runs the next batch
  DeviceStream stream_{};
  bool has_stream_ = false;
  // Events before and after each part of a batch.
  enum Mark : std::uint8_t { kBegun, kSent, kRan, kReturned, kMarks };
  std::array<DeviceEvent, kMarks> marks_{};
  DeviceRecords table_;
  DeviceBlock block_;  // the columns of a batch
  // The run that finds and numbers the batch's records: where the host fills its columns, and what its kernels get.
  BulkArguments<HostSpace> bulk_on_host_;
  BulkArguments<DeviceSpace> bulk_;
  DeviceValidator validator_;
};

}  // namespace kilokv::engine
