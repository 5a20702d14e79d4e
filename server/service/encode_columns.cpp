#include "server/service/encode.hpp"

namespace kilokv::server {
namespace {

void add_read(const ReadValue& value, v1::ReadColumns* columns) {
  columns->mutable_type()->push_back(static_cast<char>(value.type));
  columns->add_integer(value.type == ValueType::integer ? value.integer : 0);
  columns->add_version(value.version.value_or(0));
  std::string* own_write = columns->mutable_own_write();
  if (!value.version.has_value()) {
    own_write->resize(columns->type().size() - 1,
                      0);  // fills in the elements so far: there was no column until a transaction read its own write
    own_write->push_back(1);
  } else if (!own_write->empty()) {
    own_write->push_back(0);
  }
  columns->mutable_key_bytes()->append(value.key);
  columns->add_key_ends(static_cast<std::uint32_t>(columns->key_bytes().size()));
  if (value.type != ValueType::bytes) return;
  columns->mutable_value_bytes()->append(value.bytes);
  columns->add_value_ends(static_cast<std::uint32_t>(columns->value_bytes().size()));
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

void ColumnsEncoder::put(const Transaction& transaction) {
  put_result(transaction.result);
  if (transaction.guard_value) {
    add_read(*transaction.guard_value, columns_->mutable_guard_values());
  } else if (by_guard(transaction.result)) {  // an empty value keeps guard_values as long as the transactions
    ReadValue nothing;
    nothing.version = 0;
    add_read(nothing, columns_->mutable_guard_values());
  }
  if (!transaction.reads.empty()) {
    v1::ReadColumns* reads = columns_->mutable_reads();
    for (const Read& read : transaction.reads) {
      reads->add_operation(read.operation);
      add_read(read.value, reads);
    }
  }
  columns_->add_read_ends(static_cast<std::uint32_t>(columns_->reads().type().size()));
}

void ColumnsEncoder::put_result(const TransactionResult& result) {
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
  columns_->mutable_reads_dropped()->push_back(result.reads_dropped ? 1 : 0);
  if (result.version) columns_->set_first_version(*result.version - result.rank);
  has_index_ |= result.index != position;
  has_wrote_ |= result.version.has_value() != committed;
  has_admitted_ |= result.admitted_batch != result.batch;
  has_failed_ |= result.failed_in != engine::FailedIn::none;
  has_dropped_ |= result.reads_dropped;
}

void ColumnsEncoder::begin_message(const TransactionResult& first) {
  end_message();
  columns_ = next_();
  columns_->set_batch(first.batch);
  columns_->set_batch_time_us(first.batch_time_us);
  has_index_ = has_wrote_ = has_admitted_ = has_failed_ = has_dropped_ = false;
}

void ColumnsEncoder::end_message() {
  if (columns_ == nullptr) return;
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
