// Results as plain data: tests build slices from them, and record what a slice showed. Thread safety: none.
#pragma once

#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "server/core/request.hpp"

namespace kilokv::server {

struct RecordedValue {
  std::uint32_t operation = 0;
  std::string key;
  ValueType type = ValueType::absent;
  std::int64_t integer = 0;
  std::string bytes;
  std::optional<Version> version;

  ReadValue view() const { return {key, type, integer, bytes, version}; }
};

struct RecordedResult {
  TransactionResult result;
  std::optional<RecordedValue> guard;
  std::vector<RecordedValue> reads;
};

class RecordedSlice : public ResultSlice {
 public:
  RecordedSlice() = default;
  explicit RecordedSlice(std::vector<RecordedResult> results) : results_(std::move(results)) {}

  std::uint32_t size() const override { return static_cast<std::uint32_t>(results_.size()); }
  void visit(ResultVisitor* visitor) const override {
    for (const RecordedResult& recorded : results_) {
      visitor->transaction(recorded.result);
      if (recorded.guard) {
        visitor->guard_value(recorded.guard->view());
      }
      for (const RecordedValue& read : recorded.reads) {
        visitor->read(read.operation, read.view());
      }
    }
  }

 private:
  std::vector<RecordedResult> results_;
};

// Writes each transaction as one line of text.
class LineVisitor : public ResultVisitor {
 public:
  void transaction(const TransactionResult& r) override {
    std::ostringstream line;
    line << r.index << " outcome=" << static_cast<int>(r.outcome) << (r.cancelled ? " cancelled" : "")
         << " failed=" << static_cast<int>(r.failed_in) << ":" << static_cast<std::int32_t>(r.failed_index)
         << " batch=" << r.batch << "/" << r.admitted_batch << " rank=" << r.rank << " time=" << r.batch_time_us
         << " version=" << (r.version ? std::to_string(*r.version) : "null") << (r.reads_dropped ? " dropped" : "");
    lines.push_back(line.str());
  }
  void guard_value(const ReadValue& value) override { lines.back() += " guard " + text(value); }
  void read(std::uint32_t operation, const ReadValue& value) override {
    lines.back() += " read" + std::to_string(operation) + " " + text(value);
  }

  std::vector<std::string> lines;

 private:
  static std::string text(const ReadValue& value) {
    return std::string(value.key) + "=" + std::to_string(static_cast<int>(value.type)) + ":" +
           std::to_string(value.integer) + ":" + std::string(value.bytes) + "@" +
           (value.version ? std::to_string(*value.version) : "null");
  }
};

inline std::vector<std::string> lines_of(const ResultSlice& slice) {
  LineVisitor visitor;
  slice.visit(&visitor);
  return visitor.lines;
}

}  // namespace kilokv::server
