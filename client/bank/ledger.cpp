// Role: see ledger.hpp.
#include "client/bank/ledger.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <limits>

namespace kilokv::bank {
namespace {

using client::Compare;
using client::OnFalse;

constexpr std::size_t kTimeDigits = 16;
constexpr std::size_t kAccountBytesMax = 64;

void assign(std::string* key, std::string_view prefix, std::string_view account) {
  key->assign(prefix);
  key->append(account);
}

void put_entry(client::Batch* batch, std::string* key, std::string_view account, std::string_view id, Kind kind,
               std::string_view counterpart, Cents amount) {
  assign(key, kEntryPrefix, account);
  for (const std::string_view part : {id, std::string_view(to_string(kind)), counterpart}) {
    key->push_back('/');
    key->append(part);
  }
  batch->put(batch->key(*key), amount);
}

std::string balance_text(const client::ResultView& result) {
  if (!result.guard_value) return "too little";
  const auto* balance = std::get_if<std::int64_t>(&result.guard_value->value);
  return format_amount(balance != nullptr ? *balance : 0);
}

}  // namespace

const char* to_string(Kind kind) {
  switch (kind) {
    case Kind::opened: return "opened";
    case Kind::deposit: return "deposit";
    case Kind::withdrawal: return "withdrawal";
    case Kind::transfer: return "transfer";
  }
  return "?";
}

bool valid_account(std::string_view name) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
           c == '-';
  };
  return !name.empty() && name.size() <= kAccountBytesMax && std::all_of(name.begin(), name.end(), allowed);
}

EntryIds::EntryIds(std::uint32_t tag) : text_{}, tag_(tag) {}

std::string_view EntryIds::next(std::int64_t epoch_us) {
  const int length = std::snprintf(text_, sizeof(text_), "%0*" PRId64 "-%08" PRIx32 "-%" PRIu64,
                                   static_cast<int>(kTimeDigits), epoch_us, tag_, number_++);
  return {text_, static_cast<std::size_t>(length)};
}

void MovementWriter::append(const Movement& movement, std::string_view id, client::Batch* batch) {
  const bool pays = movement.kind == Kind::withdrawal || movement.kind == Kind::transfer;
  const bool transfers = movement.kind == Kind::transfer;
  assign(&account_key_, kAccountPrefix, movement.account);
  batch->begin({.precedence = std::uint8_t{pays}, .wait_timeout_us = movement.wait_us});
  const client::Key account = batch->key(account_key_);
  client::Key other{};
  if (transfers) {
    assign(&other_key_, kAccountPrefix, movement.counterpart);
    other = batch->key(other_key_);
  }
  if (movement.kind == Kind::opened) {
    batch->guard_absent(account);
  } else {
    batch->guard_exists(account);
  }
  if (transfers) batch->guard_exists(other);
  if (pays) {
    batch->guard(account, Compare::greater_equal, movement.amount,
                 movement.wait_us != 0 ? OnFalse::wait : OnFalse::fail);
  }
  const Cents change = pays ? -movement.amount : movement.amount;
  batch->add(account, change);
  put_entry(batch, &entry_key_, movement.account, id, movement.kind, transfers ? movement.counterpart : kCash, change);
  if (transfers) {
    batch->add(other, movement.amount);
    put_entry(batch, &entry_key_, movement.counterpart, id, movement.kind, movement.account, movement.amount);
  }
  if (movement.return_balance) {
    batch->get(account);
    if (transfers) batch->get(other);
  }
  batch->end();
}

Refusal refusal_of(const Movement& movement, const client::ResultView& result) {
  switch (result.outcome) {
    case client::Outcome::committed: return Refusal::none;
    case client::Outcome::wait_expired:
    case client::Outcome::cancelled: return Refusal::expired;
    case client::Outcome::overflow: return Refusal::too_large;
    case client::Outcome::type_mismatch: return Refusal::not_a_balance;
    case client::Outcome::guard_failed:
    case client::Outcome::unknown: break;
  }
  if (movement.kind == Kind::opened) return Refusal::account_exists;
  if (result.failed_index == 0) return Refusal::no_such_account;
  if (movement.kind == Kind::transfer && result.failed_index == 1) return Refusal::no_such_counterpart;
  return Refusal::insufficient;
}

std::string explain(const Movement& movement, const client::ResultView& result) {
  const std::string account(movement.account);
  switch (refusal_of(movement, result)) {
    case Refusal::none: return "";
    case Refusal::account_exists: return "account " + account + " is open already";
    case Refusal::no_such_account: return "there is no account " + account;
    case Refusal::no_such_counterpart: return "there is no account " + std::string(movement.counterpart);
    case Refusal::insufficient:
      return account + " has " + balance_text(result) + ", " + format_amount(movement.amount) + " needed";
    case Refusal::expired:
      return account + " still had " + balance_text(result) + " when the time was up, " +
             format_amount(movement.amount) + " needed";
    case Refusal::too_large:
      return "the balance of " + (movement.kind == Kind::transfer ? std::string(movement.counterpart) : account) +
             " would be more than " + format_amount(std::numeric_limits<Cents>::max()) + ", the most that it can be";
    case Refusal::not_a_balance:
      return "the key " + std::string(kAccountPrefix) + account +
             (movement.kind == Kind::transfer ? ", or that of " + std::string(movement.counterpart) + "," : "") +
             " does not hold a balance: bytes were written there";
  }
  return "";
}

std::optional<Entry> parse_entry_key(std::string_view key) {
  if (!key.starts_with(kEntryPrefix)) return std::nullopt;
  key.remove_prefix(kEntryPrefix.size());
  Entry entry;
  for (std::string_view* part : {&entry.account, &entry.id, &entry.kind}) {
    const std::size_t slash = key.find('/');
    if (slash == std::string_view::npos || slash == 0) return std::nullopt;
    *part = key.substr(0, slash);
    key.remove_prefix(slash + 1);
  }
  entry.counterpart = key;
  if (key.empty() || key.find('/') != std::string_view::npos) return std::nullopt;
  return entry;
}

std::int64_t entry_clock_us() {
  using std::chrono::system_clock;
  return std::chrono::duration_cast<std::chrono::microseconds>(system_clock::now().time_since_epoch()).count();
}

std::int64_t entry_time_us(std::string_view id) {
  std::int64_t time_us = 0;
  const auto [end, error] = std::from_chars(id.data(), id.data() + std::min(id.size(), kTimeDigits), time_us);
  return error == std::errc{} && end == id.data() + kTimeDigits ? time_us : 0;
}

}  // namespace kilokv::bank
