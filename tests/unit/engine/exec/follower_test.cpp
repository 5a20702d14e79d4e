// The books of each transaction are kept once, in order, and after it has run. The other thread comes before
// the batch, within it, at its end, or not at all. What the keepers write is plain data, so the thread sanitizer sees a
// change of hands that hands over too little.

#include "engine/exec/run/follower.hpp"

#include <algorithm>
#include <atomic>
#include <vector>

#include "tests/unit/engine/harness.hpp"

namespace kilokv::engine {
namespace {

constexpr std::uint32_t kTransactions = 40, kTile = 4;

// A batch on two threads. The other thread asks for the books after `asks_after` transactions have run; more than
// there are: after the batch has ended.
struct Batch {
  explicit Batch(ThreadTeam* threads) : team(threads) {}

  ThreadTeam* team;
  Follower follower;
  std::atomic<std::uint32_t> progress{0};  // of the thread that runs
  std::vector<std::uint32_t> result, kept;
  std::uint32_t kept_by_other = 0, out_of_order = 0;

  void keep(std::uint32_t first, std::uint32_t last) {
    if (first != kept.size()) ++out_of_order;
    for (std::uint32_t t = first; t < last; ++t) kept.push_back(result[t]);
  }
  void await(const std::atomic<std::uint32_t>& word, std::uint32_t least) const {
    for (std::uint32_t now = 0; (now = word.load()) < least;) team->wait(word, now);
  }
  void go_to(std::uint32_t now) {
    progress.store(now);
    progress.notify_all();
  }

  // `stays`: the thread that runs waits here until the other one has asked.
  void run(std::uint32_t asks_after, bool stays) {
    result.assign(kTransactions, 0);
    follower.open(*team);
    std::atomic<std::uint32_t> asked{0};
    team->run([&](std::uint32_t thread) {
      if (thread == 0) {
        for (std::uint32_t first = 0; first < kTransactions; first += kTile) {
          go_to(first + 1);
          if (stays && first >= asks_after) await(asked, 1);
          for (std::uint32_t t = first; t < first + kTile; ++t) result[t] = 7 * t + 1;
          if (follower.keeps_books(first, first + kTile)) keep(first, first + kTile);
        }
        follower.end(kTransactions);
        go_to(kTransactions + 1);
        return;
      }
      await(progress, std::min(asks_after, kTransactions) + 1);
      const bool has_books = follower.ask();
      asked.store(1);
      asked.notify_all();
      if (!has_books) return;
      std::uint32_t followed = follower.await_books();
      while (followed < kTransactions) {
        const std::uint32_t ran = follower.wait_ran(followed);
        keep(followed, ran);
        kept_by_other += ran - followed;
        followed = ran;
      }
    });
  }
};

TEST(books_are_kept_once_and_in_order) {
  ThreadTeam team(2);
  for (int round = 0; round < 50; ++round) {
    for (const bool stays : {true, false}) {
      for (std::uint32_t asks_after = 0; asks_after <= kTransactions + kTile; asks_after += kTile) {
        Batch batch(&team);
        batch.run(asks_after, stays && asks_after < kTransactions);
        EXPECT_EQ(batch.out_of_order, 0u);
        EXPECT_EQ(batch.kept.size(), std::size_t{kTransactions});
        for (std::uint32_t t = 0; t < batch.kept.size(); ++t) EXPECT_EQ(batch.kept[t], 7 * t + 1);
        // It asks after the end of the batch, or while the batch waits for it.
        if (asks_after >= kTransactions) EXPECT_EQ(batch.kept_by_other, 0u);
        if (stays && asks_after < kTransactions) EXPECT_EQ(batch.kept_by_other, kTransactions - asks_after);
      }
    }
  }
}

}  // namespace
}  // namespace kilokv::engine
