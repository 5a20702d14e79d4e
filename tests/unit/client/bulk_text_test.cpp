// The two formats of export and import: what is written is read back, and what is wrong is told.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <utility>
#include <vector>

#include "client/cli/bulk/pair_text.hpp"
#include "client/cli/bulk/record_parser.hpp"
#include "client/cli/utf8.hpp"

namespace kilokv::client {
namespace {

using Value = std::variant<std::int64_t, std::string>;
using Pairs = std::vector<std::pair<std::string, Value>>;
using Taken = RecordParser::Taken;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin);
    const std::size_t size = end == std::string::npos ? text.size() - begin : end + 1 - begin;
    lines.push_back(text.substr(begin, size));
    begin += size;
  }
  return lines;
}

Value owned(const Record& record) {
  if (const auto* integer = std::get_if<std::int64_t>(&record.value)) return *integer;
  return std::string(std::get<std::string_view>(record.value));
}

// The records of the text, and after them what is wrong with each bad record.
struct Parsed {
  Pairs pairs;
  std::vector<std::string> problems;
};

Parsed parse(RecordParser* parser, const std::string& text) {
  Parsed parsed;
  for (const std::string& line : lines_of(text)) {
    const Taken taken = parser->take(line);
    if (taken == Taken::record) parsed.pairs.emplace_back(parser->record().key, owned(parser->record()));
    if (taken == Taken::bad || taken == Taken::bad_header) parsed.problems.push_back(parser->problem());
    if (taken == Taken::bad_header) return parsed;
  }
  const Taken taken = parser->end();
  if (taken == Taken::bad || taken == Taken::bad_header) parsed.problems.push_back(parser->problem());
  return parsed;
}

Parsed parse_csv(const std::string& text, const CsvColumns& columns = {}) {
  return parse(make_csv_parser(columns).get(), text);
}
Parsed parse_json(const std::string& text) { return parse(make_json_parser().get(), text); }

ValueView view(const Value& value) {
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return *integer;
  return std::string_view(std::get<std::string>(value));
}

std::string json_of(const Pairs& pairs) {
  std::string out;
  for (const auto& [key, value] : pairs) append_json_pair(key, view(value), 0, &out);
  return out;
}

std::string csv_of(const Pairs& pairs, char separator = ',') {
  std::string out = csv_header(separator);
  for (const auto& [key, value] : pairs) append_csv_pair(key, view(value), &out, separator);
  return out;
}

CsvColumns separated_by(char separator) {
  CsvColumns columns;
  columns.separator = separator;
  return columns;
}

std::string bytes(const char* text, std::size_t size) { return {text, size}; }

TEST(BulkText, TextIsUtf8WithoutControlCharacters) {
  for (const char* text : {"", "plain", "a\tb\nc\r\n", "\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80", "\xEF\xBF\xBD"}) {
    EXPECT_TRUE(is_text(text)) << text;
  }
  for (const std::string& other :
       {bytes("\0", 1), bytes("a\x1f", 2), bytes("\x7f", 1), bytes("\x80", 1), bytes("\xC3", 1), bytes("\xC3(", 2),
        bytes("\xC0\x80", 2), bytes("\xED\xA0\x80", 3), bytes("\xE0\x9F\xBF", 3), bytes("\xF0\x8F\xBF\xBF", 4),
        bytes("\xF4\x90\x80\x80", 4), bytes("\xF5\x80\x80\x80", 4), bytes("\xF0\x9F\x98", 3), bytes("\xE2\x82", 2)}) {
    EXPECT_FALSE(is_text(other)) << testing::PrintToString(other);
  }
  EXPECT_TRUE(is_utf8(bytes("\0\x1f\x7f", 3)));
  EXPECT_FALSE(is_utf8("abc\xff"));
}

