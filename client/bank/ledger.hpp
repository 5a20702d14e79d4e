// The bank's books in KiloKV: the keys, and the transaction of each movement of money.
//
// Keys (all values are integers, in cents):
//   bank/account/<account>                               the balance; the key exists as long as the account does
//   bank/entry/<account>/<id>/<kind>/<counterpart>       one line of the account's statement: the signed amount
// The client makes <id> and never uses it twice: <microseconds since the epoch, 16 digits>-<tag of the
// client>-<number>. Both halves of a transfer have the same id. A statement has the order of the commit versions of its
// entries. <kind> is opened, deposit, withdrawal or transfer. <counterpart> is the other account, or `cash`.
//
// Invariants: each movement writes balance and statement in one transaction. So at every batch boundary an account's
// balance is the sum of its entries, and the transfers of all accounts sum to zero. (audit.hpp checks both.)
//
// Precedence: within a batch, money in goes before money out, so that a withdrawal finds the deposit that covers it.
// Thread safety: the functions are pure; each class says its own.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "client/bank/amount.hpp"
#include "kilokv/batch.hpp"
#include "kilokv/results.hpp"

namespace kilokv::bank {

inline constexpr std::string_view kAccountPrefix = "bank/account/";
inline constexpr std::string_view kEntryPrefix = "bank/entry/";
inline constexpr std::string_view kCash = "cash";

enum class Kind : std::uint8_t { opened, deposit, withdrawal, transfer };
const char* to_string(Kind kind);

struct Movement {
  Kind kind = Kind::deposit;
  std::string_view account;      // opened, deposit: receives; withdrawal, transfer: pays
  std::string_view counterpart;  // transfer: receives
  Cents amount = 0;
  // Withdrawal, transfer: how long it may wait on the server for the money; 0: it does not wait.
  std::uint64_t wait_us = 0;
  bool return_balance = false;  // the answer has a GET of the account's new balance (for a transfer: of both accounts)
};

// Valid names have 1 to 64 characters of A-Z a-z 0-9 . _ -
bool valid_account(std::string_view name);

// Makes ids of entries. Each client has its own. Thread safety: none.
class EntryIds {
 public:
  explicit EntryIds(std::uint32_t tag);
  std::string_view next(std::int64_t epoch_us);  // valid until the next call

 private:
  char text_[48];
  std::uint32_t tag_;
  std::uint64_t number_ = 0;
};

// Appends the transactions of movements to a batch. Thread safety: none.
class MovementWriter {
 public:
  // Requires: valid account names; amount > 0 (opened: >= 0); an `id` that was never used.
  void append(const Movement& movement, std::string_view id, client::Batch* batch);

 private:
  std::string account_key_, other_key_, entry_key_;
};

enum class Refusal : std::uint8_t {
  none,
  account_exists,
  no_such_account,
  no_such_counterpart,
  insufficient,
  expired,
  too_large,
  not_a_balance
};

// The reason why a movement was not made. Requires: the outcome is known.
Refusal refusal_of(const Movement& movement, const client::ResultView& result);
// The reason for a person: `alice has 3.00, 12.34 needed`.
std::string explain(const Movement& movement, const client::ResultView& result);

struct Entry {
  std::string_view account, id, kind, counterpart;
};
// Nothing if `key` is not the key of an entry. The views point into `key`.
std::optional<Entry> parse_entry_key(std::string_view key);
// The clock of entry ids: microseconds since the Unix epoch.
std::int64_t entry_clock_us();
// The time at which the client made the id; 0 if the bank did not make it.
std::int64_t entry_time_us(std::string_view id);

}  // namespace kilokv::bank
