// Interactive transactions (interactive.hpp). Reads are kept with their versions, and writes are buffered. commit()
// sends one transaction.
#include "kilokv/interactive.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <thread>
#include <utility>

#include "client/lib/src/connection.hpp"
#include "client/lib/src/error.hpp"
#include "client/lib/src/read_set.hpp"

namespace kilokv::client {
namespace {

struct KnownValue {
  Value value;
  std::uint64_t version = 0;
};
struct Write {
  Value value;  // nothing: deleted
  Expiry expiry = {};

  bool deletes() const { return std::holds_alternative<std::monostate>(value); }
};
struct KnownRange {
  std::string from, to;
  std::uint64_t boundary_version = 0;
};

Value to_value(const ValueView& view) {
  if (const auto* integer = std::get_if<std::int64_t>(&view)) return *integer;
  if (const auto* bytes = std::get_if<std::string_view>(&view)) return std::string(*bytes);
  return std::monostate{};
}

bool in_range(const std::string& key, std::string_view from, std::string_view to) {
  return key >= from && (to.empty() || key < to);
}

}  // namespace

struct InteractiveTransaction::State {
  Client* client;
  Session* session;
  CallOptions options;
  std::map<std::string, KnownValue, std::less<>> reads;
  std::vector<KnownRange> ranges;
  std::map<std::string, Write, std::less<>> writes;
  std::optional<std::uint64_t> version;
  std::string conflicting_key;
  bool ended = false;

