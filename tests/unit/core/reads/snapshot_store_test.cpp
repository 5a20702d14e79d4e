#include "server/core/reads/snapshot_store.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "engine/base/key_hash.hpp"
#include "engine/engine.hpp"
#include "engine/txn/columns.hpp"

namespace kilokv::server {
namespace {

constexpr std::uint64_t kNoLimit = ~std::uint64_t{0};
constexpr DurationUs kAgeUs = 1'000'000;

KeyId key_id(std::uint64_t key) { return {key * 0x9E3779B97F4A7C15u, key}; }
Cell integer_cell(std::uint64_t word, Version version) { return {word, make_tag(version, ValueType::integer)}; }
Cell bytes_cell(std::uint64_t handle, Version version) { return {handle, make_tag(version, ValueType::bytes)}; }

// A table with its history: the current cells, tombstones included, and every earlier state.
class Table {
 public:
  using State = std::map<std::uint64_t, Cell>;

  // Runs a batch that leaves `writes`; gives the before-images.
  std::vector<engine::BeforeImage> run(const State& writes) {
    std::vector<engine::BeforeImage> images;
    for (const auto& [key, cell] : writes) {
      images.push_back({key_id(key), now_[key]});
      now_[key] = cell;
    }
    ++batch_;
    past_[batch_] = now_;
    return images;
  }

  void drop_tombstones(Version floor) {
    std::erase_if(now_, [floor](const auto& entry) {
      return type_of(entry.second.tag) == ValueType::absent && version_of(entry.second.tag) <= floor;
    });
  }

  // The live keys at a batch's end.
  State at(BatchNumber batch) const {
    const auto it = past_.find(batch);
    return it == past_.end() ? State{} : live(it->second);
  }

  // A page at `boundary`, as the executor reads it.
  State page(const SnapshotStore& store, BatchNumber boundary) const {
    State seen;
    for (const auto& [key, cell] : now_) {
      const auto image = store.image_at(key_id(key), boundary);
      seen[key] = image ? image->cell : cell;
    }
    return live(seen);
  }

  const State& now() const { return now_; }
  BatchNumber batch() const { return batch_; }

 private:
  static State live(State state) {
    std::erase_if(state, [](const auto& entry) { return type_of(entry.second.tag) == ValueType::absent; });
    return state;
  }

  State now_;
  std::map<BatchNumber, State> past_;
  BatchNumber batch_ = 0;
};

// A store whose retained handles are counted; each value is 100 bytes.
struct Fixture {
  explicit Fixture(std::uint64_t bytes_max = kNoLimit)
      : store(
            bytes_max, kAgeUs,
            [this](Cell cell) {
              retained.insert(cell.word);
              return std::uint64_t{100};
            },
            [this](Cell cell) {
              const auto it = retained.find(cell.word);
              ASSERT_NE(it, retained.end());
              retained.erase(it);
            }) {}

  void run(const Table::State& writes, TimeUs now_us = 0) {
    const std::vector<engine::BeforeImage> images = table.run(writes);
    store.record(table.batch(), images, now_us);
  }
  // For reader 1, then 2, and so on.
  void open(TimeUs now_us = 0) {
    EXPECT_TRUE(store.open(table.batch(), table.batch() * 1000, 0, now_us, ++readers).ok());
  }

  std::uint64_t readers = 0;

