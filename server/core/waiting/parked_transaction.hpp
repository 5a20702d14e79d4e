// What clients see of parked transactions: a list of them, and how to cancel some. Thread safety: plain data.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/status.hpp"
#include "engine/base/types.hpp"
#include "server/core/clients/client.hpp"
#include "server/core/request_identity.hpp"

namespace kilokv::server {

struct ParkedTransaction {
  std::uint64_t id = 0;  // for cancel; unique in this run of the server
  std::optional<SessionId> session;
  std::uint64_t request = 0;
  std::uint32_t index = 0;
  std::uint32_t guard = 0;  // the deciding guard
  std::string guard_key;
  BatchNumber admitted_batch = 0;
  TimeUs since_us = 0;     // stamp of the batch that parked it first
  TimeUs deadline_us = 0;  // compared with batch stamps
  std::string client;      // its name (clients/client.hpp)
};

// A part of the list of parked transactions.
struct ParkedPage {
  std::vector<ParkedTransaction> parked;
  bool more = false;  // there are some after the last one
};

// Parked transactions for which all conditions hold that are given.
struct ParkedFilter {
  std::string client = {};       // sent by this client; empty: by any
  std::string key_prefix = {};   // the key of the deciding guard begins with it; empty: any key, and range guards
  DurationUs older_than_us = 0;  // parked for at least this time; 0: for any time
};

// Names parked or still queued transactions: those of a request (all, or some indices), one parked id, or all parked
// ones that a filter lets pass.
struct CancelTarget {
  std::optional<SessionId> session;
  std::uint64_t request = 0;
  std::vector<std::uint32_t> indices;       // none: all of the request
  std::uint64_t parked_id = 0;              // used instead of the above if not 0
  std::optional<ParkedFilter> filter = {};  // used instead of the above if it is there
  // Whether the caller may still cancel these. It is asked before each step of the cancel, in the executor's thread. If
  // not, the cancel ends with this status. Empty: always.
  std::function<Status()> allowed = {};
  // Who cancels. The cancels of all clients take turns. Null: the server itself.
  std::shared_ptr<Client> caller = {};
  std::uint64_t holder = 0;  // with a session: which holder of it cancels
};

}  // namespace kilokv::server
