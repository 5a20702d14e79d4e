// The audit. It is one scan at one batch boundary, so it sees all accounts and statements at one moment, even if money
// moves at the same time. It checks that no balance is below zero, that every balance is the sum of its statement, and
// that both halves of every transfer are there.
//
// The accounts of the load tester (keys acct............) do not belong to the bank. They have balances and no
// statements. The audit checks that none is below zero, and reports their total in its own line.
//
// Thread safety: any thread, with its own client.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "client/bank/amount.hpp"
#include "kilokv/client.hpp"

namespace kilokv::bank {

struct AuditReport {
  std::uint64_t boundary = 0;                          // the batch number
  std::map<std::string, Cents, std::less<>> balances;  // of the ledger
  std::uint64_t entries = 0;
  Cents total = 0;  // of the ledger
  std::uint64_t load_tester_accounts = 0;
  Cents load_tester_total = 0;
  std::vector<std::string> problems;  // the first problems; empty: the books are right
  std::uint64_t problem_count = 0;
};

// Runs the audit. After a restart of the server it starts again, for at most `give_up_after_us`.
client::Expected<AuditReport> audit(client::Client* client, std::int64_t give_up_after_us);

}  // namespace kilokv::bank
