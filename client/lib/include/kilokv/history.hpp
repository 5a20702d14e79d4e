// Writes histories: one JSON object in each line. Any checker can read them and judge the answers of a server.
// docs/history.md explains the fields. The functions append whole lines, with the newline, to a string. The caller
// writes that string out.
//
//   std::string out = history_header(R"({"workload": "bank"})", initial_pairs);
//   append_history(batch, result, {.session = session->id(), .began_us = run_began_us}, &out);
//
// Thread safety: free functions without state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kilokv/batch.hpp"
#include "kilokv/client.hpp"
#include "kilokv/error.hpp"
#include "kilokv/results.hpp"

namespace kilokv::client {

// The sender of a transaction, and its times. They are times of monotonic_us(). The lines have them relative to
// began_us.
struct HistoryContext {
  std::string session = {};  // hexadecimal; empty: no session
  std::uint64_t request = 0;
  std::uint32_t attempts = 1;
  std::int64_t began_us = 0;
  std::int64_t invoke_us = 0;                  // first send
  std::optional<std::int64_t> return_us = {};  // time of the answer; empty: it never came
  ErrorCode error = ErrorCode::none;           // why there is no answer; written if the outcome is unknown
  bool not_run = false;                        // with `error`: nothing of the request ran (Error::not_run)
  bool may_have_run = false;                   // with `error`: a sending may have run, whatever `error` is

  // Takes all that an error tells about the request: its number, how often it was sent, and whether it may have run.
  void ended_with(const Error& failure);
};

// The first line. `config_json` is a JSON object, and is written as it is. `initial` has the pairs that were in the
// database before.
std::string history_header(std::string_view config_json, const std::vector<Pair>& initial);

// Appends transaction `index` of the batch with its result. If no result came, `results` may be empty. Requires: the
// batch was sent without misuse.
void append_history(const Batch& batch, const Results& results, std::size_t index, const HistoryContext& context,
                    std::string* out);
// Appends every transaction of an answered request. Request number, attempts and times come from `result`.
void append_history(const Batch& batch, const RequestResult& result, HistoryContext context, std::string* out);

// Appends a page, or a whole scan at one boundary. `limit` is a number of pairs; 0: no limit.
void append_history_scan(std::string_view from, std::string_view to, std::uint64_t limit, const ScanPosition& position,
                         const std::vector<Pair>& pairs, const HistoryContext& context, std::string* out);

// Append the JSON text of a key or of a value. A key of printable ASCII becomes a string, another key {"b64": ...}. A
// byte value becomes {"b64": ...}.
void append_history_key(std::string_view key, std::string* out);
void append_history_bytes(std::string_view bytes, std::string* out);

}  // namespace kilokv::client
