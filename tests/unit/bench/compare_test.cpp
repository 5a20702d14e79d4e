// Two reports, with planted differences.
#include "client/bench/compare.hpp"

#include <gtest/gtest.h>

#include "tests/support/json.hpp"

namespace kilokv::bench {
namespace {

struct Sample {
  int batch_size = 64;
  int per_s = 1000, p50 = 100, p99 = 500, p999 = 900;
  std::string more = {};    // further fields of the run
  std::string config = {};  // further fields of its configuration
  std::string commit = "aaa";
};

std::string text(const Sample& run) {
  return R"({"committed_per_s": )" + std::to_string(run.per_s) + R"(, "latency_us": {"p50": )" +
         std::to_string(run.p50) + R"(, "p99": )" + std::to_string(run.p99) + R"(, "p999": )" +
         std::to_string(run.p999) + R"(}, "config": {"workload": "bank", "batch_size": )" +
         std::to_string(run.batch_size) + R"(, "seed": 1, "duration_us": 7)" + run.config +
         R"(}, "server": {"version": "1", "strategy": "auto", "device": "cpu"}, "hardware": {"cpu": "x", "cores": 2},)" +
         R"("failure": null, "interrupted_by": null, "commit": ")" + run.commit + "\"" + run.more + "}";
}

std::string list(const std::vector<Sample>& runs) {
  std::string json;
  for (const Sample& run : runs) json += (json.empty() ? "" : ", ") + text(run);
  return "[" + json + "]";
}

client::Expected<Comparison> compared(const std::string& a, const std::string& b, double threshold = 0.15) {
  return compare({"a.json", a}, {"b.json", b}, threshold);
}

Json json_of(const std::string& a, const std::string& b, double threshold = 0.15) {
  const auto comparison = compared(a, b, threshold);
  EXPECT_TRUE(comparison) << comparison.error().message;
  return Json::parse(comparison->json);
}

TEST(Compare, TheSameIsTheSame) {
  const auto comparison = compared(text({}), text({}));
  ASSERT_TRUE(comparison);
  EXPECT_FALSE(comparison->is_worse);
  const Json json = Json::parse(comparison->json);
  EXPECT_EQ(json["differences"].size(), 0u);
  EXPECT_EQ(json["points"][0]["committed_per_s"]["ratio"], 1);
  EXPECT_NE(comparison->text.find("the same"), std::string::npos);
}

TEST(Compare, MoreThanTheThresholdInEitherDirection) {
  EXPECT_EQ(json_of(text({}), text({.per_s = 1150}))["points"][0]["committed_per_s"]["verdict"], "same");
  EXPECT_EQ(json_of(text({}), text({.per_s = 1151}))["points"][0]["committed_per_s"]["verdict"], "better");
  EXPECT_EQ(json_of(text({.per_s = 1150}), text({}))["points"][0]["committed_per_s"]["verdict"], "same");
  const Json worse = json_of(text({.per_s = 1151}), text({}));
  EXPECT_EQ(worse["points"][0]["committed_per_s"]["verdict"], "worse");
  EXPECT_EQ(worse["worse"], true);
  EXPECT_EQ(json_of(text({}), text({.per_s = 1100}), 0.05)["points"][0]["committed_per_s"]["verdict"], "better");
}

TEST(Compare, LessLatencyIsBetter) {
  const Json json = json_of(text({}), text({.p50 = 200, .p99 = 250, .p999 = 900}));
  EXPECT_EQ(json["points"][0]["p50_us"]["verdict"], "worse");
  EXPECT_EQ(json["points"][0]["p50_us"]["ratio"], 2);
  EXPECT_EQ(json["points"][0]["p99_us"]["verdict"], "better");
  EXPECT_EQ(json["points"][0]["p999_us"]["verdict"], "same");
  EXPECT_TRUE(compared(text({}), text({.p999 = 2000}))->is_worse);
  EXPECT_FALSE(compared(text({}), text({.p999 = 20}))->is_worse);
}

TEST(Compare, PointsAreMatchedByTheirConfiguration) {
  const std::string a = list({{.batch_size = 1, .per_s = 10}, {.batch_size = 64}, {.batch_size = 256}});
  const std::string b = list({{.batch_size = 64}, {.batch_size = 1, .per_s = 100}, {.batch_size = 4}});
  const auto comparison = compared(a, b);
  ASSERT_TRUE(comparison) << comparison.error().message;
  const Json json = Json::parse(comparison->json);
  ASSERT_EQ(json["points"].size(), 2u);
  EXPECT_EQ(json["points"][0]["config_a"]["batch_size"], 1);
  EXPECT_EQ(json["points"][0]["committed_per_s"]["ratio"], 10);
  EXPECT_EQ(json["points"][1]["committed_per_s"]["ratio"], 1);
  EXPECT_EQ(json["only_a"][0]["batch_size"], 256);
  EXPECT_EQ(json["only_b"][0]["batch_size"], 4);
  EXPECT_NE(comparison->text.find("only in A: batch_size 256"), std::string::npos) << comparison->text;
  EXPECT_NE(comparison->text.find("B is worse in 0 of 2 points, and better in 1."), std::string::npos)
      << comparison->text;
}

TEST(Compare, TheSpreadOfRepeatsCountsIfItIsLarger) {
  const std::vector<Sample> wide = {{.per_s = 800}, {.per_s = 1000}, {.per_s = 1200}};
  EXPECT_EQ(json_of(list(wide), list({{.per_s = 1300}}))["points"][0]["committed_per_s"]["verdict"], "same");
  EXPECT_EQ(json_of(list(wide), list({{.per_s = 1401}}))["points"][0]["committed_per_s"]["verdict"], "better");
  EXPECT_EQ(json_of(list({wide[0], wide[2]}), list({{.per_s = 1300}}))["points"][0]["committed_per_s"]["verdict"],
            "better")
      << "two runs have no spread that counts";
}

TEST(Compare, ATuneIsAReportOfItsRuns) {
  const std::string tune = R"({"varied": "--batch-size", "runs": )" + list({{}, {.batch_size = 1}, {}}) + "}";
  const Json json = json_of(tune, list({{.batch_size = 1}, {}}));
  EXPECT_EQ(json["points"].size(), 2u);
  EXPECT_EQ(json["points"][0]["config_a"]["batch_size"], 1) << "the order of the runs is random";
  EXPECT_EQ(json["points"][1]["runs_a"], 2);
}

TEST(Compare, WhatElseDiffersIsTold) {
  Sample other;
  other.commit = "bbb";
  other.more = R"(, "warnings": [{"code": "machine_busy", "text": "t"}])";
  auto comparison = compared(text({}), text(other));
  EXPECT_NE(comparison->text.find("note  commit of kilokv-bench differs: A has aaa, B has bbb\n"), std::string::npos);
  EXPECT_NE(comparison->text.find("note  B has problems: warnings machine_busy\n"), std::string::npos);
  std::string elsewhere = text({});
  elsewhere.replace(elsewhere.find(R"("cores": 2)"), 10, R"("cores": 9)");
  elsewhere.replace(elsewhere.find(R"("auto")"), 6, R"("serial")");
  comparison = compared(text({}), elsewhere);
  EXPECT_NE(comparison->text.find("note  cores differs: A has 2, B has 9\n"), std::string::npos);
  EXPECT_NE(comparison->text.find("note  strategy of the server differs: A has auto, B has serial\n"),
            std::string::npos);
  std::string failed = text({});
  failed.replace(failed.find(R"("failure": null)"), 15, R"("failure": "x")");
  EXPECT_NE(compared(failed, text({}))->text.find("A has problems: 1 of 1 runs failed or ended early"),
            std::string::npos);
}

TEST(Compare, TwoSinglePointsAreComparedAlthoughTheyDiffer) {
  const auto comparison = compared(text({.batch_size = 64}), text({.batch_size = 128}));
  ASSERT_TRUE(comparison);
  EXPECT_NE(comparison->text.find("note  configuration batch_size differs: A has 64, B has 128\n"), std::string::npos);
}

TEST(Compare, AnotherDurationIsTheSamePoint) {
  std::string longer = list({{.batch_size = 1}, {}});
  longer.replace(longer.find(R"("duration_us": 7)"), 16, R"("duration_us": 9)");
  const auto comparison = compared(list({{.batch_size = 1}, {}}), longer);
  ASSERT_TRUE(comparison);
  EXPECT_EQ(Json::parse(comparison->json)["points"].size(), 2u);
  EXPECT_NE(comparison->text.find("note  --duration in us differs: A has 7, B has 7, 9\n"), std::string::npos);
}

TEST(Compare, TheOrderOfFieldsDoesNotMatter) {
  EXPECT_EQ(
      json_of(list({{.config = R"(, "x": 1, "y": 2)"}, {}}), list({{.config = R"(, "y": 2, "x": 1)"}, {}}))["points"]
          .size(),
      2u);
}

TEST(Compare, Refusals) {
  for (const char* wrong : {"", "{", "7", "[]", "{}", R"({"runs": []})", R"([{"config": {}}])", R"({"config": {}})"}) {
    const auto comparison = compared(text({}), wrong);
    ASSERT_FALSE(comparison) << wrong;
    EXPECT_EQ(comparison.error().message, "b.json is no JSON report of kilokv-bench run, sweep or tune");
  }
  const auto none = compared(list({{.batch_size = 1}, {.batch_size = 2}}), list({{.batch_size = 3}}));
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().message.find("no configuration in common"), std::string::npos);
}

TEST(Compare, NothingCommitted) {
  const Json json = json_of(text({.per_s = 0}), text({.per_s = 0}));
  EXPECT_EQ(json["points"][0]["committed_per_s"]["verdict"], "same");
  EXPECT_TRUE(json["points"][0]["committed_per_s"]["ratio"].is_null());
  EXPECT_TRUE(compared(text({}), text({.per_s = 0}))->is_worse);
}

}  // namespace
}  // namespace kilokv::bench
