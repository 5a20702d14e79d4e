// Role: see demo_books.hpp.
#include "client/bank/demo_books.hpp"

#include <algorithm>

namespace kilokv::bank {

const char* to_string(Activity activity) {
  switch (activity) {
    case Activity::transfer: return "transfers between customers";
    case Activity::pay_hot: return "payments into one hot account";
    case Activity::salary: return "salaries out of it";
    case Activity::early_withdrawal: return "withdrawals before their deposit";
    case Activity::deposit: return "deposits that cover them";
    case Activity::overdraft: return "attempts to overdraw";
    case Activity::to_nobody: return "transfers to nobody";
    case Activity::hopeless_wait: return "waits for money that never comes";
  }
  return "?";
}

bool expected(Activity activity, Ending ending) {
  switch (activity) {
    case Activity::transfer:
    case Activity::pay_hot:
    case Activity::salary: return ending == Ending::made || ending == Ending::refused;
    case Activity::early_withdrawal:
    case Activity::deposit: return ending == Ending::made;
    case Activity::overdraft:
    case Activity::to_nobody: return ending == Ending::refused;
    case Activity::hopeless_wait: return ending == Ending::expired;
  }
  return false;
}

void Books::merge(const Books& other) {
  for (std::size_t i = 0; i < kActivities; ++i) {
    for (std::size_t j = 0; j < kEndings; ++j) counts[i].endings[j] += other.counts[i].endings[j];
    counts[i].waited += other.counts[i].waited;
    counts[i].latency_us.merge(other.counts[i].latency_us);
  }
  for (std::size_t i = 0; i < change.size(); ++i) change[i] += other.change[i];
  paid_in += other.paid_in;
  paid_out += other.paid_out;
  sent_again += other.sent_again;
  if (first_surprise.empty()) first_surprise = other.first_surprise;
}

std::uint64_t Books::total(Ending ending) const {
  std::uint64_t sum = 0;
  for (const ActivityCount& count : counts) sum += count.of(ending);
  return sum;
}

void Clipboard::answered(std::int64_t now_us, std::uint64_t transactions) {
  answers_.fetch_add(transactions, std::memory_order_relaxed);
  const std::int64_t before_us = last_us_.exchange(now_us, std::memory_order_relaxed);
  const std::int64_t silence_us = before_us == 0 ? 0 : now_us - before_us;
  std::int64_t longest_us = longest_silence_us_.load(std::memory_order_relaxed);
  while (silence_us > longest_us &&
         !longest_silence_us_.compare_exchange_weak(longest_us, silence_us, std::memory_order_relaxed)) {
  }
}

}  // namespace kilokv::bank
