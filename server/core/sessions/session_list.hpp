// What a client asks that attaches to a session, and what it learns of the requests of those who had the session
// before.
//
// The list is as of one batch, its boundary: a result is in it if its batch is not later. It may come in several parts,
// and each part has a boundary of its own. A later part never contradicts an earlier one: what is decided stays
// decided, and what is not in the list stays out of it, because no earlier holder of the session comes in any more.
//
// Thread safety: plain data. Results can be visited by any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "engine/base/types.hpp"
#include "server/core/request.hpp"
#include "server/core/request_identity.hpp"

namespace kilokv::server {

// The most requests in one part of a list.
inline constexpr std::size_t kListedRequestsMax = 1024;

// Where a part of a list begins: with the request of this number, or with the next one that there is. If it is that of
// this number, so many of its results were shown before.
struct SessionListPosition {
  std::uint64_t number = 0;
  std::uint64_t results = 0;
};

struct AttachTarget {
  SessionId session;
  std::uint64_t holder = 0;       // 0: attach, and then list; otherwise: only list, for this holder
  std::uint64_t attempt = 0;      // names the attach, so that it can be sent again; 0: no name
  SessionListPosition from = {};  // of the list
  std::uint64_t bytes_max = 0;    // about so much goes into a message; the part ends there
};

// A request that the session knows. Each of its transactions is in one of these states:
//   decided  it has a result
//   parked   it waits for a guard
//   queued   it is accepted, or about to be. It may still be refused for want of room, and then it does not run
//   none     it does not run unless the request is sent again. This is so for all that have no result, or for none
struct ListedRequest {
  std::uint64_t number = 0;
  std::uint32_t transactions = 0;  // in the whole request
  bool in_flight = false;          // those without a result are queued or parked
  std::uint32_t decided = 0, parked = 0, queued = 0;
  // The results from the begin of this part on, in the order of their batches, without the first `shown` of the first
  // slice. Results that did not fit into this part are missing.
  std::vector<std::shared_ptr<const ResultSlice>> results = {};
  std::uint32_t shown = 0;
};

struct SessionList {
  std::uint64_t holder = 0;  // whose list it is
  DurationUs lease_us = 0;
  bool frozen = false;  // the session is of an earlier incarnation of the database, and takes no new number
  std::array<unsigned char, 16> incarnation{};  // of the database
  std::uint64_t acknowledged_through = 0;
  BatchNumber boundary = 0;                  // the batch that it is as of
  std::vector<ListedRequest> requests = {};  // in order of their numbers
  std::uint64_t bytes = 0;                   // stored results of these: the work to add them to the list
  bool more = false;                         // the list goes on after these ...
  std::uint64_t next_number = 0;             // ... with this number or a later one

  void goes_on_at(std::uint64_t number) {
    more = true;
    next_number = number;
  }
};

// Called before an attach goes into its batch. It is in force once that batch is durable.
using AttachBegins = std::function<void(BatchNumber batch, std::uint64_t holder)>;

}  // namespace kilokv::server
