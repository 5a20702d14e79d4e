#include "engine/workloads/invariant.hpp"

namespace kilokv::engine {

void InvariantCheck::add(std::string_view key, ValueType type, std::int64_t integer, std::string_view bytes) {
  if (type == ValueType::absent) return;
  ++records_;
  if (type == ValueType::integer) {
    total_ = static_cast<std::int64_t>(static_cast<std::uint64_t>(total_) + static_cast<std::uint64_t>(integer));
  }
  if (!bad_record_.empty()) return;
  if (rule_.never_negative && type == ValueType::integer && integer < 0) {
    bad_record_ = std::string(key) + " is " + std::to_string(integer) + ", below 0";
  }
  if (!rule_.marked_bytes) return;
  const std::string_view mark = key.substr(0, *rule_.marked_bytes);
  if (type != ValueType::bytes || bytes.size() != *rule_.marked_bytes || !bytes.starts_with(mark)) {
    bad_record_ = std::string(key) + " does not hold " + std::to_string(*rule_.marked_bytes) + " bytes of its own";
  }
}

std::string InvariantCheck::violation() const {
  if (!bad_record_.empty()) return bad_record_;
  if (rule_.total && total_ != *rule_.total) {
    return "total: expected " + std::to_string(*rule_.total) + ", got " + std::to_string(total_);
  }
  if (rule_.records && records_ != *rule_.records) {
    return "records: expected " + std::to_string(*rule_.records) + ", got " + std::to_string(records_);
  }
  if (rule_.records_max && records_ > *rule_.records_max) {
    return "records: expected at most " + std::to_string(*rule_.records_max) + ", got " + std::to_string(records_);
  }
  return {};
}

}  // namespace kilokv::engine
