// A page of a scan: what a client asks for, and what it gets. Thread safety: plain data.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/types.hpp"
#include "server/core/clients/client.hpp"

namespace kilokv::server {

struct Login;  // core/access/access_table.hpp

struct ScanRequest {
  std::string from, to;                  // [from, to); `to` empty: no upper bound
  std::uint32_t limit = 0;               // pairs; 0: the page limit
  std::optional<BatchNumber> boundary;   // none: the newest boundary; else the boundary of an earlier page
  bool keep_boundary = false;            // the caller wants more pages at this boundary
  std::uint64_t reader = 0;              // the name that the first page gave, while the boundary is kept
  std::uint64_t bytes_max = UINT64_MAX;  // of the page as a message, if that is lower than the page limit
  std::shared_ptr<Client> client = {};   // who reads; null: nobody in particular
  // Whose rights count when the page is read; null: the server has no logins.
  std::shared_ptr<const Login> login = {};
  // The last pairs come first. The next page of the scan has this page's next_to as its `to`.
  bool reverse = false;
  // Whether nobody waits for the page any more; none: not known. Any thread may call it.
  std::function<bool()> is_over = {};
};

struct ScanPage {
  BatchNumber boundary = 0;
  Version boundary_version = 0;  // the highest version that the page can show; for `range unchanged since`
  TimeUs batch_time_us = 0;
  struct Pair {
    std::string key;
    ValueType type;
    std::int64_t integer;
    std::string bytes;
    Version version;
    TimeUs expires_us = 0;  // when the key expires; 0: never
  };
  std::vector<Pair> pairs;
  bool more = false;      // the range has more after this page; the page may still be empty
  std::string next_from;  // where the next page starts, if more; empty in reverse
  bool reverse = false;   // as in the request
  std::string next_to;    // in reverse: where the next page ends, not included, if more
  // Not 0: the boundary is kept under this name, until a last page, or a page that does not ask to keep it.
  std::uint64_t reader = 0;

  std::uint64_t memory_bytes() const {
    std::uint64_t bytes = pairs.capacity() * sizeof(Pair);
    for (const Pair& pair : pairs) bytes += pair.key.size() + pair.bytes.size();
    return bytes;
  }
};

}  // namespace kilokv::server
