// Sells tickets with the client library. It shows a session, guards, several transactions in one request, and what to
// do with each outcome and each error.
//
//   tickets [HOST:PORT]    default: 127.0.0.1:7070
//
// Each purchase is one transaction: if enough tickets are left, they are taken, and the buyer gets them. Otherwise
// nothing happens. Nobody has to lock anything, and no purchase has to be repeated because another one came first.
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "kilokv/client.hpp"

namespace {

using namespace kilokv::client;

constexpr char kStock[] = "example/tickets/left";

struct Purchase {
  std::string buyer;
  std::int64_t tickets;
};

std::string key_of(const Purchase& purchase) { return "example/tickets/of/" + purchase.buyer; }

int fail(const char* what, const Error& error) {
  std::fprintf(stderr, "tickets: %s: %s: %s\n", what, to_string(error.code), error.message.c_str());
  return 1;
}

// Puts tickets on sale, and takes away what an earlier run sold.
void stock_up(std::int64_t tickets, const std::vector<Purchase>& purchases, Batch* batch) {
  batch->begin();
  batch->put(batch->key(kStock), tickets);
  for (const Purchase& purchase : purchases) batch->del(batch->key(key_of(purchase)));
  batch->end();
}

void buy(const Purchase& purchase, Batch* batch) {
  batch->begin();
  const Key left = batch->key(kStock);
  batch->guard(left, Compare::greater_equal, purchase.tickets);  // false: none of the operations below happens
  batch->add(left, -purchase.tickets);
  batch->add(batch->key(key_of(purchase)), purchase.tickets);
  batch->end();
}

int sell(Client* client) {
  // The session numbers the requests. If the connection breaks, or the server restarts, the library sends an unanswered
  // request again under its number, and the server applies it once.
  Expected<std::unique_ptr<Session>> session = client->open_session();
  if (!session) return fail("cannot open a session", session.error());

  const std::vector<Purchase> purchases = {{"alice", 4}, {"bob", 5}, {"carol", 3}};
  Batch batch;
  stock_up(10, purchases, &batch);
  if (const auto stocked = (*session)->execute(batch); !stocked) return fail("cannot stock up", stocked.error());

  // All purchases in one request. They may run in any order, and each of them happens or does not.
  batch.clear();
  for (const Purchase& purchase : purchases) buy(purchase, &batch);
  const Expected<RequestResult> sold = (*session)->execute(batch);
  if (!sold) return fail("cannot sell", sold.error());
  for (std::size_t i = 0; i < purchases.size(); ++i) {
    const ResultView result = sold->results.at(i);
    std::printf("%s wants %lld: %s\n", purchases[i].buyer.c_str(), static_cast<long long>(purchases[i].tickets),
                to_string(result.outcome));
  }

  // A read of several keys is as of one moment.
  std::vector<std::string> keys = {kStock};
  for (const Purchase& purchase : purchases) keys.push_back(key_of(purchase));
  const Expected<Results> read = client->get(keys);
  if (!read) return fail("cannot read", read.error());
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const ReadView value = read->read(0, i);
    if (const auto* tickets = std::get_if<std::int64_t>(&value.value)) sum += *tickets;  // absent: the buyer got none
  }
  std::printf("tickets, sold and left: %lld\n", static_cast<long long>(sum));
  return sum == 10 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  ClientOptions options;
  if (argc > 1) options.endpoint = argv[1];
  const Expected<std::unique_ptr<Client>> client = Client::connect(options);
  if (!client) return fail("no server", client.error());
  return sell(client->get());
}
