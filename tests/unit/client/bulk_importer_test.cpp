// Imports into a fake database, which runs requests in any order. The random tests break imports off again and again.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <future>
#include <map>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "client/cli/bulk/importer.hpp"
#include "tests/support/json.hpp"
#include "tests/support/test_folder.hpp"
#include "tests/unit/client/fake_database.hpp"

namespace kilokv::client {
namespace {

constexpr const char* kPosition = "import/position";

ImportOptions csv_options(Existing existing = Existing::overwrite, const std::string& position_key = {}) {
  ImportOptions options;
  options.format = BulkFormat::csv;
  options.existing = existing;
  options.position_key = position_key;
  options.batch_size = 3;
  options.in_flight = 4;
  return options;
}

class BulkImporter : public testing::Test {
 protected:
  ImportReport import(const std::string& text, const ImportOptions& options) {
    const auto client = database_.client();
    const int descriptor = ::open(folder_.write("in", text).c_str(), O_RDONLY);
    ImportReport report = Importer(client.get(), options, descriptor).run();
    ::close(descriptor);
    return report;
  }

  // The integers of the database, without the position.
  std::map<std::string, std::int64_t> integers() {
    std::map<std::string, std::int64_t> all;
    for (const auto& [key, stored] : database_.state()) {
      if (key != kPosition) all[key] = std::get<std::int64_t>(stored.value);
    }
    return all;
  }

  // The numbers of the lines that were set aside, in the order of the file.
  std::vector<std::int64_t> bad_lines() const {
    std::vector<std::int64_t> numbers;
    std::ifstream in(folder_.path("bad"));
    for (std::string line; std::getline(in, line);) numbers.push_back(Json::parse(line)["line"].integer());
    return numbers;
  }

