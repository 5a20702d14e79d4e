// Pages of scans: their limits, and older boundaries.
#include "server/core/reads/reader.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/sim_environment.hpp"
#include "tests/unit/core/table_fixture.hpp"

namespace kilokv::server {
namespace {

using Pairs = std::vector<std::pair<std::string, std::int64_t>>;

class ReaderTest : public ::testing::Test {
 protected:
  void add(const std::string& key, std::int64_t delta) {
    table.add(key, delta);
    reader.record(table.now().batch);
  }
  void erase(const std::string& key) {
    table.erase(key);
    reader.record(table.now().batch);
  }
  Result<ScanPage> read(const ScanRequest& request) { return reader.read(request, table.now()); }
  // The page after this one.
  Result<ScanPage> next(const ScanPage& page, std::uint32_t limit = 2) {
    return read({page.next_from, "", limit, page.boundary, true, page.reader});
  }
  static Pairs integers(const Result<ScanPage>& page) {
    Pairs pairs;
    EXPECT_TRUE(page.ok()) << page.status().message();
    if (!page.ok()) return pairs;
    for (const ScanPage::Pair& pair : page->pairs) pairs.emplace_back(pair.key, pair.integer);
    return pairs;
  }

  SimEnvironment sim{1};
  const Environment environment = sim.environment();
  DatabaseOptions options;
  WrittenTable table;
  Reader reader{options, environment, table.engine(), WrittenTable::kSecret};
};

TEST_F(ReaderTest, APageEndsAtItsLimitAndSaysWhereTheNextOneStarts) {
  for (const char* key : {"a", "b", "c"}) add(key, 1);
  const Result<ScanPage> first = read({"", "", 2, {}});
  EXPECT_EQ(integers(first), (Pairs{{"a", 1}, {"b", 1}}));
  EXPECT_TRUE(first->more);
  EXPECT_EQ(first->next_from, "c");
  EXPECT_EQ(first->reader, 0u) << "nobody asked for the boundary to be kept";
  EXPECT_EQ(first->boundary, 3u);
  EXPECT_EQ(first->boundary_version, table.now().next_version - 1);
  const Result<ScanPage> last = read({"c", "", 2, {}});
  EXPECT_EQ(integers(last), (Pairs{{"c", 1}}));
  EXPECT_FALSE(last->more);
  EXPECT_EQ(integers(read({"a", "b", 0, {}})), (Pairs{{"a", 1}}));
}

TEST_F(ReaderTest, TheOptionsBoundEveryPage) {
  options.scan_pairs_max = 2;
  for (const char* key : {"a", "b", "c"}) add(key, 1);
  EXPECT_EQ(integers(read({"", "", 0, {}})).size(), 2u);
  EXPECT_EQ(integers(read({"", "", 100, {}})).size(), 2u);
}

TEST_F(ReaderTest, APageHasNoMoreBytesThanItMayButAtLeastOnePair) {
  for (const char* key : {"a", "b", "c"}) table.put(key, std::string(10000, 'v'));
  options.scan_bytes_max = 25000;
  EXPECT_EQ(read({"", "", 0, {}})->pairs.size(), 2u);
  const Result<ScanPage> one = read({"", "", 0, {}, false, 0, 1});
  EXPECT_EQ(one->pairs.size(), 1u);
  EXPECT_TRUE(one->more);
  EXPECT_EQ(one->next_from, "b");
}

TEST_F(ReaderTest, LaterPagesShowTheBoundaryOfTheFirst) {
  for (const char* key : {"a", "b", "c", "d"}) add(key, 1);
  const Result<ScanPage> first = read({"", "", 2, {}, true});
  EXPECT_NE(first->reader, 0u);
  add("c", 5);
  erase("d");
  add("e", 1);
  const Result<ScanPage> last = next(*first, 10);
  EXPECT_EQ(integers(last), (Pairs{{"c", 1}, {"d", 1}}));
  EXPECT_EQ(last->boundary, first->boundary);
  EXPECT_EQ(last->boundary_version, first->boundary_version);
  EXPECT_EQ(last->batch_time_us, first->batch_time_us);
  EXPECT_EQ(integers(read({"", "", 0, {}})), (Pairs{{"a", 1}, {"b", 1}, {"c", 6}, {"e", 1}}));
}

TEST_F(ReaderTest, TheLastPageGivesTheBoundaryUp) {
  for (const char* key : {"a", "b", "c"}) add(key, 1);
  const Result<ScanPage> first = read({"", "", 2, {}, true});
  EXPECT_FALSE(next(*first)->more);
  add("a", 1);
  EXPECT_EQ(next(*first).status().code(), StatusCode::aborted);
}

TEST_F(ReaderTest, AnOlderBoundaryThatNobodyKeepsIsAborted) {
  add("a", 1);
  add("a", 1);
  EXPECT_EQ(read({"", "", 0, BatchNumber{1}}).status().code(), StatusCode::aborted);
  EXPECT_TRUE(read({"", "", 0, BatchNumber{2}}).ok()) << "the newest one";
}

TEST_F(ReaderTest, AnOldBoundaryIsGivenUp) {
  for (const char* key : {"a", "b", "c"}) add(key, 1);
  const Result<ScanPage> first = read({"", "", 2, {}, true});
  sim.clock.advance(options.snapshot_age_us_max + 1);
  add("a", 1);
  EXPECT_EQ(next(*first).status().code(), StatusCode::aborted);
}

TEST_F(ReaderTest, TombstonesStayAsLongAsAnOpenBoundary) {
  for (const char* key : {"a", "b", "c"}) add(key, 1);
  EXPECT_EQ(reader.drop_floor(1000), 1000u);
  const Result<ScanPage> first = read({"", "", 2, {}, true});
  add("a", 1);
  EXPECT_EQ(reader.drop_floor(1000), first->boundary_version);
  EXPECT_FALSE(next(*first)->more);
  EXPECT_EQ(reader.drop_floor(1000), 1000u);
}

TEST_F(ReaderTest, AmongDeletedKeysAPageEndsShort) {
  options.scan_pairs_max = 2;
  for (int i = 0; i < 10; ++i) add("k" + std::to_string(i), 1);
  for (int i = 0; i < 9; ++i) erase("k" + std::to_string(i));
  const Result<ScanPage> page = read({"", "", 0, {}});
  EXPECT_TRUE(page->pairs.empty());
  EXPECT_TRUE(page->more);
  EXPECT_EQ(page->next_from, "k8") << "after four records for each pair that it may have";
  EXPECT_EQ(integers(read({page->next_from, "", 0, {}})), (Pairs{{"k9", 1}}));
}

// The same in reverse. The next page ends where this one has stopped.
TEST_F(ReaderTest, AReverseScanGoesFromTheLastKeyToTheFirst) {
  for (const char* key : {"a", "b", "c", "d", "e"}) add(key, 1);
  ScanRequest request{"a", "e", 2, {}, true};
  request.reverse = true;
  const Result<ScanPage> first = read(request);
  EXPECT_EQ(integers(first), (Pairs{{"d", 1}, {"c", 1}}));
  EXPECT_TRUE(first->more);
  EXPECT_EQ(first->next_to, "c");
  EXPECT_EQ(first->next_from, "");
  add("b", 5);
  erase("a");
  add("aa", 1);
  request = {"a", first->next_to, 2, first->boundary, true, first->reader};
  request.reverse = true;
  const Result<ScanPage> last = read(request);
  EXPECT_EQ(integers(last), (Pairs{{"b", 1}, {"a", 1}})) << "at the boundary of the first page";
  EXPECT_FALSE(last->more);
  EXPECT_EQ(last->next_to, "");
  request = {"", "", 1, {}};
  request.reverse = true;
  EXPECT_EQ(integers(read(request)), (Pairs{{"e", 1}}));
}

TEST_F(ReaderTest, AmongDeletedKeysAReversePageEndsShort) {
  options.scan_pairs_max = 2;
  for (int i = 0; i < 10; ++i) add("k" + std::to_string(i), 1);
  for (int i = 1; i < 10; ++i) erase("k" + std::to_string(i));
  ScanRequest request{"", "", 0, {}};
  request.reverse = true;
  const Result<ScanPage> page = read(request);
  EXPECT_TRUE(page->pairs.empty());
  EXPECT_TRUE(page->more);
  EXPECT_EQ(page->next_to, "k2") << "after four records for each pair that it may have: k9 to k2";
  request.to = page->next_to;
  EXPECT_EQ(integers(read(request)), (Pairs{{"k0", 1}}));
}

}  // namespace
}  // namespace kilokv::server
