// The everyday commands of kilokv-bank: each one transaction in a session of its own, or one scan, and a line or a
// table.
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

// Makes the movement; prints the new balances, or why it was refused.
ExitCode move_money(client::Client* client, Movement movement);
ExitCode print_statement(client::Client* client, const std::string& account, std::uint32_t lines);
// `expected`: what all accounts hold in total; none: not compared.
ExitCode print_audit(client::Client* client, std::optional<Cents> expected);

}  // namespace kilokv::bank
