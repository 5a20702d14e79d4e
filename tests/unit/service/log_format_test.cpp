// The forms of a line of the log.
#include "server/log_format.hpp"

#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <random>
#include <sstream>
#include <string>

#include "server/core/one_line.hpp"

namespace kilokv::server {
namespace {

std::string object(const std::string& line) { return log_object("T", "info", line); }
std::string with(const std::string& rest) { return R"({"time":"T","level":"info",)" + rest + '}'; }

TEST(LogFormatTest, TheFieldsAreTheEndOfTheLine) {
  const LogLine line = parse_log_line(R"(kilokvd ready endpoint=127.0.0.1:7070 device_reason="no CUDA" batch=0)");
  EXPECT_EQ(line.message, "kilokvd ready");
  ASSERT_EQ(line.fields.size(), 3u);
  EXPECT_EQ(line.fields[0].name, "endpoint");
  EXPECT_EQ(line.fields[0].value, "127.0.0.1:7070");
  EXPECT_EQ(line.fields[1].value, "\"no CUDA\"");
  EXPECT_EQ(line.fields[2].name, "batch");
  EXPECT_TRUE(line.text.empty());
}

TEST(LogFormatTest, WhatIsNoFieldBelongsToTheMessage) {
  for (const std::string text : {"kilokvd stopped", "kilokvd ignores signal=10: it has no meaning here", "a=1 and more",
                                 "odd \" quote a=1", "", "=1", "Name=1", "a =1"}) {
    const LogLine line = parse_log_line(text);
    EXPECT_EQ(line.message, text);
    EXPECT_TRUE(line.fields.empty()) << text;
  }
  const LogLine ends = parse_log_line("first=1 then words second=2");
  EXPECT_EQ(ends.message, "first=1 then words");
  ASSERT_EQ(ends.fields.size(), 1u);
  const LogLine only = parse_log_line("a=1 b=2");
  EXPECT_EQ(only.message, "");
  EXPECT_EQ(only.fields.size(), 2u);
}

TEST(LogFormatTest, ValuesHaveTheirTypes) {
  EXPECT_EQ(object("m a=7 b=-3 c=0.25 d=true e=false f=18446744073709551615 g=x"),
            with(R"("message":"m","a":7,"b":-3,"c":0.25,"d":true,"e":false,"f":18446744073709551615,"g":"x")"));
  // These look like numbers, and are none.
  EXPECT_EQ(object("m a=007 b=1e5 c=1. d=.5 e=+1 f=0x10 g=- h=1.2.3"),
            with(R"("message":"m","a":"007","b":"1e5","c":"1.","d":".5","e":"+1","f":"0x10","g":"-","h":"1.2.3")"));
  // An id is a text, also if it has digits only.
  EXPECT_EQ(
      object("m session=12345678 token=1234567890123456 trace=1 commit=1 version=1.0 user=1 batch=1"),
      with(R"("message":"m","session":"12345678","token":"1234567890123456","trace":"1","commit":"1","version":"1.0",)"
           R"("user":"1","batch":1)"));
}

TEST(LogFormatTest, TextsComeOutOfTheirQuotes) {
  EXPECT_EQ(object(R"(m a="" b="two words" c="q\"q" d="back\\slash" e="l\nl\r\t" f="x=1 y=2" g="\x01\x7f")"),
            with("\"message\":\"m\",\"a\":\"\",\"b\":\"two words\",\"c\":\"q\\\"q\",\"d\":\"back\\\\slash\","
                 "\"e\":\"l\\nl\\r\\t\",\"f\":\"x=1 y=2\",\"g\":\"\\u0001\x7f\""));
  // A range is more than one text.
  EXPECT_EQ(object(R"(m read=["a b","c") cut="abc"...(9_bytes))"),
            with(R"x("message":"m","read":"[\"a b\",\"c\")","cut":"\"abc\"...(9_bytes)")x"));
}

TEST(LogFormatTest, NoValueHidesAnother) {
  EXPECT_EQ(object("m a=1 a=2 level=3 a=4"), with(R"("message":"m","a":1,"a_":2,"level_":3,"a__":4)"));
}

TEST(LogFormatTest, FurtherLinesAreOneText) {
  EXPECT_EQ(object("m a=1\n{\"batch\": 6}\n{}\n"), with(R"("message":"m","a":1,"text":"{\"batch\": 6}\n{}\n")"));
}

TEST(LogFormatTest, BytesThatAreNotUtf8AreReplaced) {
  EXPECT_EQ(object("m a=\"\xc3\xa4\xff\""), with("\"message\":\"m\",\"a\":\"\xc3\xa4\xef\xbf\xbd\""));
}

// Whatever a text of a client has in it, it stays the value of its field.
TEST(LogFormatTest, NoTextOfAClientBecomesAnotherField) {
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  constexpr std::string_view kPieces[] = {"\"",   "\\",          " ", "=",     "a=1", "\n",
                                          "\x01", "level=error", "{", "\\x41", "\xe4"};
  for (int i = 0; i < 2000; ++i) {
    std::string text;
    for (std::uint64_t n = random() % 8; n > 0; --n) text += kPieces[random() % std::size(kPieces)];
    const std::string line = "kilokvd says text=\"" + one_line(text) + "\" times=2";
    const LogLine parsed = parse_log_line(line);
    ASSERT_EQ(parsed.fields.size(), 2u) << line;
    EXPECT_EQ(parsed.message, "kilokvd says");
    EXPECT_EQ(parsed.fields[0].name, "text");
    EXPECT_EQ(parsed.fields[1].value, "2");
    EXPECT_EQ(object(line).find('\n'), std::string::npos);
  }
}

TEST(LogFormatTest, TheFormattersOfBothForms) {
  std::ostringstream out;
  auto sink = std::make_shared<spdlog::sinks::ostream_sink_mt>(out);
  spdlog::logger logger("test", sink);
  logger.set_formatter(make_log_formatter("text"));
  logger.warn("kilokvd ready batch={}", 7);
  EXPECT_TRUE(out.str().ends_with("Z warning kilokvd ready batch=7\n")) << out.str();
  out.str("");
  logger.set_formatter(make_log_formatter("json"));
  logger.error("kilokvd ready batch={}", 7);
  const std::string line = out.str();
  EXPECT_TRUE(line.starts_with(R"({"time":"20)")) << line;
  EXPECT_TRUE(line.ends_with("Z\",\"level\":\"error\",\"message\":\"kilokvd ready\",\"batch\":7}\n")) << line;
}

}  // namespace
}  // namespace kilokv::server