  std::multiset<std::uint64_t> retained;
  Table table;
  SnapshotStore store;
};

TEST(SnapshotStoreTest, KeysWrittenCreatedAndDeletedLaterReadAsTheyWere) {
  Fixture f;
  f.run({{1, integer_cell(10, 1)}, {2, integer_cell(20, 2)}, {3, {0, make_tag(3, ValueType::absent)}}});
  f.open();
  const BatchNumber boundary = f.table.batch();
  f.run({{1, integer_cell(11, 1001)}, {4, integer_cell(40, 1002)}});  // written, created
  f.run({{2, {0, make_tag(2001, ValueType::absent)}}});               // deleted
  f.run({{1, {0, make_tag(3001, ValueType::absent)}}});               // written before: the first image counts
  f.run({{2, integer_cell(21, 4001)}, {3, integer_cell(30, 4002)}});  // created again
  EXPECT_EQ(f.table.page(f.store, boundary), (Table::State{{1, integer_cell(10, 1)}, {2, integer_cell(20, 2)}}));
}

TEST(SnapshotStoreTest, TombstonesAreKeptAsLongAsABoundaryNeedsThem) {
  Fixture f;
  f.run({{1, integer_cell(10, 1)}});
  f.open();
  const BatchNumber boundary = f.table.batch();
  EXPECT_EQ(f.store.drop_floor(5000), 1000u);
  EXPECT_EQ(f.store.drop_floor(500), 500u);
  f.run({{1, {0, make_tag(1001, ValueType::absent)}}});
  f.table.drop_tombstones(f.store.drop_floor(5000));
  EXPECT_EQ(f.table.page(f.store, boundary), (Table::State{{1, integer_cell(10, 1)}}));
  f.store.close(1);
  EXPECT_EQ(f.store.drop_floor(5000), 5000u);
}

TEST(SnapshotStoreTest, ABoundaryStaysForItsLastReader) {
  Fixture f;
  f.run({{1, bytes_cell(10, 1)}});
  f.open();
  f.open();
  f.store.close(1);
  ASSERT_NE(f.store.find(1), nullptr);
  EXPECT_EQ(f.store.find(1)->version, 1000u);
  f.run({{1, bytes_cell(11, 1001)}});
  EXPECT_EQ(f.retained, std::multiset<std::uint64_t>{10});
  f.store.close(1);  // a reader can give up its own share alone
  f.store.close(7);
  ASSERT_NE(f.store.find(1), nullptr);
  f.store.close(2);
  EXPECT_EQ(f.store.find(1), nullptr);
  f.run({});
  EXPECT_TRUE(f.retained.empty());
  EXPECT_EQ(f.store.bytes(), 0u);
}

TEST(SnapshotStoreTest, NothingIsKeptWithoutABoundary) {
  Fixture f;
  f.run({{1, bytes_cell(10, 1)}});
  f.run({{1, bytes_cell(11, 1001)}});
  EXPECT_EQ(f.store.images(), 0u);
}

TEST(SnapshotStoreTest, AHotKeyIsKeptOnceForEachBoundary) {
  Fixture f;
  f.run({{1, integer_cell(0, 1)}});
  f.open();
  for (std::uint64_t i = 1; i < 100; ++i) {
    f.run({{1, integer_cell(i, i * 1000 + 1)}});
    if (i == 50) {
      f.open();
    }
  }
  EXPECT_EQ(f.store.images(), 2u);
}

// A boundary is opened before each batch. To read at the newest takes no longer than at the oldest, where the first
// image is the right one.
TEST(SnapshotStoreTest, TheImagesOfAHotKeyAreNotWalkedOver) {
  constexpr BatchNumber kBoundaries = 20000;
  SnapshotStore store(kNoLimit, kAgeUs, {}, {});
  for (BatchNumber at = 1; at <= kBoundaries; ++at) {
    ASSERT_TRUE(store.open(at, at * 1000, 0, 0, at).ok());
    const engine::BeforeImage image{key_id(1), integer_cell(at, at * 1000)};
    store.record(at + 1, {&image, 1}, 0);
  }
  ASSERT_EQ(store.images(), kBoundaries);
  const auto time_of_lookups = [&store](BatchNumber boundary) {
    auto shortest = std::chrono::nanoseconds::max();
    for (int round = 0; round < 5; ++round) {
      const auto begin = std::chrono::steady_clock::now();
      for (int i = 0; i < 200; ++i)
        EXPECT_EQ(store.image_at(key_id(1), boundary)->cell, integer_cell(boundary, boundary * 1000));
      shortest = std::min<std::chrono::nanoseconds>(shortest, std::chrono::steady_clock::now() - begin);
    }
    return shortest.count();
  };
  EXPECT_LT(time_of_lookups(kBoundaries), 10 * time_of_lookups(1));
}

// The oldest boundaries are closed one by one while others are opened.
TEST(SnapshotStoreTest, AHotKeyReadsAsItWasWhileItsOldestImagesAreFreed) {
  constexpr BatchNumber kOpen = 10;
  SnapshotStore store(kNoLimit, kAgeUs, {}, {});
  for (BatchNumber at = 1; at <= 100; ++at) {
    ASSERT_TRUE(store.open(at, at * 1000, 0, 0, at).ok());
    if (at > kOpen) store.close(at - kOpen);
    const engine::BeforeImage image{key_id(1), integer_cell(at, at * 1000)};
    store.record(at + 1, {&image, 1}, 0);
    const BatchNumber oldest = at > kOpen ? at - kOpen + 1 : 1;
    EXPECT_EQ(store.images(), at - oldest + 1);
    for (BatchNumber open = oldest; open <= at; ++open) {
      ASSERT_EQ(store.image_at(key_id(1), open)->cell, integer_cell(open, open * 1000));
    }
  }
}

TEST(SnapshotStoreTest, ReadersAreLimitedUntilTheyAreDoneOrTooOld) {
  Fixture f;
  f.run({});
  for (std::size_t i = 0; i < SnapshotStore::kReadersMax; ++i) {
    f.open();
  }
  EXPECT_FALSE(f.store.open(1, 1000, 0, 0, 1 << 20).ok());
  f.store.close(77);
  f.open();
  EXPECT_FALSE(f.store.open(1, 1000, 0, kAgeUs - 1, 1 << 20).ok());
  f.open(kAgeUs);  // no batch has come meanwhile
  f.store.close(78);
  EXPECT_NE(f.store.find(1), nullptr);
}

TEST(SnapshotStoreTest, AGreedyClientLeavesScansForOthers) {
  Fixture f;
  f.run({});
  const auto greedy = std::make_shared<Client>("greedy"), light = std::make_shared<Client>("light");
  const auto open = [&f](const std::shared_ptr<Client>& client) {
    return f.store.open(f.table.batch(), f.table.batch() * 1000, 0, 0, ++f.readers, client);
  };
  Status refused;
  while (refused.ok()) refused = open(greedy);
  EXPECT_EQ(refused.reason(), ErrorReason::scans_full);
  EXPECT_NE(refused.message().find("this client"), std::string::npos) << refused.message();
  EXPECT_EQ(greedy->boundaries.load(), SnapshotStore::kReadersMax * 4 / 5);
  EXPECT_TRUE(open(light).ok());
  EXPECT_EQ(light->boundaries.load(), 1u);
  // What ends gives its place back, to whom it was counted.
  f.store.close(1);
  EXPECT_EQ(greedy->boundaries.load(), SnapshotStore::kReadersMax * 4 / 5 - 1);
  f.run({}, kAgeUs);
  EXPECT_EQ(greedy->boundaries.load(), 0u);
  EXPECT_EQ(light->boundaries.load(), 0u);
}

TEST(SnapshotStoreTest, OldBoundariesAreDropped) {
  Fixture f;
  f.run({{1, bytes_cell(10, 1)}});
  f.open(5);
  f.run({{1, bytes_cell(11, 1001)}}, 5 + kAgeUs - 1);
  EXPECT_NE(f.store.find(1), nullptr);
  f.run({{1, bytes_cell(12, 2001)}}, 5 + kAgeUs);
  EXPECT_EQ(f.store.find(1), nullptr);
  EXPECT_TRUE(f.retained.empty());
}

TEST(SnapshotStoreTest, BeyondTheBytesTheOldestBoundaryIsDropped) {
  Fixture f(2800);  // about a dozen images
  f.run({{0, bytes_cell(0, 1)}});
  f.open();
  Table::State many;
  for (std::uint64_t key = 1; key < 8; ++key) {
    many[key] = bytes_cell(100 + key, 1001);
  }
  f.run(many);
  f.open();
  for (auto& [key, cell] : many) {
    cell = bytes_cell(200 + key, 2001);
  }
  ASSERT_NE(f.store.find(1), nullptr);
  f.run(many);  // keeps the byte values of the batch before
  f.run({{10, bytes_cell(1, 3001)}, {11, bytes_cell(1, 3001)}, {12, bytes_cell(1, 3001)}, {13, bytes_cell(1, 3001)}});
  EXPECT_EQ(f.store.find(1), nullptr);
  ASSERT_NE(f.store.find(2), nullptr);
  EXPECT_EQ(f.table.page(f.store, 2), f.table.at(2));
  EXPECT_LE(f.store.bytes(), 2800u);
}

TEST(SnapshotStoreTest, WhatALargeBoundaryLeavesIsLetGoBitByBit) {
  Fixture f;
  f.run({});
  f.open();
  Table::State many;
  for (std::uint64_t key = 0; key < 5000; ++key) {
    many[key] = integer_cell(key, 1001);
  }
  f.run(many);
  f.store.close(1);
  f.run({});
  EXPECT_GT(f.store.images(), 3000u);
  for (int i = 0; i < 10; ++i) {
    f.run({});
  }
  EXPECT_EQ(f.store.images(), 0u);
}

// Random batches, boundaries and tombstone drops: every page equals the table as it was.
void run_random(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Fixture f(random() % 2 == 0 ? kNoLimit : 6000);
  std::uint64_t next_handle = 1;
  for (int step = 0; step < 200; ++step) {
    Table::State writes;
    for (std::uint64_t count = random() % 6; count > 0; --count) {
      const Version version = (f.table.batch() + 1) * 1000 - count;
      const std::uint64_t key = random() % 30;
      writes[key] = random() % 3 == 0   ? Cell{0, make_tag(version, ValueType::absent)}
                    : random() % 2 == 0 ? bytes_cell(next_handle++, version)
                                        : integer_cell(random(), version);
    }
    f.run(writes, step * 10'000);
    switch (random() % 8) {
      case 0:
      case 1: f.open(step * 10'000); break;
      case 2: f.store.close(1 + random() % (f.readers + 1)); break;
      case 3: f.table.drop_tombstones(f.store.drop_floor(random() % (f.table.batch() * 1000))); break;
      default: break;
    }
    for (BatchNumber boundary = 1; boundary <= f.table.batch(); ++boundary) {
      if (f.store.find(boundary) != nullptr) {
        ASSERT_EQ(f.table.page(f.store, boundary), f.table.at(boundary)) << "boundary " << boundary;
      }
    }
    ASSERT_LE(f.retained.size(), f.store.images());
  }
}

TEST(SnapshotStoreTest, PagesEqualThePastUnderRandomBatches) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    run_random(seed);
    if (testing::Test::HasFatalFailure()) {
      return;
    }
  }
}

// An engine whose batches create and delete keys, with the records as each batch left them.
class EngineWithPast {
 public:
  using Page = std::map<std::string, std::string>;  // of live records