  Error check_open() const {
    return ended ? make_error(ErrorCode::failed_precondition, "the interactive transaction has ended") : Error{};
  }
  std::vector<Pair> merge_writes(std::vector<Pair> pairs, std::string_view from, std::string_view to) const;
  Batch build(std::vector<std::string>* guarded) const;
  Expected<Results> send(const Batch& batch) const;
  Error read(const std::vector<std::string>& keys);
};

// Merges the buffered writes into the pairs of a scan. Both are in key order.
std::vector<Pair> InteractiveTransaction::State::merge_writes(std::vector<Pair> pairs, std::string_view from,
                                                              std::string_view to) const {
  std::map<std::string, Pair> merged;
  for (Pair& pair : pairs) merged.emplace(pair.key, std::move(pair));
  for (auto write = writes.lower_bound(from); write != writes.end() && in_range(write->first, from, to); ++write) {
    const Value& value = write->second.value;
    if (write->second.deletes()) {
      merged.erase(write->first);
    } else if (const auto* integer = std::get_if<std::int64_t>(&value)) {
      merged[write->first] = Pair{write->first, *integer, 0};
    } else {
      merged[write->first] = Pair{write->first, std::get<std::string>(value), 0};
    }
  }
  std::vector<Pair> result;
  result.reserve(merged.size());
  for (auto& entry : merged) result.push_back(std::move(entry.second));
  return result;
}

// Builds the transaction of commit(). `guarded` gets the key of each guard.
Batch InteractiveTransaction::State::build(std::vector<std::string>* guarded) const {
  Batch batch;
  batch.begin();
  for (const auto& [key, known] : reads) {
    batch.guard_version(batch.key(key), known.version);
    guarded->push_back(key);
  }
  for (const KnownRange& range : ranges) {
    batch.guard_range_unchanged(range.from, range.to, range.boundary_version);
    guarded->push_back(range.from);
  }
  for (const auto& [key, write] : writes) {
    const Key at = batch.key(key);
    if (const auto* integer = std::get_if<std::int64_t>(&write.value)) {
      batch.put(at, *integer, write.expiry);
    } else if (const auto* bytes = std::get_if<std::string>(&write.value)) {
      batch.put(at, std::string_view(*bytes), write.expiry);
    } else {
      batch.del(at);
    }
  }
  batch.end();
  return batch;
}

Expected<Results> InteractiveTransaction::State::send(const Batch& batch) const {
  std::unique_ptr<Session> own;
  if (session == nullptr) {
    if (!needs_upload(batch)) {
      auto answer = client->execute(batch, options);
      if (!is_too_large_to_send(answer.error()) || uploadable_guards(batch) == 0) return answer;
    }
    auto opened = client->open_session();
    if (!opened) return opened.error();
    own = std::move(*opened);
  }
  auto answer = (own != nullptr ? own.get() : session)->execute(batch, options);
  if (!answer) return answer.error();
  return std::move(answer->results);
}

// Reads keys that are not known yet. If the values do not fit into one answer, it reads half as many keys at a time.
Error InteractiveTransaction::State::read(const std::vector<std::string>& keys) {
  constexpr std::size_t kKeysAtOnce = 1000;
  std::size_t at_once = kKeysAtOnce;
  for (std::size_t begin = 0; begin < keys.size();) {
    const std::size_t end = std::min(begin + at_once, keys.size());
    const auto at = [&](std::size_t i) { return keys.begin() + static_cast<std::ptrdiff_t>(i); };
    const auto results = client->get({at(begin), at(end)}, options);
    if (!results && results.error().field == "keys" && end - begin > 1) {
      at_once = (end - begin) / 2;
      continue;
    }
    if (!results) return results.error();
    if (results->read_count(0) != end - begin) {
      return make_error(ErrorCode::internal, "the server answered a get without all of its reads");
    }
    for (std::size_t i = begin; i < end; ++i) {
      const ReadView read = results->read(0, i - begin);
      reads.emplace(keys[i], KnownValue{to_value(read.value), read.version.value_or(0)});
    }
    begin = end;
  }
  return {};
}

InteractiveTransaction::InteractiveTransaction(Client* client, Session* session, CallOptions options)
    : state_(std::make_unique<State>()) {
  state_->client = client;
  state_->session = session;
  state_->options = std::move(options);
}
InteractiveTransaction::InteractiveTransaction(InteractiveTransaction&&) noexcept = default;
InteractiveTransaction::~InteractiveTransaction() = default;

Expected<Value> InteractiveTransaction::get(std::string_view key) {
  if (Error error = state_->check_open()) return error;
  if (const auto own = state_->writes.find(key); own != state_->writes.end()) return own->second.value;
  if (const auto known = state_->reads.find(key); known != state_->reads.end()) return known->second.value;
  if (Error error = state_->read({std::string(key)})) return error;
  return state_->reads.find(key)->second.value;
}

Expected<std::vector<Value>> InteractiveTransaction::get_many(const std::vector<std::string>& keys) {
  if (Error error = state_->check_open()) return error;
  std::vector<std::string> unknown;
  for (const std::string& key : keys) {
    if (!state_->writes.contains(key) && !state_->reads.contains(key)) unknown.push_back(key);
  }
  if (Error error = state_->read(unknown)) return error;
  std::vector<Value> values;
  values.reserve(keys.size());
  for (const std::string& key : keys) {
    const auto own = state_->writes.find(key);
    values.push_back(own != state_->writes.end() ? own->second.value : state_->reads.find(key)->second.value);
  }
  return values;
}

Expected<std::vector<Pair>> InteractiveTransaction::scan(std::string_view from, std::string_view to) {
  if (Error error = state_->check_open()) return error;
  std::vector<Pair> pairs;
  ScanOptions options;
  options.call = state_->options;
  const auto collect = [&pairs](const Pair& pair) {
    pairs.push_back(pair);
    return true;
  };
  const auto position = state_->client->scan(from, to, collect, options);
  if (!position) return position.error();
  state_->ranges.push_back({std::string(from), std::string(to), position->boundary_version});
  return state_->merge_writes(std::move(pairs), from, to);
}

Expected<std::vector<Pair>> InteractiveTransaction::scan_reverse(std::string_view from, std::string_view to,
                                                                 std::size_t limit) {
  if (Error error = state_->check_open()) return error;
  if (limit == 0) return make_error(ErrorCode::invalid_argument, "the limit of a scan is 0; at least 1 is needed");
  std::size_t page_pairs = limit;
  for (auto own = state_->writes.lower_bound(from); own != state_->writes.end() && in_range(own->first, from, to);
       ++own) {
    if (own->second.deletes()) ++page_pairs;  // the server has it still
  }
  std::vector<Pair> pairs;
  std::size_t seen = 0;  // pairs that this transaction has not deleted
  ScanOptions options;
  options.reverse = true;
  options.page_pairs = static_cast<std::uint32_t>(std::min<std::size_t>(page_pairs, UINT32_MAX));
  options.call = state_->options;
  const auto collect = [&](const Pair& pair) {
    const auto own = state_->writes.find(pair.key);
    if (own == state_->writes.end() || !own->second.deletes()) ++seen;
    pairs.push_back(pair);
    return seen < limit;
  };
  const auto position = state_->client->scan(from, to, collect, options);
  if (!position) return position.error();
  std::vector<Pair> merged = state_->merge_writes(std::move(pairs), from, to);
  std::reverse(merged.begin(), merged.end());
  if (merged.size() > limit) merged.resize(limit);
  // What is before the last pair of a full answer does not matter.
  const std::string begin = merged.size() == limit ? merged.back().key : std::string(from);
  state_->ranges.push_back({begin, std::string(to), position->boundary_version});
  return merged;
}

void InteractiveTransaction::put(std::string_view key, std::int64_t value, const Expiry& expiry) {
  state_->writes.insert_or_assign(std::string(key), Write{value, expiry});
}
void InteractiveTransaction::put(std::string_view key, std::string_view bytes, const Expiry& expiry) {
  state_->writes.insert_or_assign(std::string(key), Write{std::string(bytes), expiry});
}
void InteractiveTransaction::del(std::string_view key) {
  state_->writes.insert_or_assign(std::string(key), Write{std::monostate{}});
}

Expected<CommitResult> InteractiveTransaction::commit() {
  if (Error error = state_->check_open()) return error;
  state_->ended = true;
  std::vector<std::string> guarded;
  if (state_->reads.empty() && state_->ranges.empty() && state_->writes.empty()) return CommitResult::committed;
  const Batch batch = state_->build(&guarded);
  const auto results = state_->send(batch);
  if (!results) return results.error();
  const ResultView result = results->at(0);
  if (result.outcome == Outcome::committed) {
    state_->version = result.version;
    return CommitResult::committed;
  }
  if (result.outcome == Outcome::guard_failed && result.failed_index < guarded.size()) {
    state_->conflicting_key = guarded[result.failed_index];
    return CommitResult::conflict;
  }
  return make_error(ErrorCode::internal, std::string("commit ended as ") + to_string(result.outcome));
}

std::optional<std::uint64_t> InteractiveTransaction::version() const { return state_->version; }
std::string InteractiveTransaction::conflicting_key() const { return state_->conflicting_key; }

Error InteractiveTransaction::run(Client* client, Session* session,
                                  const std::function<Error(InteractiveTransaction&)>& body,
                                  std::uint32_t attempts_max) {
  Backoff backoff(client->options());
  std::string key;
  for (std::uint32_t attempt = 0; attempt < attempts_max; ++attempt) {
    InteractiveTransaction transaction(client, session);
    if (Error error = body(transaction)) return error;
    const auto committed = transaction.commit();
    if (!committed) return committed.error();
    if (*committed == CommitResult::committed) return {};
    key = transaction.conflicting_key();
    std::this_thread::sleep_for(backoff.next());
  }
  return make_error(ErrorCode::aborted,
                    "all " + std::to_string(attempts_max) + " attempts had conflicts; the last one on key " + key);
}

}  // namespace kilokv::client