TEST(BulkText, WhatIsShownHasNothingThatATerminalObeys) {
  EXPECT_EQ(printable("a key, \xC3\xA4 and \xE2\x82\xAC"), "a key, \xC3\xA4 and \xE2\x82\xAC");
  EXPECT_EQ(printable("\x1b[2J\a\x7f"), "?[2J??");
  EXPECT_EQ(printable("\xC2\x9B[2J \xC2\xA0"), "?[2J \xC2\xA0") << "U+009B does what ESC [ does";
  EXPECT_EQ(printable("\x9B[2J\xff\xC3"), "?[2J??") << "no UTF-8";
}

TEST(BulkText, BytesThatAreNotTextAreBase64InBothFormats) {
  const Pairs pairs = {{"\xff", bytes("\0", 1)}, {"t", "\xC3\xA4"}};
  EXPECT_EQ(
      json_of(pairs),
      "{\"key\": {\"b64\": \"/w==\"}, \"value\": {\"b64\": \"AA==\"}}\n{\"key\": \"t\", \"value\": \"\xC3\xA4\"}\n");
  EXPECT_EQ(csv_of(pairs), "key,value\nb64:/w==,b64:AA==\nt,\xC3\xA4\n");
}

TEST(BulkText, JsonStringsAreEscaped) {
  EXPECT_EQ(json_of({{"q\"\\", "\n\r\t/"}}), "{\"key\": \"q\\\"\\\\\", \"value\": \"\\n\\r\\t/\"}\n");
}

TEST(BulkText, AByteValueThatLooksLikeAnIntegerIsBase64InCsv) {
  const Pairs pairs = {{"a", std::int64_t{-5}}, {"b", "-5"}, {"c", "9223372036854775808"}, {"d", "007"},
                       {"7", "b64:x"},          {"b64:", ""}};
  EXPECT_EQ(
      csv_of(pairs),
      "key,value\na,-5\nb,b64:LTU=\nc,b64:OTIyMzM3MjAzNjg1NDc3NTgwOA==\nd,007\n7,b64:YjY0Ong=\nb64:YjY0Og==,\"\"\n");
  EXPECT_EQ(parse_csv(csv_of(pairs)).pairs, pairs);
}

TEST(BulkText, CellsAreQuotedWhereItIsNeeded) {
  EXPECT_EQ(csv_of({{"a,b", "say \"hi\""}, {" c", "d "}, {"e\nf", "g\r\n"}}),
            "key,value\n\"a,b\",\"say \"\"hi\"\"\"\n\" c\",\"d \"\n\"e\nf\",\"g\r\n\"\n");
}

TEST(BulkText, CellsMayHaveAnotherSeparator) {
  const Pairs pairs = {{"a,b", std::int64_t{-5}}, {"c;d", "e\tf"}, {"\xff", "7"}};
  EXPECT_EQ(csv_of(pairs, ';'), "key;value\na,b;-5\n\"c;d\";e\tf\nb64:/w==;b64:Nw==\n");
  EXPECT_EQ(csv_of(pairs, '\t'), "key\tvalue\na,b\t-5\nc;d\t\"e\tf\"\nb64:/w==\tb64:Nw==\n");
  for (const char separator : {';', '\t', '|'}) {
    EXPECT_EQ(parse_csv(csv_of(pairs, separator), separated_by(separator)).pairs, pairs) << separator;
  }
  EXPECT_EQ(parse_csv("key;value\r\n\"a;\"\"b\";1,5\r\n", separated_by(';')).pairs, (Pairs{{"a;\"b", "1,5"}}));
}

TEST(BulkText, ASeparatorIsInNoNumberAndInNoBase64) {
  for (const char c : std::string(",;|\t#!.~")) EXPECT_TRUE(is_csv_separator(c)) << c;
  for (const char c : std::string("\"+-/:= aZ09\n\r\x7f\xff") + std::string(1, '\0'))
    EXPECT_FALSE(is_csv_separator(c)) << c;
}

