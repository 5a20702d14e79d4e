// What admission reserves for a transaction (core/pipeline/transaction_cost.hpp) against what its batch really needs in
// the log: random batches of every operation and guard, executed and encoded. Each round has a flavour: few kinds of
// operation, long or short keys, large or small values, so that what one term leaves over does not hide that another is
// missing. A failure prints the round, whose number is its seed.

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "engine/engine.hpp"
#include "engine/txn/kinds.hpp"
#include "engine/workloads/random.hpp"
#include "server/core/pipeline/live_results.hpp"
#include "server/core/pipeline/transaction_cost.hpp"
#include "server/core/sessions/stored_results.hpp"
#include "server/storage/log_record.hpp"

namespace kilokv::server::storage {
namespace {

using engine::GuardKind;
using engine::OnFalse;
using engine::Operand;
using engine::OpKind;

constexpr std::uint64_t kRounds = 3000;
constexpr std::uint32_t kKeys = 24;
constexpr engine::KeyHashSecret kSecret{1, 2};

class Round {
 public:
  explicit Round(std::uint64_t seed) : random_(seed), builder_(&columns_, kSecret) {
    engine::EngineOptions options;
    options.secret = kSecret;
    engine_ = std::move(*engine::Engine::create(options));
    in_session_ = random_.chance(0.6);
    result_bytes_max_ = pick({0, 1, 100, 3000, 65536});
    value_bytes_ = pick({0, 1, 100, 5000});
    only_ = random_.chance(0.7) ? any_kind() : OpKind{};
    guards_ = random_.chance(0.5);
    // Numbers that take many bytes.
    header_ = {(std::uint64_t{1} << 62) + random_.below(1000), std::int64_t{1} << 60, Version{1} << 59};
    bytes_share_ = random_.chance(0.5) ? 0.6 : 0;
    operations_max_ = pick({1, 40, 300});
    const std::uint64_t key_bytes = pick({8, 100, 1024});
    for (std::uint32_t i = 0; i < kKeys; ++i) {
      keys_.push_back(std::string(random_.chance(0.9) ? key_bytes - 4 : 1, 'k') + std::to_string(1000 + i));
      load(keys_.back());
    }
  }

  void run() {
    const std::uint64_t transactions = random_.chance(0.5) ? 1 : 1 + random_.below(30);
    for (std::uint64_t t = 0; t < transactions; ++t) add_transaction();
    const std::vector<std::uint64_t> bounds = bounds_at_admission();
    ASSERT_TRUE(engine_->execute(header_, columns_, expires_, &results_, &writes_).ok());
    std::uint64_t bound = 0;
    for (const std::uint64_t b : bounds) bound += b;
    EXPECT_LE(record_bytes(), bound);
    EXPECT_LE(stored_bytes_, stored_bytes_max_);
  }

 private:
  std::uint64_t pick(std::initializer_list<std::uint64_t> choices) {
    return choices.begin()[random_.below(choices.size())];
  }
  OpKind any_kind() {
    return static_cast<OpKind>(engine::kOpKindMin + random_.below(engine::kOpKindMax - engine::kOpKindMin + 1));
  }
  const std::string& any_key() { return keys_[random_.below(kKeys)]; }
  std::int64_t any_integer() { return static_cast<std::int64_t>(random_.next()); }
  std::string any_value() {
    const std::uint64_t bytes = random_.chance(0.8) ? value_bytes_ : random_.below(value_bytes_ + 1);
    largest_value_ = std::max(largest_value_, bytes);
    return std::string(bytes, 'v');
  }

  void load(const std::string& key) {
    const bool bytes = random_.chance(bytes_share_);
    ASSERT_TRUE(engine_
                    ->load(key, (Version{1} << 58) + random_.below(1000), bytes ? ValueType::bytes : ValueType::integer,
                           any_integer(), bytes ? any_value() : "")
                    .ok());
  }

