// Settings of strategies: the words for what they take, and texts that mean the same.

#include "engine/base/strategy_setting.hpp"

#include <cstdint>
#include <string>

#include "engine/strategies.hpp"
#include "tests/unit/engine/harness.hpp"

namespace kilokv::engine {
namespace {

StrategySetting powers(std::uint32_t low, std::uint32_t high) {
  return {"powers", "A setting.", SettingKind::power_of_two, low, high, low};
}

TEST(powers_of_two_up_to_the_largest_are_listed) {
  EXPECT_EQ(powers(1, 8).takes(), "1, 2, 4 or 8");
  EXPECT_EQ(powers(1u << 30, 1u << 31).takes(), "1073741824 or 2147483648");
  EXPECT_EQ(powers(1, 1u << 31).takes(), "a power of two to 2147483648");
}

TEST(a_default_in_another_form_is_the_default) {
  EXPECT_EQ(check_settings("serial", {{"records-per-lock", "01"}}).message(), "");
  EXPECT_TRUE(!check_settings("serial", {{"records-per-lock", "02"}}).ok());
  bool has_it = false;
  for (const auto& [name, text] : effective_settings({{"records-per-lock", "02"}, {"writer-history", "512B"}})) {
    if (name == "records-per-lock") has_it = text == "2";
    if (name == "writer-history") EXPECT_EQ(text, "512B");
  }
  EXPECT_TRUE(has_it);
}

}  // namespace
}  // namespace kilokv::engine
