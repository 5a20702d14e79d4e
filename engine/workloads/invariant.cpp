#include "engine/workloads/invariant.hpp"

namespace kilokv::engine {

namespace {

std::string differs(const char* what, const std::string& expected, const std::string& got) {
  return std::string(what) + ": expected " + expected + ", got " + got;
}

}  // namespace

void InvariantCheck::add(std::string_view key, ValueType type, std::int64_t integer, std::string_view bytes) {
  if (type == ValueType::absent) return;
  ++records_;
  if (type == ValueType::integer) {
    total_ = static_cast<std::int64_t>(static_cast<std::uint64_t>(total_) + static_cast<std::uint64_t>(integer));
  }
  if (!bad_record_.empty()) return;
  bad_record_ = problem_of(key, type, integer, bytes);
  if (bad_record_.empty() && rule_.audit) rule_.audit->add(key, integer, bytes);
}

std::string InvariantCheck::problem_of(std::string_view key, ValueType type, std::int64_t integer,
                                       std::string_view bytes) const {
  if (rule_.integers && type != ValueType::integer) return std::string(key) + " is no integer";
  if (rule_.never_negative && type == ValueType::integer && integer < 0) {
    return std::string(key) + " is " + std::to_string(integer) + ", below 0";
  }
  if (!rule_.marked_bytes) return {};
  const std::string_view mark = key.substr(0, *rule_.marked_bytes);
  if (type != ValueType::bytes || bytes.size() != *rule_.marked_bytes || !bytes.starts_with(mark)) {
    return std::string(key) + " does not hold " + std::to_string(*rule_.marked_bytes) + " bytes of its own";
  }
  return {};
}

std::string InvariantCheck::violation() const {
  if (!bad_record_.empty()) return bad_record_;
  if (rule_.total && total_ != *rule_.total) {
    return differs("total", std::to_string(*rule_.total), std::to_string(total_));
  }
  if (rule_.records && records_ != *rule_.records) {
    return differs("records", std::to_string(*rule_.records), std::to_string(records_));
  }
  if (rule_.records_max && records_ > *rule_.records_max) {
    return differs("records", "at most " + std::to_string(*rule_.records_max), std::to_string(records_));
  }
  return rule_.audit ? rule_.audit->violation() : std::string();
}

}  // namespace kilokv::engine
