#include "server/core/trace_parent.hpp"

#include <gtest/gtest.h>

#include <string>

namespace kilokv::server {
namespace {

// The example of the standard.
const std::string kExample = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

TEST(TraceParentTest, ReadsItsPartsAndWritesItsIds) {
  const auto parent = parse_traceparent(kExample);
  ASSERT_TRUE(parent);
  EXPECT_TRUE(parent->present());
  EXPECT_EQ(trace_text(*parent), "0af7651916cd43dd8448eb211c80319c");
  EXPECT_EQ(span_text(*parent), "b7ad6b7169203331");
  EXPECT_EQ(parent->flags, 1u);
  EXPECT_FALSE(TraceParent().present());
}

TEST(TraceParentTest, EveryChangedCharacterThatIsNoDigitIsFound) {
  for (std::size_t at = 0; at < kExample.size(); ++at) {
    for (const char c : {'g', 'A', ' ', '-', '\0', '\xff'}) {
      if (kExample[at] == c) continue;
      std::string text = kExample;
      text[at] = c;
      EXPECT_FALSE(parse_traceparent(text)) << text;
    }
  }
}

TEST(TraceParentTest, EveryOtherLengthIsRefused) {
  for (std::size_t length = 0; length < kExample.size(); ++length) {
    EXPECT_FALSE(parse_traceparent(kExample.substr(0, length))) << length;
  }
  EXPECT_FALSE(parse_traceparent(kExample + "-")) << "version 00 has no more parts";
  EXPECT_FALSE(parse_traceparent(kExample + "0"));
}

TEST(TraceParentTest, IdsOfZerosAndTheVersionFfAreRefused) {
  EXPECT_FALSE(parse_traceparent("00-00000000000000000000000000000000-b7ad6b7169203331-01"));
  EXPECT_FALSE(parse_traceparent("00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01"));
  EXPECT_FALSE(parse_traceparent("ff" + kExample.substr(2)));
}

TEST(TraceParentTest, ALaterVersionMayHaveMorePartsUpToTheLimit) {
  const std::string later = "cc" + kExample.substr(2);
  EXPECT_EQ(parse_traceparent(later), parse_traceparent(kExample));
  EXPECT_EQ(parse_traceparent(later + "-what=ever"), parse_traceparent(kExample));
  EXPECT_FALSE(parse_traceparent(later + ".what"));
  const std::string longest = later + '-' + std::string(kTraceParentBytesMax - later.size() - 1, 'x');
  EXPECT_TRUE(parse_traceparent(longest));
  EXPECT_FALSE(parse_traceparent(longest + 'x'));
}

}  // namespace
}  // namespace kilokv::server
