// Results: merges the slices of an answer, and makes views of them (result_columns.hpp).
#include "kilokv/results.hpp"

#include <string>

#include "client/lib/src/error.hpp"
#include "client/lib/src/result_columns.hpp"

namespace kilokv::client {
namespace {

using Ends = google::protobuf::RepeatedField<std::uint32_t>;

std::uint8_t at_or_zero(const std::string& column, std::size_t i) {
  return column.empty() ? std::uint8_t{0} : static_cast<std::uint8_t>(column[i]);
}

std::string_view element(const Ends& ends, const std::string& bytes, int i) {
  const std::size_t begin = i == 0 ? 0 : ends.Get(i - 1);
  return std::string_view(bytes).substr(begin, ends.Get(i) - begin);
}

bool ends_valid(const Ends& ends, int count, std::size_t limit) {
  if (ends.size() != count) return false;
  std::uint32_t last = 0;
  for (const std::uint32_t end : ends) {
    if (end < last) return false;
    last = end;
  }
  return last <= limit;
}

bool optional(std::size_t size, std::size_t expected) { return size == 0 || size == expected; }

// Checks the columns of reads, and numbers their byte values.
bool number_reads(const v1::ReadColumns& reads, bool with_operation, std::vector<std::uint32_t>* bytes_index) {
  const std::size_t n = reads.type().size();
  const int count = static_cast<int>(n);
  if (with_operation && reads.operation_size() != count) return false;
  if (reads.integer_size() != count || reads.version_size() != count) return false;
  if (!optional(reads.own_write().size(), n)) return false;
  if (!ends_valid(reads.key_ends(), count, reads.key_bytes().size())) return false;
  std::uint32_t byte_values = 0;
  bytes_index->resize(n);
  for (std::size_t i = 0; i < n; ++i) {
    const char type = reads.type()[i];
    if (type < 0 || type > 2) return false;
    (*bytes_index)[i] = byte_values;
    if (type == 2) ++byte_values;
  }
  return ends_valid(reads.value_ends(), static_cast<int>(byte_values), reads.value_bytes().size());
}

bool has_guard_value(const v1::ResultColumns& m, std::size_t i) {
  const auto outcome = static_cast<std::uint8_t>(m.outcome()[i]);
  return at_or_zero(m.failed_in(), i) == v1::FAILED_IN_GUARDS &&
         (outcome == v1::OUTCOME_GUARD_FAILED || outcome == v1::OUTCOME_WAIT_EXPIRED);
}

bool check_slice(ColumnsSlice* slice, std::size_t transactions) {
  const v1::ResultColumns& m = *slice->message;
  const std::size_t n = m.outcome().size();
  const int count = static_cast<int>(n);
  if (!optional(static_cast<std::size_t>(m.index_size()), n) || m.rank_size() != count) return false;
  if (!optional(m.wrote().size(), n) || !optional(static_cast<std::size_t>(m.admitted_batch_size()), n)) return false;
  if (!optional(m.failed_in().size(), n) || m.failed_index_size() != static_cast<int>(m.failed_in().size())) {
    return false;
  }
  if (!optional(m.reads_dropped().size(), n)) return false;
  if (m.index_size() == 0 && n > transactions) return false;
  for (const std::uint32_t index : m.index()) {
    if (index >= transactions) return false;
  }
  for (const char outcome : m.outcome()) {
    if (outcome < v1::OUTCOME_COMMITTED || outcome > v1::OUTCOME_CANCELLED) return false;
  }
  if (!number_reads(m.reads(), true, &slice->read_bytes)) return false;
  if (m.read_ends_size() != 0 && !ends_valid(m.read_ends(), count, slice->read_bytes.size())) return false;
  if (!number_reads(m.guard_values(), false, &slice->guard_value_bytes)) return false;
  if (m.guard_values().type().empty()) return true;
  std::uint32_t next = 0;
  slice->guard_value.assign(n, kNoRead);
  for (std::size_t i = 0; i < n; ++i) {
    if (has_guard_value(m, i)) slice->guard_value[i] = next++;
  }
  return next == slice->guard_value_bytes.size();
}

ReadView view(const v1::ReadColumns& reads, const std::vector<std::uint32_t>& bytes_index, int i) {
  const auto at = static_cast<std::size_t>(i);
  ReadView out;
  if (reads.operation_size() != 0) out.operation = reads.operation(i);
  out.key = element(reads.key_ends(), reads.key_bytes(), i);
  if (reads.type()[at] == 1) out.value = reads.integer(i);
  if (reads.type()[at] == 2) {
    out.value = element(reads.value_ends(), reads.value_bytes(), static_cast<int>(bytes_index[at]));
  }
  if (at_or_zero(reads.own_write(), at) == 0) out.version = reads.version(i);
  return out;
}

ReadView view(const v1::Read& read) {
  ReadView out;
  out.operation = read.operation();
  out.key = read.key();
  if (read.value().has_integer()) out.value = read.value().integer();
  if (read.value().has_bytes()) out.value = std::string_view(read.value().bytes());
  if (!read.own_write()) out.version = read.version();
  return out;
}

ResultView view(const ColumnsSlice& slice, std::uint32_t position) {
  const v1::ResultColumns& m = *slice.message;
  const std::size_t at = position;
  const int i = static_cast<int>(position);
  ResultView out;
  out.outcome = static_cast<Outcome>(m.outcome()[at]);
  out.failed_in = static_cast<FailedIn>(at_or_zero(m.failed_in(), at));
  if (out.failed_in != FailedIn::none) out.failed_index = m.failed_index(i);
  if (!slice.guard_value.empty() && slice.guard_value[at] != kNoRead) {
    out.guard_value = view(m.guard_values(), slice.guard_value_bytes, static_cast<int>(slice.guard_value[at]));
  }
  const bool wrote = m.wrote().empty() ? out.outcome == Outcome::committed : m.wrote()[at] != 0;
  out.rank = m.rank(i);
  if (wrote) out.version = m.first_version() + out.rank;
  out.batch = m.batch();
  out.admitted_batch = m.admitted_batch_size() == 0 ? m.batch() : m.admitted_batch(i);
  out.batch_time_us = m.batch_time_us();
  out.reads_dropped = at_or_zero(m.reads_dropped(), at) != 0;
  return out;
}

ResultView view(const v1::TransactionResult& row) {
  ResultView out;
  out.outcome = static_cast<Outcome>(row.outcome());
  out.failed_in = static_cast<FailedIn>(row.failed_in());
  out.failed_index = row.failed_index();
  if (row.has_guard_value()) out.guard_value = view(row.guard_value());
  if (row.version() != 0) out.version = row.version();
  out.rank = row.rank();
  out.batch = row.batch();
  out.admitted_batch = row.admitted_batch();
  out.batch_time_us = row.batch_time_us();
  out.reads_dropped = row.reads_dropped();
  return out;
}

Error malformed() { return make_error(ErrorCode::internal, "the server sent results that contradict themselves"); }

// `index` may have any value: an index beyond the request has no answer.
Results::Columns::Place place_of(const Results::Columns& columns, std::size_t index) {
  return index < columns.place.size() ? columns.place[index]
                                      : Results::Columns::Place{Results::Columns::kUnanswered, 0};
}

const v1::TransactionResult& row_at(const RowsSlice& slice, std::uint32_t position) {
  return slice->results(static_cast<int>(position));
}

}  // namespace

void Results::Columns::reset(std::size_t transactions) {
  slices.clear();
  place.assign(transactions, Place{kUnanswered, 0});
  answered = 0;
}

void Results::Columns::take(std::uint32_t index, std::uint32_t position, std::vector<std::uint32_t>* fresh) {
  if (place[index].slice != kUnanswered) return;
  place[index] = {static_cast<std::uint32_t>(slices.size()), position};
  ++answered;
  fresh->push_back(index);
}

Error Results::Columns::add(std::unique_ptr<v1::ResultColumns> message, std::vector<std::uint32_t>* fresh) {
  ColumnsSlice slice;
  slice.message = std::move(message);
  if (!check_slice(&slice, place.size())) return malformed();
  const v1::ResultColumns& m = *slice.message;
  const auto n = static_cast<std::uint32_t>(m.outcome().size());
  const std::size_t before = fresh->size();
  for (std::uint32_t i = 0; i < n; ++i) take(m.index_size() == 0 ? i : m.index(static_cast<int>(i)), i, fresh);
  if (fresh->size() != before) slices.emplace_back(std::move(slice));
  return {};
}

Error Results::Columns::add(std::unique_ptr<v1::ResultRows> message, std::vector<std::uint32_t>* fresh) {
  for (const v1::TransactionResult& row : message->results()) {
    if (row.index() >= place.size()) return malformed();
    if (row.outcome() < v1::OUTCOME_COMMITTED || row.outcome() > v1::OUTCOME_CANCELLED) return malformed();
    if (row.failed_in() < v1::FAILED_IN_NONE || row.failed_in() > v1::FAILED_IN_ELSE) return malformed();
  }
  const std::size_t before = fresh->size();
  for (int i = 0; i < message->results_size(); ++i) {
    take(message->results(i).index(), static_cast<std::uint32_t>(i), fresh);
  }
  if (fresh->size() != before) slices.emplace_back(std::move(message));
  return {};
}

const char* to_string(Outcome outcome) {
  switch (outcome) {
    case Outcome::unknown: return "UNKNOWN";
    case Outcome::committed: return "COMMITTED";
    case Outcome::guard_failed: return "GUARD_FAILED";
    case Outcome::wait_expired: return "WAIT_EXPIRED";
    case Outcome::overflow: return "OVERFLOW";
    case Outcome::type_mismatch: return "TYPE_MISMATCH";
    case Outcome::cancelled: return "CANCELLED";
  }
  return "UNKNOWN";
}

Results::Results() : columns_(std::make_unique<Columns>()) {}
Results::Results(Results&&) noexcept = default;
Results& Results::operator=(Results&&) noexcept = default;
Results::~Results() = default;

std::size_t Results::size() const { return columns_->place.size(); }

Outcome Results::outcome(std::size_t index) const {
  const Columns::Place place = place_of(*columns_, index);
  if (place.slice == Columns::kUnanswered) return Outcome::unknown;
  const auto& slice = columns_->slices[place.slice];
  if (const auto* columns = std::get_if<ColumnsSlice>(&slice)) {
    return static_cast<Outcome>(columns->message->outcome()[place.position]);
  }
  return static_cast<Outcome>(row_at(std::get<RowsSlice>(slice), place.position).outcome());
}

ResultView Results::at(std::size_t index) const {
  const Columns::Place place = place_of(*columns_, index);
  if (place.slice == Columns::kUnanswered) return {};
  const auto& slice = columns_->slices[place.slice];
  if (const auto* columns = std::get_if<ColumnsSlice>(&slice)) return view(*columns, place.position);
  return view(row_at(std::get<RowsSlice>(slice), place.position));
}

std::size_t Results::read_count(std::size_t index) const {
  const Columns::Place place = place_of(*columns_, index);
  if (place.slice == Columns::kUnanswered) return 0;
  const auto& slice = columns_->slices[place.slice];
  if (const auto* columns = std::get_if<ColumnsSlice>(&slice)) {
    const Ends& ends = columns->message->read_ends();
    const int i = static_cast<int>(place.position);
    return ends.empty() ? 0 : ends.Get(i) - (i == 0 ? 0 : ends.Get(i - 1));
  }
  return static_cast<std::size_t>(row_at(std::get<RowsSlice>(slice), place.position).reads_size());
}

ReadView Results::read(std::size_t index, std::size_t i) const {
  const Columns::Place place = place_of(*columns_, index);
  const auto& slice = columns_->slices[place.slice];
  if (const auto* columns = std::get_if<ColumnsSlice>(&slice)) {
    const Ends& ends = columns->message->read_ends();
    const std::size_t begin = place.position == 0 ? 0 : ends.Get(static_cast<int>(place.position) - 1);
    return view(columns->message->reads(), columns->read_bytes, static_cast<int>(begin + i));
  }
  return view(row_at(std::get<RowsSlice>(slice), place.position).reads(static_cast<int>(i)));
}

}  // namespace kilokv::client