  explicit EngineWithPast(std::uint64_t seed)
      : random_(seed),
        engine_(std::move(*engine::Engine::create({.strategy = "serial", .secret = kSecret}))),
        store_(
            kNoLimit, kAgeUs,
            [this](Cell cell) {
              engine_->retain(cell);
              return engine_->bytes_of(cell).size();
            },
            [this](Cell cell) { engine_->release(cell); }) {}

  // Some transactions fail: the keys that they would create leave the table, and others move.
  void run_batch() {
    for (int t = 0; t < 60; ++t) {
      builder_.begin();
      if (random_() % 4 == 0) builder_.guard(engine::GuardKind::exists, engine::OnFalse::fail, builder_.key("none"), 0);
      const std::uint32_t key = builder_.key("key" + std::to_string(random_() % 2000));
      switch (random_() % 4) {
        case 0: builder_.op(engine::OpKind::del, key); break;
        case 1: builder_.op(engine::OpKind::put, key, engine::Operand::integer, t); break;
        default: {
          const std::string bytes = std::to_string(header_.number) + std::string(random_() % 30, 'x');
          builder_.op(engine::OpKind::put, key, engine::Operand::bytes, builder_.value(bytes));
        }
      }
      builder_.end();
    }
    const engine::Column<std::uint8_t> expires(columns_.size());
    ASSERT_TRUE(engine_->execute(header_, columns_, expires, &results_, &writes_).ok());
    store_.record(header_.number, engine_->before_images(), 0);
    engine_->release_through(header_.number);
    columns_.clear();
    past_[header_.number] = page([](const engine::RecordView& record) { return record.cell; });
    last_version_ = results_.next_version - 1;
    header_ = {header_.number + 1, header_.time_us + 1000, results_.next_version};
  }
  void open() { EXPECT_TRUE(store_.open(header_.number - 1, last_version_, 0, 0, ++readers_).ok()); }
  void close_any() { store_.close(1 + random_() % (readers_ + 1)); }
  void drop_tombstones() { engine_->drop_tombstones(store_.drop_floor(random_() % (last_version_ + 1)), {}); }

