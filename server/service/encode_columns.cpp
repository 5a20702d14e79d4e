#include "server/service/encode.hpp"

namespace kilokv::server {
namespace {

constexpr std::uint64_t kTransactionBytes = 24;  // about one element of each transaction column
constexpr std::uint64_t kReadBytes = 25;         // about one element of each read column, without key and value

std::uint64_t add_read(const ReadValue& value, v1::ReadColumns* columns) {
  columns->mutable_type()->push_back(static_cast<char>(value.type));
  columns->add_integer(value.type == ValueType::integer ? value.integer : 0);
  columns->add_version(value.version.value_or(0));
  std::string* own_write = columns->mutable_own_write();
  if (!value.version.has_value()) {
    own_write->resize(columns->type().size() - 1, 0);  // catches up: left out while nobody read its own write
    own_write->push_back(1);
  } else if (!own_write->empty()) {
    own_write->push_back(0);
  }
  columns->mutable_key_bytes()->append(value.key);
  columns->add_key_ends(static_cast<std::uint32_t>(columns->key_bytes().size()));
  if (value.type != ValueType::bytes) return kReadBytes + value.key.size();
  columns->mutable_value_bytes()->append(value.bytes);
  columns->add_value_ends(static_cast<std::uint32_t>(columns->value_bytes().size()));
  return kReadBytes + value.key.size() + value.bytes.size();
}

std::uint8_t outcome_of(const TransactionResult& result) {
  return result.cancelled ? static_cast<std::uint8_t>(v1::OUTCOME_CANCELLED)
                          : static_cast<std::uint8_t>(result.outcome);
}

bool by_guard(const TransactionResult& result) {
  return result.failed_in == engine::FailedIn::guards &&
         (result.outcome == engine::Outcome::guard_failed || result.outcome == engine::Outcome::wait_expired);
}

}  // namespace

ColumnsEncoder::ColumnsEncoder(std::function<v1::ResultColumns*()> next, std::uint64_t message_bytes_max)
    : next_(std::move(next)), bytes_max_(message_bytes_max) {}

void ColumnsEncoder::transaction(const TransactionResult& result) {
  settle_guard_value();
  // A message speaks of one batch; what a session has stored can come from several.
  if (columns_ == nullptr || bytes_ >= bytes_max_ || result.batch != columns_->batch()) open(result);
  const auto position = static_cast<std::uint32_t>(columns_->outcome().size());
  const std::uint8_t outcome = outcome_of(result);
  const bool committed = outcome == v1::OUTCOME_COMMITTED;
  columns_->add_index(result.index);
  columns_->mutable_outcome()->push_back(static_cast<char>(outcome));
  columns_->add_rank(result.rank);
  columns_->mutable_wrote()->push_back(result.version.has_value() ? 1 : 0);
  columns_->add_admitted_batch(result.admitted_batch);
  columns_->mutable_failed_in()->push_back(static_cast<char>(result.failed_in));
  columns_->add_failed_index(result.failed_in == engine::FailedIn::none ? 0 : result.failed_index);
  columns_->add_read_ends(static_cast<std::uint32_t>(columns_->reads().type().size()));
  columns_->mutable_reads_dropped()->push_back(result.reads_dropped ? 1 : 0);
  if (result.version) columns_->set_first_version(*result.version - result.rank);
  has_index_ |= result.index != position;
  has_wrote_ |= result.version.has_value() != committed;
  has_admitted_ |= result.admitted_batch != result.batch;
  has_failed_ |= result.failed_in != engine::FailedIn::none;
  has_dropped_ |= result.reads_dropped;
  bytes_ += kTransactionBytes;
  transaction_begin_ = bytes_;
  guard_value_due_ = by_guard(result);
}

void ColumnsEncoder::guard_value(const ReadValue& value) {
  guard_value_due_ = false;
  bytes_ += add_read(value, columns_->mutable_guard_values());
}

void ColumnsEncoder::read(std::uint32_t operation, const ReadValue& value) {
  if (bytes_ - transaction_begin_ > kReadsSlack * bytes_max_) {
    columns_->mutable_reads_dropped()->back() = 1;
    has_dropped_ = true;
    return;
  }
  v1::ReadColumns* reads = columns_->mutable_reads();
  reads->add_operation(operation);
  bytes_ += add_read(value, reads);
  columns_->set_read_ends(columns_->read_ends_size() - 1, static_cast<std::uint32_t>(reads->type().size()));
}

void ColumnsEncoder::settle_guard_value() {
  if (!guard_value_due_) return;
  ReadValue nothing;
  nothing.version = 0;
  guard_value(nothing);
}

void ColumnsEncoder::finish() {
  settle_guard_value();
  if (columns_ != nullptr) close();
}

void ColumnsEncoder::open(const TransactionResult& first) {
  finish();
  columns_ = next_();
  columns_->set_batch(first.batch);
  columns_->set_batch_time_us(first.batch_time_us);
  bytes_ = 0;
  has_index_ = has_wrote_ = has_admitted_ = has_failed_ = has_dropped_ = false;
}

void ColumnsEncoder::close() {
  if (!has_index_) columns_->clear_index();
  if (!has_wrote_) columns_->clear_wrote();
  if (!has_admitted_) columns_->clear_admitted_batch();
  if (!has_failed_) {
    columns_->clear_failed_in();
    columns_->clear_failed_index();
  }
  if (!has_dropped_) columns_->clear_reads_dropped();
  if (columns_->reads().type().empty()) columns_->clear_read_ends();
  columns_ = nullptr;
}

}  // namespace kilokv::server
