// A stock with reservations. An order reserves all of its goods or none. It is shipped or cancelled later, once.
// docs/recipes.md explains it.
//
//   stock/free/ITEM        what can be reserved
//   stock/reserved/ITEM    what is reserved and not shipped yet
//   stock/shipped/ITEM     what has left
//   stock/delivery/ID      the text of a delivery that was counted: ITEM NUMBER
//   stock/order/ID         the state of an order: "reserved ITEM NUMBER ...", or "shipped ...", or "cancelled ..."
#include <algorithm>

#include "client/examples/example.hpp"

namespace {

using namespace example;

constexpr char kUsage[] =
    "inventory [--endpoint HOST:PORT] VERB ...\n"
    "  deliver ID ITEM NUMBER                   counts goods that came in\n"
    "  reserve ORDER WAIT_MS ITEM NUMBER ...    reserves all of these, or nothing; waits up to WAIT_MS for goods\n"
    "  ship ORDER                               the goods have left\n"
    "  cancel ORDER                             the goods are free again; an order that still waits gets none\n"
    "Each delivery and each order needs an ID of its own.\n";

struct Line {
  std::string item;
  std::int64_t number = 0;
};

// The goods that the words from `first` on name, such as "tea 3 cup 2". Nothing if these words are something else.
std::optional<std::vector<Line>> lines_of(const Words& words, std::size_t first) {
  std::vector<Line> lines;
  if (words.size() <= first || (words.size() - first) % 2 != 0) return std::nullopt;
  for (std::size_t i = first; i < words.size(); i += 2) {
    const std::int64_t number = integer_of(words[i + 1]).value_or(0);
    if (number <= 0) return std::nullopt;
    // Each item once: guards see the state before the transaction, so two guards would both accept the last piece.
    const auto same = std::find_if(lines.begin(), lines.end(), [&](const Line& line) { return line.item == words[i]; });
    if (same != lines.end()) return std::nullopt;
    lines.push_back({words[i], number});
  }
  return lines;
}

std::string text_of(const std::vector<Line>& lines) {
  std::string text;
  for (const Line& line : lines) text += " " + line.item + " " + std::to_string(line.number);
  return text;
}

Words words_of(const std::string& text) {
  std::istringstream split(text);
  Words words;
  for (std::string word; split >> word;) words.push_back(word);
  return words;
}

Expected<std::string> deliver(const Server& server, const std::string& id, const Line& line) {
  Batch batch;
  batch.begin();
  const Key delivery = batch.key("stock/delivery/" + id);
  batch.guard_absent(delivery);                                  // false: an earlier run has counted it
  batch.add(batch.key("stock/free/" + line.item), line.number);  // wakes orders that wait for it
  batch.put(delivery, line.item + " " + std::to_string(line.number));
  batch.end();

  const Expected<RequestResult> sent = server.session.execute(batch);
  if (!sent) return sent.error();
  return "delivered " + id;
}

Expected<std::string> reserve(const Server& server, const std::string& id, const std::vector<Line>& lines,
                              std::int64_t wait_us) {
  TransactionOptions options;
  options.wait_timeout_us = static_cast<std::uint64_t>(wait_us);
  Batch batch;
  batch.begin(options);
  const Key order = batch.key("stock/order/" + id);
  batch.guard_absent(order);  // false: an earlier run has reserved
  for (const Line& line : lines) {
    batch.guard(batch.key("stock/free/" + line.item), Compare::greater_equal, line.number, OnFalse::wait);
  }
  for (const Line& line : lines) {
    batch.add(batch.key("stock/free/" + line.item), -line.number);
    batch.add(batch.key("stock/reserved/" + line.item), line.number);
  }
  batch.put(order, "reserved" + text_of(lines));
  batch.otherwise();
  batch.get(order);
  batch.end();

  const Expected<RequestResult> sent = server.session.execute(batch);
  if (!sent) return sent.error();
  switch (sent->results.outcome(0)) {
    case Outcome::committed: return "reserved" + text_of(lines);
    case Outcome::wait_expired: return std::string("too-little");
    case Outcome::guard_failed: return text_in(sent->results.read(0, 0));
    default: return std::string(to_string(sent->results.outcome(0)));
  }
}

// One transaction that reads an order.
Expected<std::string> text_of_order(const Server& server, const std::string& order) {
  Batch batch;
  batch.begin();
  batch.get(batch.key(order));
  batch.end();
  const Expected<RequestResult> sent = server.session.execute(batch);
  if (!sent) return sent.error();
  return text_in(sent->results.read(0, 0));
}

// Ships or cancels an order. It reads the order first, because only the order says which keys to change. The guard
// makes sure that the order has not changed since. If it has, it is read again: an order changes at most twice.
Expected<std::string> finish(const Server& server, const std::string& id, bool is_shipped) {
  const std::string order = "stock/order/" + id;
  for (;;) {
    Expected<std::string> text = text_of_order(server, order);
    if (!text) return text;
    if (text->empty() && is_shipped) return std::string("unknown");
    if (!text->empty() && !text->starts_with("reserved")) return text;  // it is finished
    const auto lines = text->empty() ? std::vector<Line>() : lines_of(words_of(*text), 1);
    if (!lines) return misuse("the order " + id + " cannot be read: " + *text);
    const std::string after = (is_shipped ? "shipped" : "cancelled") + text_of(*lines);

    Batch batch;
    batch.begin();
    if (text->empty()) {
      batch.guard_absent(batch.key(order));  // whatever still waits for goods will find that the order is cancelled
    } else {
      batch.guard_bytes(batch.key(order), *text);
    }
    for (const Line& line : *lines) {
      batch.add(batch.key("stock/reserved/" + line.item), -line.number);
      batch.add(batch.key((is_shipped ? "stock/shipped/" : "stock/free/") + line.item), line.number);
    }
    batch.put(batch.key(order), after);
    batch.end();
    const Expected<RequestResult> sent = server.session.execute(batch);
    if (!sent) return sent.error();
    if (sent->results.outcome(0) == Outcome::committed) return after;
    if (sent->results.outcome(0) != Outcome::guard_failed) return std::string(to_string(sent->results.outcome(0)));
  }
}

Expected<std::string> command(const Server& server, const Words& words) {
  if (words.size() < 2) return wrong_command();
  const std::string &verb = words[0], &id = words[1];
  if (words.size() == 2 && (verb == "ship" || verb == "cancel")) return finish(server, id, verb == "ship");
  const auto lines = lines_of(words, verb == "reserve" ? 3 : 2);
  if (!lines) return wrong_command();
  if (verb == "deliver" && lines->size() == 1) return deliver(server, id, lines->front());
  const std::int64_t wait_ms = integer_of(words[2]).value_or(-1);
  if (verb == "reserve" && wait_ms >= 0) return reserve(server, id, *lines, wait_ms * 1000);
  return wrong_command();
}

}  // namespace

int main(int argc, char** argv) { return example::main_of(argc, argv, kUsage, command); }
