// Runs two batches of transfers in this process, with the engine alone. It shows how a batch is built, checked and run,
// and what the results say.
//
// The engine keeps its records in memory. It has no log, no network and no sessions: these are the server's. A program
// that needs durability writes the columns `writes` of each batch to a log of its own, and gives them back with
// Engine::load() when it starts again.
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string_view>
#include <utility>

#include "engine/engine.hpp"
#include "engine/txn/validate.hpp"

namespace {

using namespace kilokv;
using namespace kilokv::engine;

// Draw it at random for a real database: who knows the secret can choose keys whose hashes collide.
constexpr KeyHashSecret kSecret{0x0123456789abcdef, 0xfedcba9876543210};

class Bank {
 public:
  explicit Bank(std::unique_ptr<Engine> engine) : engine_(std::move(engine)), builder_(&batch_, kSecret) {}

  void open(std::string_view account, std::int64_t balance) {
    builder_.begin();
    builder_.op(OpKind::put, builder_.key(account), Operand::integer, balance);
    builder_.end();
  }

  // If `from` has too little, the transfer fails (OnFalse::fail), or waits for a later transaction of the same batch
  // that changes this (OnFalse::wait).
  void transfer(std::string_view from, std::string_view to, std::int64_t amount, OnFalse on_false) {
    builder_.begin();
    const std::uint32_t payer = builder_.key(from);
    builder_.guard(GuardKind::greater_equal, on_false, payer, amount);
    builder_.op(OpKind::add, payer, Operand::integer, -amount);
    builder_.op(OpKind::add, builder_.key(to), Operand::integer, amount);
    builder_.end();
  }

  // Runs what was added since the last run, as one batch.
  Status run() {
    // The engine relies on valid columns. What comes from outside has to be checked first.
    if (Status status = validate(batch_, TransactionLimits{}); !status.ok()) return status;
    header_.number += 1;
    header_.time_us += 1000;
    header_.first_version = next_version_;
    expires_.assign(batch_.size(), 1);  // there is no later batch: a transaction that would go on waiting expires
    Status status = engine_->execute(header_, batch_, expires_, &results_, &writes_);
    if (!status.ok()) return status;
    next_version_ = results_.next_version;
    std::printf("batch %" PRIu64 ": %u passes, %zu writes\n", header_.number, results_.passes, writes_.size());
    for (std::size_t t = 0; t < batch_.size(); ++t) {
      std::printf("  transaction %zu: %s\n", t, name_of(static_cast<Outcome>(results_.outcome[t])));
    }
    batch_.clear();
    engine_->release_through(header_.number);
    return status;
  }

  std::int64_t balance(std::string_view account) const {
    return static_cast<std::int64_t>(engine_->find(account).cell.word);
  }

 private:
  static const char* name_of(Outcome outcome) {
    switch (outcome) {
      case Outcome::committed: return "committed";
      case Outcome::guard_failed: return "refused";
      case Outcome::wait_expired: return "waited in vain";
      case Outcome::overflow: return "overflow";
      case Outcome::type_mismatch: return "wrong type";
      case Outcome::undecided:
      case Outcome::postponed: break;
    }
    return "not decided";
  }

  std::unique_ptr<Engine> engine_;
  TransactionColumns batch_;
  ColumnsBuilder builder_;
  Column<std::uint8_t> expires_;
  BatchHeader header_;
  Version next_version_ = 1;
  BatchResults results_;
  WriteColumns writes_;
};

int run() {
  EngineOptions options;
  options.secret = kSecret;
  Result<std::unique_ptr<Engine>> engine = Engine::create(options);
  if (!engine.ok()) {
    std::fprintf(stderr, "embedded: %s\n", engine.status().message().c_str());
    return 1;
  }
  Bank bank(std::move(*engine));

  bank.open("alice", 100);
  bank.open("bob", 0);
  bank.open("carol", 0);
  if (!bank.run().ok()) return 1;

  bank.transfer("bob", "carol", 60, OnFalse::wait);    // waits in the batch until bob has been paid
  bank.transfer("alice", "bob", 80, OnFalse::fail);    // commits
  bank.transfer("alice", "carol", 30, OnFalse::fail);  // is refused: alice has 20 left
  if (!bank.run().ok()) return 1;

  std::printf("alice %" PRId64 ", bob %" PRId64 ", carol %" PRId64 "\n", bank.balance("alice"), bank.balance("bob"),
              bank.balance("carol"));
  return 0;
}

}  // namespace

int main() { return run(); }