  void add_transaction() {
    builder_.begin(0, random_.chance(0.3) ? 1000 : 0);
    if (guards_) {
      for (std::uint64_t i = 1 + random_.below(2); i > 0; --i) add_guard();
    }
    add_operations();
    builder_.begin_else();
    if (guards_) add_operations();
    builder_.end();
    expires_.push_back(random_.chance(0.7));
  }

  void add_guard() {
    const OnFalse on_false = random_.chance(0.4) ? OnFalse::wait : OnFalse::fail;
    switch (random_.below(4)) {
      case 0:
        return builder_.range_guard(GuardKind::range_unchanged, on_false, any_key(), "",
                                    random_.chance(0.5) ? 0 : kVersionMax);
      case 1: return builder_.guard(GuardKind::absent, on_false, builder_.key(any_key()), 0);
      case 2: return builder_.guard(GuardKind::version_equal, on_false, builder_.key(any_key()), 7);
      default: return builder_.guard(GuardKind::exists, on_false, builder_.key(any_key()), 0);
    }
  }

  void add_operations() {
    const std::uint64_t count = (guards_ ? 0 : 1) + random_.below(operations_max_);
    std::int64_t get = -1;
    for (std::uint64_t i = 0; i < count; ++i) {
      OpKind kind = only_ != OpKind{} ? only_ : any_kind();
      if (kind == OpKind::put && get < 0 && random_.chance(0.3)) kind = OpKind::get;
      if (uses_range(kind)) {
        builder_.range_op(kind, "", "", 1 + static_cast<std::uint32_t>(random_.below(kKeys)));
        continue;
      }
      const std::uint32_t key = builder_.key(any_key());
      if (kind == OpKind::get) get = static_cast<std::int64_t>(i);
      if (kind == OpKind::put) {
        put(key, get);
      } else {
        builder_.op(kind, key, Operand::integer, kind == OpKind::add ? any_integer() >> 2 : 0);
      }
    }
  }

  void put(std::uint32_t key, std::int64_t get) {
    switch (random_.below(get < 0 ? 2 : 4)) {
      case 0: return builder_.op(OpKind::put, key, Operand::integer, any_integer());
      case 1: return builder_.op(OpKind::put, key, Operand::bytes, builder_.value(any_value()));
      default: return builder_.op(OpKind::put, key, Operand::get, get);
    }
  }

  // The largest value may have grown since.
  std::vector<std::uint64_t> bounds_at_admission() {
    const std::uint64_t known = random_.chance(0.5) ? largest_value_ : random_.below(largest_value_ + 1);
    std::vector<std::uint64_t> bounds;
    for (std::size_t t = 0; t < columns_.size(); ++t) {
      const TransactionCost cost = cost_of(columns_, t, in_session_, known, result_bytes_max_);
      bounds.push_back(cost.log.at(largest_value_, result_bytes_max_));
      const std::uint64_t at_largest =
          cost_of(columns_, t, in_session_, largest_value_, result_bytes_max_).stored_bytes;
      stored_bytes_max_ += at_largest;
    }
    return bounds;
  }

  // The results of transactions [begin, end), as one entry; those that wait on have none. One alone was parked before.
  void encode_part(std::uint32_t begin, std::uint32_t end) {
    const bool parked = end == begin + 1;
    std::vector<LiveItem> items;
    for (std::uint32_t t = begin; t < end; ++t) {
      if (results_.outcome[t] == static_cast<std::uint8_t>(engine::Outcome::postponed)) continue;
      items.push_back({t, parked ? 4000000000u : 4000000u + t, parked ? 1 : header_.number, random_.chance(0.05)});
    }
    if (items.empty()) return;
    const LiveSlice slice({&columns_, &results_, engine_.get(), header_}, items);
    SessionEntry entry;
    entry.kind = SessionEntry::Kind::results;
    entry.identity.session.emplace();
    encoded_.push_back(std::make_unique<std::string>());
    std::uint64_t read_bytes = UINT64_MAX;
    encode_results(slice, result_bytes_max_, &read_bytes, encoded_.back().get());
    stored_bytes_ += encoded_.back()->size() + kSliceBytes;
    entry.results = *encoded_.back();
    entries_.push_back(entry);
  }

