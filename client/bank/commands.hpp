// The everyday commands of kilokv-bank. Each is one transaction in its own session, or one scan, and prints a line or a
// table. Thread safety: none.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "client/bank/ledger.hpp"
#include "client/command_line/exit_code.hpp"
#include "kilokv/client.hpp"

namespace kilokv::bank {

using client::ExitCode;

ExitCode report_error(const client::Error& error);  // on standard error

// Makes the movement. Prints the new balances, or why it was refused.
ExitCode move_money(client::Client* client, Movement movement);
ExitCode print_statement(client::Client* client, const std::string& account, std::uint32_t lines);
// `expected`: the sum of all accounts; if it is empty, nothing is compared.
ExitCode print_audit(client::Client* client, std::optional<Cents> expected);

}  // namespace kilokv::bank
