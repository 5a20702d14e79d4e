// Writing histories: one JSON object a line, so that anybody's checker can judge what a server answered. The fields are
// explained in docs/history.md. Functions append whole lines, newline included, to a string that the caller writes out
// when it likes.
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

// Who sent a transaction, and when. Times are of monotonic_us(); lines tell them relative to began_us.
struct HistoryContext {
  std::string session = {};  // hex; empty: none
  std::uint64_t request = 0;
  std::uint32_t attempts = 1;
  std::int64_t began_us = 0;
  std::int64_t invoke_us = 0;                  // first send
  std::optional<std::int64_t> return_us = {};  // the answer; none: it never came
  ErrorCode error = ErrorCode::none;           // why there is no answer; told where the outcome is unknown
  bool not_run = false;                        // with `error`: the server said that nothing of the request ran
};

// The first line. `config_json`: a JSON object, taken as it is. `initial`: the pairs that were there before.
std::string history_header(std::string_view config_json, const std::vector<Pair>& initial);

// Transaction `index` of the batch and its result (none came: `results` may be empty). Requires: the batch was sent
// without misuse.
void append_history(const Batch& batch, const Results& results, std::size_t index, const HistoryContext& context,
                    std::string* out);
// Every transaction of a request that was answered. Request, attempts and times are those of `result`.
void append_history(const Batch& batch, const RequestResult& result, HistoryContext context, std::string* out);

// A page or a whole scan at one boundary. `limit`: pairs, 0: no limit.
void append_history_scan(std::string_view from, std::string_view to, std::uint64_t limit, const ScanPosition& position,
                         const std::vector<Pair>& pairs, const HistoryContext& context, std::string* out);

// JSON text of a key (a string when it is printable ASCII, else {"b64": ...}) and of byte values ({"b64": ...}).
void append_history_key(std::string_view key, std::string* out);
void append_history_bytes(std::string_view bytes, std::string* out);

}  // namespace kilokv::client
