// One client of the demo, with its own session and thread. In each round it does two things:
//   1. It sends a withdrawal from its pocket account that has to wait, and does not wait for the answer.
//   2. It sends a request and waits for all of its answers. The request has transfers, payments, salaries, attempts
//      that must be refused, and the deposit that covers the withdrawal of the round before.
// It records every answer of the server in its books.
//
// Thread safety: none; one thread calls run().
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "client/bank/demo_books.hpp"
#include "client/bank/ledger.hpp"
#include "engine/workloads/random.hpp"
#include "kilokv/client.hpp"

namespace kilokv::bank {

// The accounts of one demo, by index: `customers` accounts, then the hot one, the empty one, and a pocket for each
// client.
struct Branch {
  Branch(const std::string& name, std::uint32_t customers, std::uint32_t clients);
  std::size_t hot() const { return customers; }
  std::size_t empty() const { return customers + 1; }
  std::size_t pocket(std::size_t client) const { return customers + 2 + client; }

  std::uint32_t customers;
  std::vector<std::string> accounts;
};

struct TellerOptions {
  std::uint32_t place = 0;  // among the clients
  std::uint32_t tag = 0;    // for entry ids; unique among all clients of the bank
  std::uint32_t request_transactions = 16;
  std::uint64_t seed = 1;
  std::int64_t give_up_after_us = 60'000'000;
};

class Teller {
 public:
  // `branch` and `clipboard` outlive it.
  Teller(const TellerOptions& options, const Branch* branch, Clipboard* clipboard,
         std::unique_ptr<client::Session> session);

  void run();          // until Clipboard::closing is set and all is answered
  Books take_books();  // after run()

 private:
  struct Task {
    Activity activity = Activity::transfer;
    Movement movement;
    std::size_t account = 0, counterpart = 0;
  };

  void round();
  Activity draw_activity();
  Task make(Activity activity, Cents amount);
  void append(const Task& task, client::Batch* batch);
  void send_waiting(const Task& task);        // returns at once
  void send(const std::vector<Task>& tasks);  // waits for all answers
  void record(const Task& task, const client::ResultView& result, std::int64_t latency_us);
  void record_unknown(const Task& task, const client::Error& error);

  const TellerOptions options_;
  const Branch* branch_;
  Clipboard* clipboard_;
  engine::Random random_;
  EntryIds ids_;
  MovementWriter writer_;
  client::Batch batch_;
  std::vector<Task> tasks_;
  Cents uncovered_ = 0;  // withdrawn in advance, not yet deposited
  std::uint64_t rounds_ = 0;

  std::mutex mutex_;  // guards the books, and the members below
  std::condition_variable changed_;
  Books books_;
  std::uint32_t waiting_ = 0;  // requests sent by send_waiting

  std::unique_ptr<client::Session> session_;  // last: its end ends all callbacks
};

}  // namespace kilokv::bank