  test::TestFolder folder_;
  FakeDatabase database_{1};
};

using Integers = std::map<std::string, std::int64_t>;

TEST_F(BulkImporter, WritesEveryRecord) {
  const ImportReport report = import("key,value\na,1\nb,2\nc,3\nd,4\n", csv_options());
  EXPECT_EQ(integers(), (Integers{{"a", 1}, {"b", 2}, {"c", 3}, {"d", 4}}));
  EXPECT_EQ(report.totals.written, 4u);
  EXPECT_EQ(report.totals.line, 6u);
  EXPECT_FALSE(report.error);
  EXPECT_FALSE(report.continued_at);
}

TEST_F(BulkImporter, TheLastRecordOfAKeyCounts) {
  for (const char* position : {"", kPosition}) {
    std::string text = "key,value\n";
    for (int i = 0; i < 300; ++i) text += "k" + std::to_string(i % 7) + "," + std::to_string(i) + "\n";
    import(text, csv_options(Existing::overwrite, position));
    const Integers wanted = {{"k0", 294}, {"k1", 295}, {"k2", 296}, {"k3", 297}, {"k4", 298}, {"k5", 299}, {"k6", 293}};
    EXPECT_EQ(integers(), wanted) << position;
  }
}

TEST_F(BulkImporter, TheFirstRecordOfAKeyIsKept) {
  for (const char* position : {"", kPosition}) {
    for (int i = 0; i < 7; ++i) database_.erase("k" + std::to_string(i));
    database_.put("k3", 1000);
    std::string text = "key,value\n";
    for (int i = 0; i < 300; ++i) text += "k" + std::to_string(i % 7) + "," + std::to_string(i) + "\n";
    const ImportReport report = import(text, csv_options(Existing::keep, position));
    EXPECT_EQ(integers(), (Integers{{"k0", 0}, {"k1", 1}, {"k2", 2}, {"k3", 1000}, {"k4", 4}, {"k5", 5}, {"k6", 6}}))
        << position;
    EXPECT_EQ(report.totals.written, 6u);
    EXPECT_EQ(report.totals.kept, 294u);
  }
}

TEST_F(BulkImporter, ARefusedRecordStopsTheImport) {
  database_.put("k8", 1000);
  std::string text = "key,value\n";
  for (int i = 0; i < 100; ++i) text += "k" + std::to_string(i) + "," + std::to_string(i) + "\n";
  const ImportReport report = import(text, csv_options(Existing::refuse, kPosition));
  ASSERT_TRUE(report.stopped_at);
  EXPECT_EQ(report.stopped_at->line, 10u);
  EXPECT_EQ(report.stopped_at->problem, "the key exists already");
  EXPECT_EQ(report.totals.line, 10u);
  EXPECT_EQ(report.totals.line_max, 10u);
  const Integers wanted = {{"k0", 0}, {"k1", 1}, {"k2", 2}, {"k3", 3},   {"k4", 4},
                           {"k5", 5}, {"k6", 6}, {"k7", 7}, {"k8", 1000}};
  EXPECT_EQ(integers(), wanted) << "nothing after the refused line, because of the position";
  // The line stops it again, until its key is gone. Then it goes on there.
  EXPECT_TRUE(import(text, csv_options(Existing::refuse, kPosition)).stopped_at);
  database_.erase("k8");
  const ImportReport rest = import(text, csv_options(Existing::refuse, kPosition));
  EXPECT_FALSE(rest.stopped_at);
  EXPECT_EQ(rest.continued_at, 10u);
  EXPECT_EQ(rest.totals.written, 92u);
  EXPECT_EQ(integers().size(), 100u);
}

TEST_F(BulkImporter, RefusedRecordsAreSetAside) {
  database_.put("k8", 1000);
  database_.put("k50", 1000);
  ImportOptions options = csv_options(Existing::refuse);
  options.bad_lines_file = folder_.path("bad");
  std::string text = "key,value\n";
  for (int i = 0; i < 100; ++i) text += "k" + std::to_string(i) + "," + std::to_string(i) + "\n";
  text += "k1,5\n";
  const ImportReport report = import(text, options);
  EXPECT_EQ(report.totals.written, 98u);
  EXPECT_EQ(report.bad_lines, 3u);
  const auto lines = bad_lines();
  EXPECT_EQ(std::multiset<std::int64_t>(lines.begin(), lines.end()), (std::multiset<std::int64_t>{10, 52, 102}));
  EXPECT_EQ(integers()["k1"], 1);
}

TEST_F(BulkImporter, ABadLineStopsTheImportExactlyThere) {
  for (const char* position : {"", kPosition}) {
    const ImportReport report =
        import("key,value\na,1\nb,2\nc,3\nd,4\n,5\ne,6\n", csv_options(Existing::overwrite, position));
    ASSERT_TRUE(report.stopped_at);
    EXPECT_EQ(report.stopped_at->line, 6u);
    EXPECT_EQ(report.stopped_at->problem, "the key is empty");
    EXPECT_EQ(report.totals.line, 6u);
    EXPECT_EQ(integers(), (Integers{{"a", 1}, {"b", 2}, {"c", 3}, {"d", 4}}));
  }
  // With a position, a corrected file goes on there, because nothing before the position has changed.
  const ImportReport rest =
      import("key,value\na,1\nb,2\nc,3\nd,4\nf,5\ne,6\n", csv_options(Existing::overwrite, kPosition));
  EXPECT_EQ(rest.continued_at, 6u);
  EXPECT_EQ(rest.totals.written, 2u);
}

TEST_F(BulkImporter, ARecordThatTheServerDoesNotTakeIsABadLine) {
  ImportOptions options = csv_options(Existing::keep, kPosition);
  database_.set_bytes_max(20, 400);  // as long as the position
  options.bad_lines_file = folder_.path("bad");
  const std::string long_key(21, 'k'), long_value(401, 'v');
  const ImportReport report = import("key,value\na,1\n" + long_key + ",2\nb," + long_value + "\nc,3\n", options);
  EXPECT_EQ(integers(), (Integers{{"a", 1}, {"c", 3}}));
  EXPECT_EQ(report.bad_lines, 2u);
  std::ifstream in(folder_.path("bad"));
  std::string line;
  std::getline(in, line);
  EXPECT_EQ(Json::parse(line)["problem"].text(),
            "the key has 21 bytes, and the server takes 20 bytes (--key-bytes-max of kilokvd)");
  std::getline(in, line);
  EXPECT_EQ(Json::parse(line)["line"].integer(), 4);
  EXPECT_EQ(Json::parse(line)["problem"].text(),
            "the value has 401 bytes, and the server takes 400 bytes (--value-bytes-max of kilokvd)");
}

TEST_F(BulkImporter, IntegersAreCounted) {
  const std::string text = "key,value\na,1\nb,007\nc,-5\nd, 7\ne,1e3\nf,\ng,1\n";
  database_.put("c", 1000);
  const ImportReport report = import(text, csv_options(Existing::keep));
  EXPECT_EQ(report.totals.written, 6u);
  EXPECT_EQ(report.totals.integers, 2u);
  EXPECT_EQ(report.totals.kept, 1u);
}

TEST_F(BulkImporter, OnlyIntegersAreTakenIfThisIsWanted) {
  ImportOptions options = csv_options(Existing::overwrite, kPosition);
  options.integers_only = true;
  const ImportReport stopped = import("key,value\na,1\nb,007\nc,2\n", options);
  ASSERT_TRUE(stopped.stopped_at);
  EXPECT_EQ(stopped.stopped_at->line, 3u);
  EXPECT_EQ(stopped.stopped_at->problem,
            "the value \"007\" is not written as integers are printed, and would be bytes (--integers)");
  EXPECT_EQ(integers(), (Integers{{"a", 1}}));
  EXPECT_EQ(import("key,value\na,1\nb,7\nc,2\n", options).totals.integers, 2u);
  // An import goes on only as it began.
  options.integers_only = false;
  EXPECT_EQ(import("key,value\na,1\nb,7\nc,2\n", options).error.code, ErrorCode::failed_precondition);
  options.integers_only = true;
  database_.erase(kPosition);
  options.format = BulkFormat::json_lines;
  options.bad_lines_file = folder_.path("bad");
  const ImportReport report = import("{\"key\": \"a\", \"value\": 3}\n{\"key\": \"b\", \"value\": \"4\"}\n", options);
  EXPECT_EQ(report.totals.written, 1u);
  EXPECT_EQ(bad_lines(), (std::vector<std::int64_t>{2}));
}

TEST_F(BulkImporter, ThePositionKeyIsNoRecord) {
  const ImportReport report =
      import("key,value\na,1\n" + std::string(kPosition) + ",2\n", csv_options(Existing::overwrite, kPosition));
  ASSERT_TRUE(report.stopped_at);
  EXPECT_EQ(report.stopped_at->line, 3u);
}

TEST_F(BulkImporter, AnImportThatIsDoneIsNotDoneAgain) {
  const std::string text = "key,value\na,1\nb,2\n";
  import(text, csv_options(Existing::refuse, kPosition));
  const ImportReport again = import(text, csv_options(Existing::refuse, kPosition));
  EXPECT_EQ(again.totals.written, 0u);
  EXPECT_EQ(again.continued_at, 4u);
  EXPECT_EQ(again.input_problem, "");
  // The input may grow.
  EXPECT_EQ(import(text + "c,3\n", csv_options(Existing::refuse, kPosition)).totals.written, 1u);
  EXPECT_EQ(integers(), (Integers{{"a", 1}, {"b", 2}, {"c", 3}}));
}

TEST_F(BulkImporter, AnotherInputIsRefused) {
  import("key,value\na,1\nb,2\n", csv_options(Existing::overwrite, kPosition));
  for (const char* other : {"key,value\na,1\nb,3\nc,4\n", "key,value\na,1\n", ""}) {
    const ImportReport report = import(other, csv_options(Existing::overwrite, kPosition));
    EXPECT_NE(report.input_problem, "") << other;
    EXPECT_FALSE(report.is_file_problem) << other;
    EXPECT_EQ(report.totals.written, 0u);
  }
  const ImportReport other_rules = import("key,value\na,1\nb,2\n", csv_options(Existing::keep, kPosition));
  EXPECT_EQ(other_rules.error.code, ErrorCode::failed_precondition);
  database_.put("taken", 5);
  EXPECT_EQ(import("key,value\na,1\n", csv_options(Existing::keep, "taken")).error.code,
            ErrorCode::failed_precondition);
  EXPECT_EQ(integers()["taken"], 5);
}

TEST_F(BulkImporter, AnImportGoesOnWithItsOwnSeparatorOnly) {
  ImportOptions options = csv_options(Existing::overwrite, kPosition);
  import("key,value\na,1\n", options);
  const auto records = [this] {
    return Json::parse(std::get<std::string>(database_.state().at(kPosition).value))["records"].text();
  };
  EXPECT_EQ(records(), "csv with the columns key and value") << "as before there was a choice";
  options.columns.separator = ';';
  EXPECT_EQ(import("key;value\na;1\n", options).error.code, ErrorCode::failed_precondition);
  database_.erase(kPosition);
  EXPECT_EQ(import("key;value\na;2\n", options).totals.written, 1u);
  EXPECT_EQ(records(), "csv with the columns key and value, separated by ;");
  EXPECT_EQ(integers(), (Integers{{"a", 2}}));
  EXPECT_EQ(import("key;value\na;2\nb;3\n", options).totals.written, 1u);
  options.columns.separator = ',';
  EXPECT_EQ(import("key;value\na;2\nb;3\n", options).error.code, ErrorCode::failed_precondition);
}

TEST_F(BulkImporter, AWrongInputDoesNotEndARunThatIsUnderWay) {
  import("key,value\na,1\nb,2\n", csv_options(Existing::overwrite, kPosition));
  const FakeDatabase::State before = database_.state();
  EXPECT_NE(import("key,value\na,1\nb,3\n", csv_options(Existing::overwrite, kPosition)).input_problem, "");
  EXPECT_EQ(database_.state(), before) << "the position has the number of another run";
}

TEST_F(BulkImporter, AnOldFileOfBadLinesIsNotTouched) {
  ImportOptions options = csv_options(Existing::overwrite, kPosition);
  options.bad_lines_file = folder_.path("bad");
  import("key,value\n,1\n", options);
  database_.erase(kPosition);
  for (int i = 0; i < 2; ++i) {  // also after the first refusal
    const ImportReport report = import("key,value\na,1\n", options);
    EXPECT_NE(report.input_problem.find("move it away"), std::string::npos);
    EXPECT_TRUE(report.is_file_problem);
    EXPECT_EQ(bad_lines(), (std::vector<std::int64_t>{2}));
  }
  EXPECT_TRUE(database_.state().empty());
}

TEST_F(BulkImporter, ALineThatIsNotWholeIsReadAgain) {
  ImportOptions options = csv_options(Existing::refuse, kPosition);
  options.bad_lines_file = folder_.path("bad");
  for (const char* text :
       {"key,value\na,1\nalpha,be", "key,value\na,1\nalpha,beta,5", "key,value\na,1\n\"alpha,5\nb,6\n"}) {
    const ImportReport report = import(text, options);
    EXPECT_EQ(report.input_problem, "");
    EXPECT_EQ(report.bad_lines, 1u);
    EXPECT_EQ(report.totals.line, 3u);
    EXPECT_EQ(bad_lines(), (std::vector<std::int64_t>{3}));
    EXPECT_EQ(integers(), (Integers{{"a", 1}}));
  }
  const ImportReport report = import("key,value\na,1\n\"alpha,5\nb,6\n\",7\nc,8\n", options);
  EXPECT_EQ(report.bad_lines, 0u);
  EXPECT_EQ(integers(), (Integers{{"a", 1}, {"alpha,5\nb,6\n", 7}, {"c", 8}}));
}

TEST_F(BulkImporter, AServerThatLetsNothingWaitGetsOneChunkAfterTheOther) {
  database_.forbid_waiting();
  database_.put("k50", 1000);
  std::string text = "key,value\n";
  for (int i = 0; i < 100; ++i) text += "k" + std::to_string(i) + ",1\n";
  const ImportReport report = import(text, csv_options(Existing::keep, kPosition));
  EXPECT_FALSE(report.error) << report.error.message;
  EXPECT_EQ(report.totals.written, 99u);
  EXPECT_EQ(integers().size(), 100u);
  EXPECT_EQ(report.totals.line, 102u);
}

TEST_F(BulkImporter, ManyEmptyLinesAreNoLargeChunk) {
  ImportOptions options = csv_options(Existing::overwrite, kPosition);
  const ImportReport report = import("key,value\na,1\n" + std::string(10 << 20, '\n') + "b,2\n", options);
  EXPECT_EQ(report.totals.line, 3u + (10u << 20) + 1);
  EXPECT_EQ(integers(), (Integers{{"a", 1}, {"b", 2}}));
  EXPECT_GE(database_.state().at(kPosition).writes, 3u) << "one chunk for at most 8 MiB";
}

TEST_F(BulkImporter, ManyRequestsAreInFlight) {
  std::string text = "key,value\n";
  for (int i = 0; i < 3'000; ++i) text += "k" + std::to_string(i) + ",1\n";
  import(text, csv_options(Existing::overwrite, kPosition));
  EXPECT_GE(database_.in_flight_max(), 2u);
  EXPECT_LE(database_.in_flight_max(), 4u);
}

TEST_F(BulkImporter, AnImportThatAnotherOneTakesOverEnds) {
  const std::string text = "key,value\na,1\n";
  int ends[2] = {-1, -1};
  ASSERT_EQ(::pipe(ends), 0);
  const auto client = database_.client();
  Importer first(client.get(), csv_options(Existing::overwrite, kPosition), ends[0]);
  std::future<ImportReport> running = std::async(std::launch::async, [&first] { return first.run(); });
  ASSERT_EQ(::write(ends[1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
  while (!database_.state().contains("a")) std::this_thread::yield();
  EXPECT_EQ(import(text, csv_options(Existing::overwrite, kPosition)).continued_at, 3u);
  ASSERT_EQ(::write(ends[1], "b,2\n", 4), 4);
  ::close(ends[1]);
  const ImportReport report = running.get();
  ::close(ends[0]);
  EXPECT_EQ(report.error.code, ErrorCode::failed_precondition);
  EXPECT_EQ(report.totals.line, 3u);
  EXPECT_EQ(integers(), (Integers{{"a", 1}}));
}

// Breaks off imports of one file until one is complete.
class BrokenOff {
 public:
  BrokenOff(std::uint64_t seed, Existing existing)
      : random_(seed), database_(seed), existing_(existing), options_(csv_options(existing, kPosition)) {
    options_.batch_size = 1 + static_cast<std::uint32_t>(random_() % 5);
    options_.in_flight = 1 + static_cast<std::uint32_t>(random_() % 6);
    if (existing != Existing::overwrite || random_() % 2 == 0) options_.bad_lines_file = folder_.path("bad");
  }

  void run() {
    make_input();
    for (int runs = 0;; ++runs) {
      ASSERT_LT(runs, 1'000);
      if (random_() % 8 != 0) database_.break_off_after(1 + static_cast<std::uint32_t>(random_() % 12));
      const auto client = database_.client();
      const int descriptor = ::open(path_.c_str(), O_RDONLY);
      const ImportReport report = Importer(client.get(), options_, descriptor).run();
      ::close(descriptor);
      ASSERT_EQ(report.input_problem, "");
      if (!report.error) break;
      ASSERT_EQ(report.error.code, ErrorCode::unavailable) << report.error.message;
    }
    check();
  }

 private:
  // Every key is in the file once, except that an import that keeps existing keys may meet one again.
  void make_input() {
    std::string text = "key,value\n";
    for (std::int64_t line = 2; line < 80; ++line) {
      const std::uint64_t kind = random_() % 20;
      if (kind == 0 && !options_.bad_lines_file.empty()) {
        text += ",5\n";
        bad_.insert(line);
        continue;
      }
      std::string key = "k" + std::to_string(line);
      if (kind == 2 && existing_ == Existing::keep) key = "k" + std::to_string(2 + random_() % 40);
      if (kind == 1 && !wanted_.contains(key)) {
        database_.put(key, -1);
        if (existing_ == Existing::refuse) bad_.insert(line);
        if (existing_ != Existing::overwrite) wanted_[key] = {-1, 0};
      }
      wanted_.try_emplace(key, FakeDatabase::Stored{line, 1});
      text += key + "," + std::to_string(line) + "\n";
    }
    path_ = folder_.write("in", text);
  }

  void check() {
    FakeDatabase::State state = database_.state();
    state.erase(kPosition);
    ASSERT_EQ(state.size(), wanted_.size());
    for (const auto& [key, stored] : wanted_) {
      ASSERT_EQ(std::get<std::int64_t>(state[key].value), std::get<std::int64_t>(stored.value)) << key;
      ASSERT_EQ(state[key].writes, stored.writes) << key << " was written more or less than once";
    }
    if (options_.bad_lines_file.empty()) return;
    std::multiset<std::int64_t> lines;
    std::ifstream in(options_.bad_lines_file);
    for (std::string line; std::getline(in, line);) lines.insert(Json::parse(line)["line"].integer());
    ASSERT_EQ(lines, bad_);
  }

  std::mt19937_64 random_;
  FakeDatabase database_;
  const Existing existing_;
  ImportOptions options_;
  test::TestFolder folder_;
  std::string path_;
  FakeDatabase::State wanted_;
  std::multiset<std::int64_t> bad_;
};

void break_off_imports(Existing existing) {
  constexpr std::uint64_t kRounds = 60;
  const char* replayed = std::getenv("KILOKV_TEST_SEED");
  const std::uint64_t first = replayed != nullptr ? std::stoull(replayed) : std::random_device{}();
  for (std::uint64_t seed = first; seed < first + (replayed != nullptr ? 1 : kRounds); ++seed) {
    SCOPED_TRACE("replay: KILOKV_TEST_SEED=" + std::to_string(seed) +
                 " build/release/tests/bin/client_unit_test --gtest_filter=BulkImporterBrokenOff.*");
    BrokenOff(seed, existing).run();
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(BulkImporterBrokenOff, EachRecordIsWrittenOnce) { break_off_imports(Existing::overwrite); }
TEST(BulkImporterBrokenOff, EachRecordIsWrittenOrKeptOnce) { break_off_imports(Existing::keep); }
TEST(BulkImporterBrokenOff, EachRecordIsWrittenOrRefusedOnce) { break_off_imports(Existing::refuse); }

}  // namespace
}  // namespace kilokv::client
