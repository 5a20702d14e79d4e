// Role: see audit.hpp. Keys come in byte order: the load tester's accounts, the ledger's accounts, then its entries.
#include "client/bank/audit.hpp"

#include <functional>
#include <string_view>
#include <utility>

#include "client/bank/ledger.hpp"
#include "client/measure/steady_scan.hpp"

namespace kilokv::bank {
namespace {

constexpr std::string_view kLoadTesterPrefix = "acct";
constexpr std::string_view kScanEnd = "bank/entry0";  // after every bank/entry/...
constexpr std::size_t kProblemsShown = 10;

class Auditor {
 public:
  void visit(const client::Pair& pair) {
    const std::string_view key = pair.key;
    const bool load_tester = key.starts_with(kLoadTesterPrefix);
    const bool account = key.starts_with(kAccountPrefix);
    const bool entry = key.starts_with(kEntryPrefix);
    if (!load_tester && !account && !entry) return;
    const auto* amount = std::get_if<std::int64_t>(&pair.value);
    if (amount == nullptr) return problem(pair.key + " does not hold an amount");
    if (entry) return add_entry(key, *amount);
    if (load_tester) ++report_.load_tester_accounts;
    if (account) {
      const std::string name(key.substr(kAccountPrefix.size()));
      report_.balances[name] = *amount;
      unexplained_[name] = *amount;
    }
    if (*amount < 0) problem(pair.key + " is below zero: " + format_amount(*amount));
    add(load_tester ? &report_.load_tester_total : &report_.total, *amount);
  }

  AuditReport finish(std::uint64_t boundary) {
    for (const auto& [account, amount] : unexplained_) {
      if (amount == 0) continue;
      problem("the balance of " + account + " differs from its statement by " + format_amount(amount));
    }
    if (unpaired_ != 0) problem("the two halves of the transfers do not match");
    report_.boundary = boundary;
    return std::move(report_);
  }

 private:
  void add_entry(std::string_view key, Cents amount) {
    ++report_.entries;
    const auto entry = parse_entry_key(key);
    if (!entry) return problem(std::string(key) + " is not a line of a statement");
    const auto account = unexplained_.find(entry->account);
    if (account == unexplained_.end()) return problem(std::string(key) + " belongs to no account");
    add(&account->second, -amount);
    if (entry->kind == to_string(Kind::transfer)) pair_up(entry->id, amount);
  }

  // The two halves of a transfer have one id and opposite amounts, so their fingerprints cancel. What is left over
  // comes from a half whose other half is missing.
  void pair_up(std::string_view id, Cents amount) {
    const std::uint64_t size = static_cast<std::uint64_t>(amount < 0 ? -amount : amount);
    const std::uint64_t fingerprint = (std::hash<std::string_view>{}(id) ^ size) * 0x9E3779B97F4A7C15u;
    unpaired_ += amount < 0 ? std::uint64_t{0} - fingerprint : fingerprint;
  }

  void add(Cents* sum, Cents amount) {
    if (__builtin_add_overflow(*sum, amount, sum)) problem("a sum leaves the range of amounts");
  }

  void problem(std::string text) {
    ++report_.problem_count;
    if (report_.problems.size() < kProblemsShown) report_.problems.push_back(std::move(text));
  }

  AuditReport report_;
  std::map<std::string, Cents, std::less<>> unexplained_;  // by account: balance minus the entries seen
  std::uint64_t unpaired_ = 0;                             // sum of fingerprints, modulo 2^64
};

}  // namespace

client::Expected<AuditReport> audit(client::Client* client, std::int64_t give_up_after_us) {
  Auditor auditor;
  const auto position = bench::scan_steadily(
      client, kLoadTesterPrefix, kScanEnd, [&] { auditor = Auditor(); },
      [&](const client::Pair& pair) { auditor.visit(pair); }, give_up_after_us);
  if (!position) return position.error();
  return auditor.finish(position->boundary);
}

}  // namespace kilokv::bank
