// Limits how often somebody may do something: at most LIMIT times in each window of time. The server's stamps decide to
// which window a try belongs, so no client needs a right clock. docs/recipes.md explains it.
//
//   limit/WHO/WINDOW    how often WHO was allowed in this window; the server deletes it after the window
#include "client/examples/example.hpp"

namespace {

using namespace example;

constexpr char kUsage[] =
    "limiter [--endpoint HOST:PORT] VERB ...\n"
    "  allow WHO LIMIT WINDOW_MS    counts a try, and says whether it is allowed\n";

// A guess of the stamp of the next batch: the newest stamp that was seen. A wrong guess costs one more try.
std::int64_t guessed_time_us = 0;

Expected<std::string> allow(const Server& server, const std::string& who, std::int64_t limit, std::int64_t window_us) {
  for (;;) {
    const std::int64_t window = guessed_time_us / window_us;
    const std::int64_t begin_us = window * window_us, end_us = begin_us + window_us;
    Batch batch;
    batch.begin();
    const Key count = batch.key("limit/" + who + "/" + std::to_string(window));
    batch.guard(count, Compare::less, limit);
    batch.guard_time_after(begin_us);
    batch.guard_time_before(end_us);
    batch.add(count, 1, TimeToLive{window_us});  // no batch before the end of the window can find the key deleted
    batch.end();

    const Expected<RequestResult> sent = server.session.execute(batch);
    if (!sent) return sent.error();
    const ResultView result = sent->results.at(0);
    guessed_time_us = result.batch_time_us;
    if (result.outcome == Outcome::committed) return "allowed at " + std::to_string(result.batch_time_us);
    if (result.outcome != Outcome::guard_failed) return std::string(to_string(result.outcome));
    if (result.batch_time_us >= begin_us && result.batch_time_us < end_us) {
      return "refused at " + std::to_string(result.batch_time_us) + " until " + std::to_string(end_us);
    }
    // The guess was wrong. Now the stamp of a batch is known.
  }
}

Expected<std::string> command(const Server& server, const Words& words) {
  const auto numbers = integers_of(words, 2);
  if (words.size() != 4 || words[0] != "allow" || !numbers || numbers->at(0) <= 0 || numbers->at(1) <= 0) {
    return wrong_command();
  }
  return allow(server, words[1], numbers->at(0), numbers->at(1) * 1000);
}

}  // namespace

int main(int argc, char** argv) { return example::main_of(argc, argv, kUsage, command); }
