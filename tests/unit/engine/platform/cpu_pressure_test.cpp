// For which share of the time work waits for a core, by files that the test writes in the form of /proc/pressure/cpu.

#include "engine/platform/cpu_pressure.hpp"

#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/unit/engine/harness.hpp"

namespace kilokv::engine {
namespace {

using std::chrono::milliseconds;

class Pressure {
 public:
  Pressure() { say(0); }
  ~Pressure() { std::filesystem::remove(path_); }
  Pressure(const Pressure&) = delete;
  Pressure& operator=(const Pressure&) = delete;

  const std::string& path() const { return path_; }
  // How long work has waited since the system began.
  void say(unsigned long long microseconds) const {
    std::ofstream(path_, std::ios::trunc) << "some avg10=2.56 avg60=0.00 avg300=16.26 total=" << microseconds
                                          << "\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=77\n";
  }

 private:
  std::string path_ =
      (std::filesystem::temp_directory_path() / ("kilokv-pressure-" + std::to_string(getpid()) + ".txt")).string();
};

bool near(double a, double b) { return std::abs(a - b) < 1e-9; }

const CpuPressure::Clock::time_point kBegin{};

TEST(it_is_the_share_between_two_looks) {
  const Pressure file;
  file.say(5'000'000);
  CpuPressure pressure(file.path(), kBegin);
  file.say(5'100'000);
  EXPECT_TRUE(near(pressure.share(kBegin + milliseconds(400)), 0.25));
  file.say(5'600'000);
  EXPECT_TRUE(near(pressure.share(kBegin + milliseconds(900)), 1));
  EXPECT_TRUE(near(pressure.share(kBegin + milliseconds(1200)), 0));
}

TEST(between_looks_it_stays) {
  const Pressure file;
  CpuPressure pressure(file.path(), kBegin);
  file.say(100'000);
  EXPECT_EQ(pressure.share(kBegin + milliseconds(199)), 0.0);
  EXPECT_TRUE(near(pressure.share(kBegin + milliseconds(200)), 0.5));
  file.say(300'000);
  EXPECT_TRUE(near(pressure.share(kBegin + milliseconds(399)), 0.5));
  EXPECT_TRUE(near(pressure.share(kBegin + milliseconds(400)), 1));
}

// A mean over a long pause says nothing about now.
TEST(a_long_pause_does_not_count) {
  const Pressure file;
  CpuPressure pressure(file.path(), kBegin);
  file.say(100'000);
  EXPECT_TRUE(near(pressure.share(kBegin + milliseconds(200)), 0.5));
  file.say(200'000);
  EXPECT_TRUE(near(pressure.share(kBegin + milliseconds(60'000)), 0.5));
  file.say(250'000);
  EXPECT_TRUE(near(pressure.share(kBegin + milliseconds(60'500)), 0.1));
}

TEST(times_that_go_back_are_no_pressure) {
  const Pressure file;
  file.say(5'000'000);
  CpuPressure pressure(file.path(), kBegin);
  file.say(4'000'000);
  EXPECT_EQ(pressure.share(kBegin + milliseconds(300)), 0.0);
}

TEST(without_a_word_of_the_system_it_is_zero) {
  CpuPressure none("/nowhere", kBegin);
  EXPECT_EQ(none.share(kBegin + milliseconds(300)), 0.0);
  const Pressure file;
  CpuPressure pressure(file.path(), kBegin);
  file.say(300'000);
  EXPECT_TRUE(near(pressure.share(kBegin + milliseconds(300)), 1));
  std::ofstream(file.path(), std::ios::trunc) << "some of it\n";
  EXPECT_EQ(pressure.share(kBegin + milliseconds(600)), 0.0);
  file.say(900'000);
  EXPECT_EQ(pressure.share(kBegin + milliseconds(900)), 0.0);
  file.say(1'050'000);
  EXPECT_TRUE(near(pressure.share(kBegin + milliseconds(1200)), 0.5));
}

}  // namespace
}  // namespace kilokv::engine
