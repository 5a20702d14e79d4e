// Sells seats. A customer holds a seat for a time, and buys it within this time. A hold ends at its time by itself,
// also if the customer's program and the server both die. docs/recipes.md explains it.
//
// The keys of a seat:
//   seats/EVENT/SEAT/end      until when the seat is held, in microseconds; absent: it is free
//   seats/EVENT/SEAT/holder   the order that holds it
//   seats/EVENT/SEAT/sold     the order that has bought it
#include "client/examples/example.hpp"

namespace {

using namespace example;

constexpr char kUsage[] =
    "seats [--endpoint HOST:PORT] VERB ...\n"
    "  hold EVENT SEAT ORDER HOLD_MS WAIT_MS   holds the seat; waits up to WAIT_MS until it is free\n"
    "  buy EVENT SEAT ORDER                    buys a seat that the order holds\n"
    "  release EVENT SEAT ORDER                gives a hold back\n"
    "Each order needs a name of its own.\n";
constexpr std::int64_t kKeptUs = 60'000'000;  // a hold that has ended is forgotten after this time

struct SeatKeys {
  std::string end, holder, sold;
};

SeatKeys keys_of(const std::string& event, const std::string& seat) {
  const std::string prefix = "seats/" + event + "/" + seat + "/";
  return {prefix + "end", prefix + "holder", prefix + "sold"};
}

Expected<std::string> hold(const Server& server, const SeatKeys& keys, const std::string& order, std::int64_t hold_us,
                           std::int64_t wait_us) {
  TransactionOptions options;
  options.wait_timeout_us = static_cast<std::uint64_t>(wait_us);
  Batch batch;
  batch.begin(options);
  const Key end = batch.key(keys.end), holder = batch.key(keys.holder), sold = batch.key(keys.sold);
  batch.guard_absent(sold);                                                  // first, so that a sale ends the wait
  batch.guard_time_after(end, wait_us > 0 ? OnFalse::wait : OnFalse::fail);  // nobody holds it any more
  // The server deletes both keys after the hold. This only frees their space: the time in `end` ends the hold.
  const TimeToLive kept{hold_us + kKeptUs};
  batch.put(end, BatchTime{}, kept);
  batch.add(end, hold_us);
  batch.put(holder, order, kept);
  batch.otherwise();
  batch.get(sold);
  batch.get(holder);
  batch.get(end);
  batch.end();

  const Expected<RequestResult> sent = server.session.execute(batch);
  if (!sent) return sent.error();
  const ResultView result = sent->results.at(0);
  const std::string at = std::to_string(result.batch_time_us);
  switch (result.outcome) {
    case Outcome::committed: return "held at " + at + " until " + std::to_string(result.batch_time_us + hold_us);
    case Outcome::wait_expired: return "taken at " + at;
    case Outcome::guard_failed: break;
    default: return std::string(to_string(result.outcome));
  }
  const std::string buyer = text_in(sent->results.read(0, 0)), holds = text_in(sent->results.read(0, 1));
  const std::int64_t until = integer_in(sent->results.read(0, 2));
  if (buyer == order) return "bought at " + at;
  if (!buyer.empty()) return "sold at " + at;
  // An earlier run of this order has the hold, and its answer was lost.
  if (holds == order && until > result.batch_time_us) return "held at " + at + " until " + std::to_string(until);
  return "taken at " + at;
}

Expected<std::string> buy(const Server& server, const SeatKeys& keys, const std::string& order) {
  Batch batch;
  batch.begin();
  const Key end = batch.key(keys.end), holder = batch.key(keys.holder), sold = batch.key(keys.sold);
  batch.guard_absent(sold);
  batch.guard_bytes(holder, order);
  batch.guard_time_before(end);  // the hold has not ended
  batch.put(sold, order);
  batch.del(holder);
  batch.del(end);
  batch.otherwise();
  batch.get(sold);
  batch.end();

  const Expected<RequestResult> sent = server.session.execute(batch);
  if (!sent) return sent.error();
  const ResultView result = sent->results.at(0);
  const std::string at = std::to_string(result.batch_time_us);
  if (result.outcome == Outcome::committed) return "bought at " + at;
  if (result.outcome != Outcome::guard_failed) return std::string(to_string(result.outcome));
  const std::string buyer = text_in(sent->results.read(0, 0));
  if (buyer == order) return "bought at " + at;  // by an earlier run, whose answer was lost
  return (buyer.empty() ? "not-held at " : "sold at ") + at;
}

Expected<std::string> release(const Server& server, const SeatKeys& keys, const std::string& order) {
  Batch batch;
  batch.begin();
  const Key end = batch.key(keys.end), holder = batch.key(keys.holder);
  batch.guard_bytes(holder, order);
  batch.del(holder);
  batch.del(end);  // wakes the one who has waited longest
  batch.end();

  const Expected<RequestResult> sent = server.session.execute(batch);
  if (!sent) return sent.error();
  const ResultView result = sent->results.at(0);
  return (result.outcome == Outcome::committed ? "released at " : "not-held at ") +
         std::to_string(result.batch_time_us);
}

Expected<std::string> command(const Server& server, const Words& words) {
  if (words.size() < 4) return wrong_command();
  const SeatKeys keys = keys_of(words[1], words[2]);
  const std::string &verb = words[0], &order = words[3];
  const auto numbers = integers_of(words, 4);
  if (verb == "hold" && numbers && numbers->size() == 2 && numbers->at(0) > 0 && numbers->at(1) >= 0) {
    const std::int64_t hold_us = numbers->at(0) * 1000, wait_us = numbers->at(1) * 1000;
    // First without a wait. So an order that is sent again finds its own hold, and does not wait for its end.
    Expected<std::string> line = hold(server, keys, order, hold_us, 0);
    if (line && line->starts_with("taken") && wait_us > 0) line = hold(server, keys, order, hold_us, wait_us);
    return line;
  }
  if (verb == "buy" && words.size() == 4) return buy(server, keys, order);
  if (verb == "release" && words.size() == 4) return release(server, keys, order);
  return wrong_command();
}

}  // namespace

int main(int argc, char** argv) { return example::main_of(argc, argv, kUsage, command); }