// A byte string that is likely to have what a format must escape.
std::string random_bytes(std::mt19937_64* random, std::size_t least) {
  static const std::vector<std::string> kPieces = {
      "\"",   ",",        "\n",           "\r",   "\r\n", " ", "\t", std::string(1, '\0'),
      "\xff", "\xC3\xA4", "\xE2\x82\xAC", "b64:", "1",    "-", "0",  "a",
      "\\",   "\x7f",     "\xEF\xBB\xBF", "'",    ";",    "{", "}",  "\xED\xA0\x80",
      "AA=="};
  std::string out;
  const std::size_t pieces = least + (*random)() % 5;
  for (std::size_t i = 0; i < pieces; ++i) out += kPieces[(*random)() % kPieces.size()];
  return out;
}

Value random_value(std::mt19937_64* random) {
  switch ((*random)() % 6) {
    case 0: return static_cast<std::int64_t>((*random)());
    case 1: return std::numeric_limits<std::int64_t>::min();
    case 2: return std::numeric_limits<std::int64_t>::max();
    case 3: return std::to_string(static_cast<std::int64_t>((*random)()));
    default: return random_bytes(random, 0);
  }
}

TEST(BulkText, WhatIsWrittenIsReadBack) {
  const std::uint64_t seed = std::random_device{}();
  std::mt19937_64 random(seed);
  for (int round = 0; round < 2'000; ++round) {
    Pairs pairs;
    for (std::size_t i = random() % 5; i > 0; --i) pairs.emplace_back(random_bytes(&random, 1), random_value(&random));
    SCOPED_TRACE("seed " + std::to_string(seed) + " round " + std::to_string(round));
    const char separator = std::string(",,;\t|")[random() % 5];
    const std::string text = csv_of(pairs, separator);
    const Parsed json = parse_json(json_of(pairs)), csv = parse_csv(text, separated_by(separator));
    ASSERT_EQ(json.problems, std::vector<std::string>());
    ASSERT_EQ(csv.problems, std::vector<std::string>()) << text;
    ASSERT_EQ(json.pairs, pairs) << json_of(pairs);
    ASSERT_EQ(csv.pairs, pairs) << text;
    ASSERT_EQ(lines_of(json_of(pairs)).size(), pairs.size());  // each pair is one line
  }
}

TEST(CsvRecords, LinesEndWithLfOrCrLf) {
  const Pairs wanted = {{"a", std::int64_t{1}}, {"b", "x"}};
  EXPECT_EQ(parse_csv("key,value\na,1\nb,x\n").pairs, wanted);
  EXPECT_EQ(parse_csv("\xEF\xBB\xBFkey,value\r\na,1\r\n\r\n\nb,\"x\"\r\n").pairs, wanted);
  const Parsed parsed = parse_csv("key,value\na\r,\rb\n\"c\",\"d\r\ne\"\r\n");
  EXPECT_EQ(parsed.problems, std::vector<std::string>());
  EXPECT_EQ(parsed.pairs, (Pairs{{"a\r", "\rb"}, {"c", "d\r\ne"}}));
}

TEST(CsvRecords, BlanksBelongToTheirCell) { EXPECT_EQ(parse_csv("key,value\n a , 5\n").pairs, (Pairs{{" a ", " 5"}})); }

TEST(CsvRecords, ColumnsAreFoundByTheirNames) {
  const CsvColumns columns{"sku", "in stock", false};
  EXPECT_EQ(parse_csv("name,\"in stock\",sku\nNut,7,n1\n", columns).pairs, (Pairs{{"n1", std::int64_t{7}}}));
  const CsvColumns as_bytes{"key", "value", true};
  EXPECT_EQ(parse_csv("key,value\na,7\nb,b64:Nw==\nc,9223372036854775808\n", as_bytes).pairs,
            (Pairs{{"a", "7"}, {"b", "7"}, {"c", "9223372036854775808"}}));
}

