// A ledger of payments. Each payment is applied once, however often it is sent, and by whichever process. Messages
// about payments leave through an outbox. docs/recipes.md explains it.
//
//   pay/account/NAME    the balance. The account "world" has what came in, negated, so that all balances sum to 0
//   pay/payment/ID      the text of a payment that was applied: FROM TO AMOUNT
//   pay/outbox/ID       the same text, as long as nobody has delivered it
//   pay/undelivered     how many texts are in the outbox
#include "client/examples/example.hpp"

namespace {

using namespace example;

constexpr char kUsage[] =
    "payments [--endpoint HOST:PORT] VERB ...\n"
    "  open ID ACCOUNT AMOUNT     brings money in from outside\n"
    "  pay ID FROM TO AMOUNT      moves money\n"
    "  deliver WAIT_MS            takes one message from the outbox; waits up to WAIT_MS for it\n"
    "  delivered ID               says that the message has arrived\n"
    "Each payment needs an ID of its own. A payment that is sent again keeps its ID.\n";
constexpr char kWorld[] = "world";
constexpr char kOutbox[] = "pay/outbox/", kUndelivered[] = "pay/undelivered";

struct Payment {
  std::string id, from, to;
  std::int64_t amount = 0;

  std::string text() const { return from + " " + to + " " + std::to_string(amount); }
};

Expected<std::string> pay(const Server& server, const Payment& payment) {
  Batch batch;
  batch.begin();
  const Key done = batch.key("pay/payment/" + payment.id);
  const Key from = batch.key("pay/account/" + payment.from), to = batch.key("pay/account/" + payment.to);
  batch.guard_absent(done);  // the idempotency key
  if (payment.from != kWorld) batch.guard(from, Compare::greater_equal, payment.amount);
  batch.add(from, -payment.amount);
  batch.add(to, payment.amount);
  batch.put(done, payment.text());
  batch.put(batch.key(kOutbox + payment.id), payment.text());
  batch.add(batch.key(kUndelivered), 1);
  batch.otherwise();
  batch.get(done);
  batch.end();

  const Expected<RequestResult> sent = server.session.execute(batch);
  if (!sent) return sent.error();
  const ResultView result = sent->results.at(0);
  if (result.outcome == Outcome::committed) return "paid " + payment.id;
  if (result.outcome != Outcome::guard_failed) return std::string(to_string(result.outcome));
  const std::string text = text_in(sent->results.read(0, 0));
  if (text.empty()) return "refused " + payment.id + ": too little money";
  // An earlier run has applied it. If the text differs, somebody has used the ID for another payment.
  return text == payment.text() ? "paid " + payment.id : "refused " + payment.id + ": the ID is that of " + text;
}

// Reads the oldest message, and leaves it in the outbox.
Expected<std::string> deliver(const Server& server, std::int64_t wait_us) {
  TransactionOptions options;
  options.wait_timeout_us = static_cast<std::uint64_t>(wait_us);
  Batch batch;
  batch.begin(options);
  batch.guard(batch.key(kUndelivered), Compare::greater_equal, 1, OnFalse::wait);
  batch.range_get(kOutbox, end_of(kOutbox), 100);
  batch.end();

  const Expected<RequestResult> sent = server.session.execute(batch);
  if (!sent) return sent.error();
  if (sent->results.read_count(0) == 0) return std::string("nothing");  // WAIT_EXPIRED
  // The message that was written first. Versions follow the one serial order.
  ReadView oldest = sent->results.read(0, 0);
  for (std::size_t i = 1; i < sent->results.read_count(0); ++i) {
    const ReadView read = sent->results.read(0, i);
    if (read.version < oldest.version) oldest = read;
  }
  return "deliver " + std::string(oldest.key.substr(sizeof(kOutbox) - 1)) + " " + text_in(oldest);
}

// Takes a message out of the outbox, after it has arrived.
Expected<std::string> delivered(const Server& server, const std::string& id) {
  Batch batch;
  batch.begin();
  const Key message = batch.key(kOutbox + id);
  batch.guard_exists(message);  // otherwise another process has taken it out
  batch.del(message);
  batch.add(batch.key(kUndelivered), -1);
  batch.end();

  const Expected<RequestResult> sent = server.session.execute(batch);
  if (!sent) return sent.error();
  return "delivered " + id;
}

Expected<std::string> command(const Server& server, const Words& words) {
  if (words.size() < 2) return wrong_command();
  const std::string& verb = words[0];
  const std::int64_t number = integer_of(words.back()).value_or(-1);
  if (verb == "open" && words.size() == 4 && number > 0) return pay(server, {words[1], kWorld, words[2], number});
  if (verb == "pay" && words.size() == 5 && number > 0 && words[2] != kWorld && words[3] != kWorld) {
    return pay(server, {words[1], words[2], words[3], number});
  }
  if (verb == "deliver" && words.size() == 2 && number >= 0) return deliver(server, number * 1000);
  if (verb == "delivered" && words.size() == 2) return delivered(server, words[1]);
  return wrong_command();
}

}  // namespace

int main(int argc, char** argv) { return example::main_of(argc, argv, kUsage, command); }
