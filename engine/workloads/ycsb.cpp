#include "engine/workloads/ycsb.hpp"

#include <memory>
#include <vector>

namespace kilokv::engine {

namespace {

constexpr std::uint64_t kNumbers = 1'000'000'000'000;  // of keys of one prefix

double write_share_of(YcsbLetter letter, const YcsbOptions& options) {
  switch (letter) {
    case YcsbLetter::a:
    case YcsbLetter::f: return options.update_share;
    case YcsbLetter::b:
    case YcsbLetter::d:
    case YcsbLetter::e: return 0.05;
    case YcsbLetter::c: return 0;
  }
  return 0;
}

DistributionOptions ages_of(const DistributionOptions& distribution) {
  return {.theta = distribution.theta > 0 ? distribution.theta : 0.99, .scrambled = false};
}

// Checks that no initial row is gone, for letters that insert rows.
class InitialRowsAudit : public StateAudit {
 public:
  explicit InitialRowsAudit(std::uint64_t rows) : rows_(rows) {}
  void add(std::string_view key, std::int64_t, std::string_view) override {
    if (KeyName::index_of(key) < rows_) ++seen_;
  }
  std::string violation() const override {
    if (seen_ == rows_) return {};
    return "initial rows: expected " + std::to_string(rows_) + ", got " + std::to_string(seen_);
  }

 private:
  std::uint64_t rows_, seen_ = 0;
};

// Checks that the two fields of each row sum to 0.
class FieldsAudit : public StateAudit {
 public:
  explicit FieldsAudit(std::uint64_t rows) : sums_(rows, 0) {}
  void add(std::string_view key, std::int64_t integer, std::string_view) override {
    if (const std::uint64_t row = KeyName::index_of(key); row < sums_.size()) sums_[row] += integer;
  }
  std::string violation() const override {
    for (std::size_t row = 0; row < sums_.size(); ++row) {
      if (sums_[row] != 0) return "fields of row " + std::to_string(row) + " sum to " + std::to_string(sums_[row]);
    }
    return {};
  }

 private:
  std::vector<std::int64_t> sums_;
};

}  // namespace

Ycsb::Ycsb(YcsbLetter letter, std::uint64_t keys, const DistributionOptions& distribution, const YcsbOptions& options,
           std::uint64_t seed)
    : letter_(letter),
      count_(keys),
      options_(options),
      write_share_(write_share_of(letter, options)),
      scan_end_(prefix(letter), kNumbers - 1),
      rows_(keys, distribution),
      ages_(keys, ages_of(distribution)),
      random_(seed),
      salt_(seed),
      payload_(options.payload_bytes, '.') {}

// The row of a read: for d one of the inserted and initial rows, for the other letters an initial row.
std::uint64_t Ycsb::draw_row() {
  if (letter_ != YcsbLetter::d) return rows_.draw(&random_);
  const std::uint64_t age = ages_.draw(&random_);
  return age < inserted_ ? inserted_row(inserted_ - 1 - age) : count_ - 1 - (age - inserted_);
}

// Two numbers rarely give the same row, even from different generators. If they do, the second insert is an update.
std::uint64_t Ycsb::inserted_row(std::uint64_t number) const {
  std::uint64_t mixer = salt_ + number;
  return count_ + splitmix64(&mixer) % (kNumbers - 1 - count_);
}

void Ycsb::for_each_initial(const InitialVisitor& visit) const {
  Ycsb writer(*this);
  for (std::uint64_t i = 0; i < count_; ++i) {
    const KeyName name(prefix(letter_), i);
    if (letter_ == YcsbLetter::f) {
      visit({.key = name.view(), .integer = 0});
      continue;
    }
    writer.fill(name, 0);
    visit({.key = name.view(), .type = ValueType::bytes, .bytes = writer.payload_});
  }
  if (letter_ != YcsbLetter::f) return;
  for (std::uint64_t i = 0; i < count_; ++i) visit({.key = KeyName(kSecondField, i).view(), .integer = 0});
}

InvariantRule Ycsb::invariant() const {
  const std::string rows = std::to_string(count_);
  if (letter_ == YcsbLetter::f) {
    return {.statement = rows + " rows of two fields that sum to 0",
            .records = 2 * count_,
            .integers = true,
            .audit = std::make_unique<FieldsAudit>(count_)};
  }
  InvariantRule rule{.statement = rows + (inserts(letter_) ? " initial and any number of inserted" : "") +
                                  " values of " + std::to_string(options_.payload_bytes) +
                                  " bytes, each beginning with its key",
                     .marked_bytes = options_.payload_bytes};
  if (inserts(letter_)) {
    rule.audit = std::make_unique<InitialRowsAudit>(count_);
  } else {
    rule.records = count_;
  }
  return rule;
}

}  // namespace kilokv::engine