TEST(CsvRecords, AWrongHeaderEndsEverything) {
  for (const auto& [text, problem] : std::vector<std::pair<std::string, std::string>>{
           {"", "the input is empty"},
           {"a,1\nb,2\n", "there is no column key"},
           {"\nkey,value\na,1\n", "there is no column key"},
           {"key,val\n", "there is no column value"},
           {"key,value,key\n", "the header has the column key more than once"},
           {"key,\"value\n", "the input ends inside of quotes"},
           {"key,va\"lue\n", "a quote stands inside of a cell"},
           {"key,value", "the last line has no newline"}}) {
    const Parsed parsed = parse_csv(text);
    ASSERT_EQ(parsed.problems.size(), 1u) << text;
    EXPECT_EQ(parsed.problems[0].substr(0, problem.size()), problem) << text;
  }
}

TEST(CsvRecords, AWrongHeaderIsShownAndAnotherSeparatorIsHintedAt) {
  const auto hint_of = [](const std::string& text, char separator = ',') {
    const auto parser = make_csv_parser(separated_by(separator));
    parse(parser.get(), text);
    return parser->hint();
  };
  const std::string end = "; the first line must be a header with the columns key and value";
  EXPECT_EQ(parse_csv("name,k;v\na,1\n").problems,
            std::vector<std::string>{"there is no column key; the header was read as \"name\", \"k;v\"" + end});
  EXPECT_EQ(hint_of("key;value\na;1\n"), "the header has \";\"; if this separates its cells, give --separator ';'");
  EXPECT_EQ(hint_of("\"key\";\"value\"\n\"a\";1\n"), hint_of("key;value\n"));
  EXPECT_EQ(hint_of("key\tvalue\na\t1\n"), "the header has a tab; if this separates its cells, give --separator tab");
  EXPECT_EQ(hint_of("key,value\na,1\n", ';'), "the header has \",\"; if this separates its cells, give no --separator");
  EXPECT_EQ(hint_of("{\"key\": \"a\"}\n").substr(0, 24), "the input is read as CSV");
  EXPECT_EQ(hint_of("a b\n"), "");
  EXPECT_EQ(hint_of("key,value,x;y\na,1,2\n,1,2\n"), "") << "the header is right";
  const std::string long_header = parse_csv(std::string(198, 'x') + "\xC3\xA4,b\n").problems.at(0);
  EXPECT_NE(long_header.find(std::string(198, 'x') + "...; the first line"), std::string::npos) << long_header;
}

TEST(CsvRecords, EachBadRowIsToldAndTheNextOneIsRead) {
  for (const auto& [row, problem] : std::vector<std::pair<std::string, std::string>>{
           {"a\n", "the row has 1 cells, and the header has 2"},
           {"a,1,2\n", "the row has 3 cells, and the header has 2"},
           {",1\n", "the key is empty"},
           {"b64:,1\n", "the key is empty"},
           {"b64:%,1\n", "the cell of the column key begins with b64:, and what follows is not base64"},
           {"a,b64:%\n", "the cell of the column value begins with b64:, and what follows is not base64"},
           {"a\xff,1\n", "the cell of the column key is not UTF-8; write such bytes as b64: and base64"},
           {"a,\xff\n", "the cell of the column value is not UTF-8; write such bytes as b64: and base64"},
           {"a\"b,1\n", "a quote stands inside of a cell, or text after the quote that ends a cell"},
           {"\"a\"b,1\n", "a quote stands inside of a cell, or text after the quote that ends a cell"},
           {"\"a\nb\"c,1\n", "a quote stands inside of a cell, or text after the quote that ends a cell"},
           {"a,9223372036854775808\n",
            "the value 9223372036854775808 is outside the signed 64-bit range; --bytes stores its digits as bytes"}}) {
    const Parsed parsed = parse_csv("key,value\n" + row + "next,\"o\nk\"\n");
    EXPECT_EQ(parsed.problems, std::vector<std::string>{problem}) << row;
    EXPECT_EQ(parsed.pairs, (Pairs{{"next", "o\nk"}})) << row;
  }
}

