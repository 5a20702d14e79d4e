// Hints are those of the table, on any number of threads. Who runs may pass tiles, and may end the search.

#include "engine/exec/resolve/hint_finder.hpp"

#include <algorithm>
#include <cstdint>
#include <random>
#include <thread>
#include <vector>

#include "engine/table/record_table.hpp"
#include "tests/unit/engine/harness.hpp"

namespace kilokv::engine {
namespace {

constexpr std::uint32_t kTile = HintFinder::kTileKeys;

// A table, and the ids of a batch. Every seventh id has no slot.
struct Rig {
  RecordTable table{0};
  std::vector<KeyId> ids;
  HintFinder finder;

  explicit Rig(std::size_t count) {
    std::mt19937_64 random(count);
    for (std::size_t i = 0; i < count; ++i) {
      ids.push_back({random(), random()});
      if (i % 7 != 0) table.insert(ids.back(), 0);
    }
    finder.open(ids, table);
  }
  std::uint32_t tiles() const { return static_cast<std::uint32_t>((ids.size() + kTile - 1) / kTile); }
  // Whether the tile is ready. If it is, its hints must be those of the table.
  bool look_at(std::uint32_t tile) const {
    const std::uint32_t* const hints = finder.ready(tile);
    if (hints == nullptr) return false;
    const std::size_t begin = std::size_t{tile} * kTile, count = std::min<std::size_t>(kTile, ids.size() - begin);
    std::vector<std::uint32_t> expected(count);
    table.hint_all(std::span<const KeyId>(ids).subspan(begin, count), expected.data());
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), hints));
    return true;
  }
};

TEST(every_tile_gets_its_hints) {
  for (const std::size_t count :
       {std::size_t{1}, std::size_t{kTile}, std::size_t{kTile} + 1, std::size_t{20} * kTile}) {
    Rig rig(count);
    for (std::uint32_t tile = 0; tile < rig.tiles(); ++tile) EXPECT_FALSE(rig.look_at(tile));
    rig.finder.find();
    for (std::uint32_t tile = 0; tile < rig.tiles(); ++tile) EXPECT_TRUE(rig.look_at(tile));
    EXPECT_FALSE(rig.look_at(rig.tiles()));
  }
}

TEST(passed_tiles_are_left_out) {
  Rig rig(std::size_t{10} * kTile);
  rig.finder.pass(4);
  rig.finder.find();
  for (std::uint32_t tile = 0; tile < rig.tiles(); ++tile) EXPECT_EQ(rig.look_at(tile), tile >= 4);
}

TEST(a_new_batch_forgets_the_last_one) {
  Rig rig(std::size_t{10} * kTile);
  rig.finder.find();
  rig.finder.open(std::span<const KeyId>(rig.ids).first(std::size_t{3} * kTile), rig.table);
  for (std::uint32_t tile = 0; tile < rig.tiles(); ++tile) EXPECT_FALSE(rig.look_at(tile));
  rig.finder.find();
  for (std::uint32_t tile = 0; tile < rig.tiles(); ++tile) EXPECT_EQ(rig.look_at(tile), tile < 3);
  rig.finder.close();
  EXPECT_FALSE(rig.look_at(0));
}

// After stop(), records may move. The sanitizer for threads sees a search that goes on.
TEST(stop_ends_the_search) {
  for (int round = 0; round < 50; ++round) {
    Rig rig(std::size_t{40} * kTile);
    std::vector<std::thread> threads;
    for (int i = 0; i < 2; ++i) threads.emplace_back([&] { rig.finder.find(); });
    for (std::uint32_t tile = 0; tile < static_cast<std::uint32_t>(round % 8); ++tile) {
      rig.look_at(tile);
      rig.finder.pass(tile + 1);
    }
    rig.finder.stop();
    for (std::uint32_t tile = 0; tile < rig.tiles(); ++tile) EXPECT_FALSE(rig.look_at(tile));
    for (std::uint64_t i = 1; i < 3000; ++i) rig.table.insert({i, ~i}, 0);
    rig.finder.find();  // does nothing
    EXPECT_FALSE(rig.look_at(0));
    for (std::thread& thread : threads) thread.join();
  }
}

}  // namespace
}  // namespace kilokv::engine