  std::uint64_t record_bytes() {
    if (in_session_) {
      const std::uint64_t part_max = 1 + random_.below(8);
      for (std::uint32_t begin = 0; begin < columns_.size();) {
        const auto end = static_cast<std::uint32_t>(std::min(columns_.size(), begin + 1 + random_.below(part_max)));
        encode_part(begin, end);
        begin = end;
      }
    }
    LogRecord record;
    record.header = header_;
    record.next_version = results_.next_version;
    record.transactions = static_cast<std::uint32_t>(columns_.size());
    record.writes = &writes_;
    record.sessions = entries_;
    std::string bytes;
    encode_record(record, 0, &bytes);
    return bytes.size();
  }

  engine::Random random_;
  std::unique_ptr<engine::Engine> engine_;
  engine::TransactionColumns columns_;
  engine::ColumnsBuilder builder_;
  engine::Column<std::uint8_t> expires_;
  engine::BatchHeader header_;
  engine::BatchResults results_;
  engine::WriteColumns writes_;
  std::vector<std::string> keys_;
  std::vector<SessionEntry> entries_;
  std::vector<std::unique_ptr<std::string>> encoded_;
  bool in_session_ = false, guards_ = false;
  OpKind only_{};
  std::uint64_t stored_bytes_ = 0, stored_bytes_max_ = 0;
  std::uint64_t result_bytes_max_ = 0, value_bytes_ = 0, largest_value_ = 0, operations_max_ = 0;
  double bytes_share_ = 0;
};

TEST(LogBound, IsNeverBelowTheRecord) {
  for (std::uint64_t seed = 1; seed <= kRounds; ++seed) {
    SCOPED_TRACE("round " + std::to_string(seed));
    Round(seed).run();
    if (HasFailure()) return;
  }
}

// Ranks as no small batch has them: every column as wide as it can be, and nothing is left over. Only the expiries that
// the keys of the ADDs may keep are not there.
TEST(LogBound, IsExactWhereAllColumnsAreAtTheirWidest) {
  engine::TransactionColumns columns;
  engine::ColumnsBuilder builder(&columns, kSecret);
  engine::WriteColumns writes;
  builder.begin();
  const std::string long_value(70000, 'v');
  const std::uint32_t values[] = {builder.value(""), builder.value(long_value)};
  for (std::uint32_t i = 0; i < 400; ++i) {
    const std::string key(i % 3 == 0 ? 1 : 1024, 'k');
    const bool bytes = i % 2 == 0;
    if (bytes) {
      builder.op(OpKind::put, builder.key(key), Operand::bytes, values[i % 4 / 2]);
    } else {
      builder.op(OpKind::add, builder.key(key), Operand::integer, 1);
    }
    writes.rank.push_back(i / 2 * 100000);
    writes.type.push_back(static_cast<std::uint8_t>(bytes ? ValueType::bytes : ValueType::integer));
    writes.word.push_back(bytes ? 0 : (i % 4 == 1 ? INT64_MIN : INT64_MAX));
    writes.key_bytes.insert(writes.key_bytes.end(), key.begin(), key.end());
    writes.key_end.push_back(static_cast<std::uint32_t>(writes.key_bytes.size()));
    if (!bytes) continue;
    if (i % 4 != 0) writes.value_bytes.insert(writes.value_bytes.end(), long_value.begin(), long_value.end());
    writes.value_end.push_back(static_cast<std::uint32_t>(writes.value_bytes.size()));
  }
  builder.end();
  LogRecord record;
  record.writes = &writes;
  std::string bytes;
  encode_record(record, 0, &bytes);
  constexpr std::uint64_t kExpiryHeads = 2 * 9 + 4, kExpiryOfAnAdd = 4 + 8, kAdds = 200;
  EXPECT_EQ(cost_of(columns, 0, false, 0, 0).log.bytes, bytes.size() + kExpiryHeads + kAdds * kExpiryOfAnAdd);
}

}  // namespace
}  // namespace kilokv::server::storage
