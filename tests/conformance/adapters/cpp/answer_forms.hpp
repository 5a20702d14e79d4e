// What the C++ client answers, in the forms of the conformance test (README.md).
//
// Thread safety: pure functions.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string_view>
#include <vector>

#include "kilokv/client.hpp"
#include "kilokv/interactive.hpp"
#include "kilokv/watch.hpp"

namespace kilokv::conformance {

using Json = nlohmann::json;

Json from_key(std::string_view key);
Json from_value(const client::Value& value);
Json from_reads(const client::Results& results, std::size_t index);
Json from_results(const client::Results& results);  // null for a transaction without a result
Json from_request(const client::RequestResult& result);
Json from_known(const std::vector<client::KnownRequest>& requests);
Json from_pairs(const std::vector<client::Pair>& pairs);
Json from_write(const client::WatchedWrite& write);
Json from_parked(const client::ParkedTransaction& parked);
Json from_error(const client::Error& error);

}  // namespace kilokv::conformance
