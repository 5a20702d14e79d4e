#include "client/cli/json_stream.hpp"

#include <gtest/gtest.h>

#include <sstream>
#include <vector>

#include "client/cli/transaction_json.hpp"

namespace kilokv::client {
namespace {

// Each value with its position.
std::vector<std::string> values(const std::string& text) {
  std::istringstream input(text);
  JsonStream stream(&input);
  std::vector<std::string> all;
  while (const auto value = stream.next()) {
    all.push_back(std::to_string(value->begin.line) + ":" + std::to_string(value->begin.column) + " " + value->text);
  }
  return all;
}

using Values = std::vector<std::string>;

TEST(JsonStream, ValuesMayStandOnOneLineOrOnMany) {
  EXPECT_EQ(values(""), Values());
  EXPECT_EQ(values(" \t\r\n\n"), Values());
  EXPECT_EQ(values("{}"), Values{"1:1 {}"});
  EXPECT_EQ(values("{}{} {\n}\n\n [ ]"), (Values{"1:1 {}", "1:3 {}", "1:6 {\n}", "4:2 [ ]"}));
  EXPECT_EQ(values("3 true\n"), (Values{"1:1 3", "1:3 true"}));
}

TEST(JsonStream, BracketsInStringsAreText) {
  EXPECT_EQ(values(R"({"a}": "\"}{"}{"b": "\\"}{})"),
            (Values{R"(1:1 {"a}": "\"}{"})", R"(1:15 {"b": "\\"})", "1:26 {}"}));
}

TEST(JsonStream, ColumnsCountCharacters) {
  EXPECT_EQ(values("{\"\u00e4\u20ac\"} 1"), (Values{"1:1 {\"\u00e4\u20ac\"}", "1:8 1"}));
}

TEST(JsonStream, AnUnclosedStringEndsWithItsLine) {
  EXPECT_EQ(values("{\"abc}\n{}"), (Values{"1:1 {\"abc}\n", "2:1 {}"}));
  EXPECT_EQ(values("{\""), Values{"1:1 {\""});
  EXPECT_EQ(values("{\"\n{}"), (Values{"1:1 {\"\n", "2:1 {}"}));
}

TEST(JsonStream, ATransactionIsReadBeforeTheInputEnds) {
  std::stringstream pipe;
  JsonStream stream(&pipe);
  pipe << "{\"then\": []}";
  const auto value = stream.next();
  ASSERT_TRUE(value);
  EXPECT_TRUE(pipe.good()) << "it looked beyond the last bracket";
}

TEST(JsonProblem, SaysWhatAndWhere) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"{\"then\": [\n  {\"op\": \"get\",}]}", "line 2, column 16: this is not JSON: unexpected }"},
      {"{\"then\" 17}", "line 1, column 9: this is not JSON: unexpected 17"},
      {"{\"then\": [1 \"abc\"]}", "line 1, column 13: this is not JSON: unexpected \"abc\""},
      {"{then: []}", "line 1, column 2: this is not JSON: unexpected then"},
      {"{\"then\": tru, \"x\": 1}", "line 1, column 10: this is not JSON: unexpected tru"},
      {"{\u201cthen\u201d: []}", "line 1, column 2: this is not JSON: unexpected \u201cthen\u201d"},
      {"{\"\u00e4\": }", "line 1, column 7: this is not JSON: unexpected }"},
      {"{\"a\\qb\": 1}", "line 1, column 5: this is not JSON: unexpected q"},
      {"{\"a\xff\": 1}", "line 1, column 4: this is not JSON: a byte that is not UTF-8"},
      {"{\"a\x01\": 1}", "line 1, column 4: this is not JSON: unexpected control character"},
      {"{\"abc}\n", "line 1, column 7: this is not JSON: the line ends inside a string"},
      {"{\"then\": [\n",
       "line 2, column 1: this is not JSON: the text ends too early: a bracket or a quote is not closed"},
      {"{\"then\": [}", "line 1, column 11: this is not JSON: unexpected }"},
      {"{\"then\": [{\"op\": \"add\", \"key\": \"a\", \"delta\": 1e999}]}",
       "line 1, column 1: a number of this transaction is too large"},
      {"[]", "line 1, column 1: not a JSON object"},
      {"{\"thne\": []}", "line 1, column 1: unknown field \"thne\"; did you mean \"then\"?"},
  };
  for (const auto& [text, expected] : cases) {
    Batch batch;
    const auto appended = append_transaction(text, &batch);
    ASSERT_FALSE(appended) << text;
    EXPECT_EQ(appended.error().message, expected) << text;
  }
}

TEST(JsonProblem, PositionsAreThoseOfTheWholeInput) {
  Batch batch;
  EXPECT_EQ(append_transaction("{\n 1}", &batch, {.line = 7, .column = 5}).error().message,
            "line 8, column 2: this is not JSON: unexpected 1");
  EXPECT_EQ(append_transaction("{1}", &batch, {.line = 7, .column = 5}).error().message,
            "line 7, column 6: this is not JSON: unexpected 1");
}

TEST(JsonProblem, ALongValueIsCut) {
  Batch batch;
  const std::string text = R"({"then": [{"op": "add", "key": "a", "delta": [")" + std::string(10'000, 'x') + "\"]}]}";
  EXPECT_LT(append_transaction(text, &batch).error().message.size(), 300u);
  EXPECT_LT(append_transaction("{" + std::string(10'000, 'x') + "}", &batch).error().message.size(), 300u);
}

}  // namespace
}  // namespace kilokv::client
