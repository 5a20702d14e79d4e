// The records of the demo's clients: for each activity how it ended, and for each account how much it must have changed
// according to the server's answers. The audit compares the server's books with these.
//
// Thread safety: any thread may call the functions of Clipboard. The rest: none.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "client/bank/amount.hpp"
#include "client/measure/histogram.hpp"

namespace kilokv::bank {

// The activities of clients, and how each must end.
enum class Activity : std::uint8_t {
  transfer,          // between two customers: made, or refused for lack of money
  pay_hot,           // all customers pay into one account: made, or refused
  salary,            // that account pays a customer: made, or refused
  early_withdrawal,  // sent before the deposit that covers it, waits on the server: made
  deposit,           // covers an early withdrawal: made
  overdraft,         // more than the account has: refused
  to_nobody,         // to an account that does not exist: refused
  hopeless_wait,     // waits for money that never comes: expired
};
inline constexpr std::size_t kActivities = 8;
const char* to_string(Activity activity);

enum class Ending : std::uint8_t { made, refused, expired, unknown };
inline constexpr std::size_t kEndings = 4;
bool expected(Activity activity, Ending ending);

struct ActivityCount {
  std::array<std::uint64_t, kEndings> endings{};
  std::uint64_t waited = 0;  // made in a later batch than the one in which it arrived
  bench::Histogram latency_us;
  std::uint64_t of(Ending ending) const { return endings[static_cast<std::size_t>(ending)]; }
};

// The books of one client, or the sum of all.
struct Books {
  explicit Books(std::size_t accounts) : change(accounts) {}
  void merge(const Books& other);
  const ActivityCount& of(Activity activity) const { return counts[static_cast<std::size_t>(activity)]; }
  ActivityCount& of(Activity activity) { return counts[static_cast<std::size_t>(activity)]; }
  std::uint64_t total(Ending ending) const;

  std::array<ActivityCount, kActivities> counts;
  std::vector<Cents> change;  // by account
  Cents paid_in = 0, paid_out = 0;
  std::uint64_t sent_again = 0;  // calls
  std::string first_surprise;    // the first activity that ended as it must not
};

// The state that all clients and the supervisor share while the demo runs.
class Clipboard {
 public:
  void answered(std::int64_t now_us, std::uint64_t transactions);
  std::uint64_t answers() const { return answers_.load(std::memory_order_relaxed); }
  std::int64_t longest_silence_us() const { return longest_silence_us_.load(std::memory_order_relaxed); }

  std::atomic<bool> closing{false};  // set at the end: clients finish what they have begun

 private:
  std::atomic<std::uint64_t> answers_{0};
  std::atomic<std::int64_t> last_us_{0}, longest_silence_us_{0};
};

}  // namespace kilokv::bank
