// The everyday commands of kilokv-bank: each one transaction in a session of its own, or one scan, and a line or a
// table.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "client/bank/ledger.hpp"
#include "kilokv/client.hpp"

namespace kilokv::bank {

// How a program ends: 0 done; 1 refused, or the books are wrong; 2 usage; 3 the server found it malformed; 4 no server;
// 5 anything else.
enum ExitCode { kDone = 0, kRefused = 1, kUsage = 2, kMalformed = 3, kNoServer = 4, kOther = 5 };
int exit_code(const client::Error& error);
int report_error(const client::Error& error);  // on stderr

// Makes the movement; prints the new balances, or why it was refused.
int move_money(client::Client* client, Movement movement);
int print_statement(client::Client* client, const std::string& account, std::uint32_t lines);
// `expected`: what all accounts hold in total; none: not compared.
int print_audit(client::Client* client, std::optional<Cents> expected);

}  // namespace kilokv::bank