TEST(CsvRecords, TheLastLineMayNotBeCutOff) {
  const Parsed parsed = parse_csv("key,value\na,10\nb,10");
  EXPECT_EQ(parsed.pairs, (Pairs{{"a", std::int64_t{10}}}));
  ASSERT_EQ(parsed.problems.size(), 1u);
  EXPECT_EQ(parsed.problems[0],
            "the last line has no newline at its end, so it may be cut off; add one if it is whole");
  EXPECT_EQ(parse_csv("key,value\na,\"10\n").problems, std::vector<std::string>{"the input ends inside of quotes"});
  EXPECT_EQ(parse_csv("key,value\na,\"10").problems, std::vector<std::string>{"the input ends inside of quotes"});
}

TEST(JsonRecords, FormsOfPairs) {
  const std::string text =
      "\xEF\xBB\xBF{\"key\": \"a\", \"value\": 1}\n\n  {\"value\":\"x\",\"key\":{\"b64\":\"/w==\"}}  \r\n"
      "{\"key\": \"c\", \"value\": {\"b64\": \"\"}, \"version\": 7}\n{\"key\": \"d\", \"value\": -9223372036854775808}";
  const Parsed parsed = parse_json(text);
  EXPECT_EQ(parsed.problems, std::vector<std::string>());
  EXPECT_EQ(parsed.pairs,
            (Pairs{{"a", std::int64_t{1}}, {"\xff", "x"}, {"c", ""}, {"d", std::numeric_limits<std::int64_t>::min()}}));
}

TEST(JsonRecords, EachBadLineIsToldAndTheNextOneIsRead) {
  for (const auto& [line, problem] : std::vector<std::pair<std::string, std::string>>{
           {"{\"key\": \"a\"}", "\"value\" is missing"},
           {"{\"value\": 1}", "\"key\" is missing"},
           {"{\"key\": \"\", \"value\": 1}", "the key is empty"},
           {"{\"key\": 1, \"value\": 1}", "\"key\" is neither a string nor {\"b64\": \"...\"} with base64 in it: 1"},
           {"{\"key\": \"a\", \"value\": null}",
            "\"value\" is neither an integer, nor a string, nor {\"b64\": \"...\"}: null"},
           {"{\"key\": \"a\", \"value\": 1.5}",
            "\"value\" is not an integer from -9223372036854775808 to 9223372036854775807: 1.5"},
           {"{\"key\": \"a\", \"value\": 9223372036854775808}",
            "\"value\" is not an integer from -9223372036854775808 to 9223372036854775807: 9223372036854775808"},
           {"{\"key\": \"a\", \"value\": 1, \"value\": 2}", "\"value\" is there twice"},
           {"{\"key\": \"a\", \"valeu\": 1}", "unknown field \"valeu\"; did you mean \"value\"?"},
           {"{\"key\": " + std::string(100'000, '[') + std::string(100'000, ']') + "}",
            "\"key\" is neither a string nor {\"b64\": \"...\"} with base64 in it: a value with more than 10 levels"},
           {"[1]", "this is no JSON object with a key and a value"},
           {"{\"key\": \"a\", \"value\": 1",
            "column 24: this is not JSON: the text ends too early: a bracket or a quote "
            "is not closed"},
           {"{\"key\": \"a\xff\", \"value\": 1}", "column 11: this is not JSON: a byte that is not UTF-8"}}) {
    const Parsed parsed = parse_json(line + "\n{\"key\": \"next\", \"value\": 2}\n");
    EXPECT_EQ(parsed.problems, std::vector<std::string>{problem}) << line;
    EXPECT_EQ(parsed.pairs, (Pairs{{"next", std::int64_t{2}}})) << line;
  }
}

}  // namespace
}  // namespace kilokv::client