  void check_pages(std::size_t* pages) const {
    for (const auto& [boundary, expected] : past_) {
      if (store_.find(boundary) == nullptr) continue;
      ++*pages;
      const Page read = page([&, at = boundary](const engine::RecordView& record) {
        const auto image = store_.image_at(engine::hash_key(record.key, kSecret), at);
        return image ? image->cell : record.cell;
      });
      ASSERT_EQ(read, expected) << "boundary " << boundary;
    }
  }

 private:
  static constexpr engine::KeyHashSecret kSecret{3, 5};

  template <class CellOf>
  Page page(const CellOf& cell_of) const {
    Page page;
    engine_->scan({}, {}, [&](const engine::RecordView& record) {
      const Cell cell = cell_of(record);
      if (type_of(cell.tag) == ValueType::integer) page.emplace(record.key, std::to_string(cell.word));
      if (type_of(cell.tag) == ValueType::bytes) page.emplace(record.key, engine_->bytes_of(cell));
      return true;
    });
    return page;
  }

  std::mt19937_64 random_;
  std::unique_ptr<engine::Engine> engine_;
  SnapshotStore store_;
  engine::TransactionColumns columns_;
  engine::ColumnsBuilder builder_{&columns_, kSecret};
  engine::BatchHeader header_{1, 1'000'000, 1};
  engine::BatchResults results_;
  engine::WriteColumns writes_;
  std::map<BatchNumber, Page> past_;
  Version last_version_ = 0;
  std::uint64_t readers_ = 0;
};

TEST(SnapshotStoreTest, PagesOverAnEngineEqualThePast) {
  std::size_t pages = 0;
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    EngineWithPast engine(seed);
    for (int batch = 0; batch < 100 && !testing::Test::HasFatalFailure(); ++batch) {
      engine.run_batch();
      if (batch % 5 == 0) engine.open();
      if (batch % 4 == 0) engine.close_any();
      if (batch % 7 == 0) engine.drop_tombstones();
      if (batch % 10 == 0) engine.check_pages(&pages);
    }
  }
  EXPECT_GT(pages, 50u);
}

TEST(SnapshotStoreTest, LetsEverythingGoAtTheEnd) {
  std::multiset<std::uint64_t> retained;
  {
    SnapshotStore store(
        kNoLimit, kAgeUs,
        [&](Cell cell) {
          retained.insert(cell.word);
          return std::uint64_t{1};
        },
        [&](Cell cell) { retained.erase(retained.find(cell.word)); });
    EXPECT_TRUE(store.open(1, 1, 1, 1, 1).ok());
    store.record(2, std::vector<engine::BeforeImage>{{key_id(1), bytes_cell(5, 1)}}, 1);
    EXPECT_EQ(retained.size(), 1u);
  }
  EXPECT_TRUE(retained.empty());
}

}  // namespace
}  // namespace kilokv::server
