// Accepts connections, hands them on, and keeps an account of each until it ends. A connection beyond a limit is closed
// before anybody reads from it. So silent or many connections cost a known number of descriptors, and none that storage
// needs.
//
// Another part reads from the connection. This class holds a duplicate of its descriptor, and so notices the end of the
// connection, counts its bytes (connection_account.hpp), and can cut it off. These floods are cut off:
//   many bytes without a call   headers that never end, or frames that mean nothing
//   many useless calls          calls that are opened and reset at once, or that have no valid login, by one connection
//                               or by those of one address
//   many unfinished messages    messages that lack their end, of one connection or of all together
//   many lost bytes             bytes of one address that came for messages which never got their end
//   many refused calls          calls that were refused, and whose clients do not take the error, of all together
//
// A call may lack a message for days: a stream that is silent, for example. A part of the message looks like the
// headers of other calls. So where such parts might be too many, the calls end, and their clients may begin them again.
// A connection is cut off only if such calls do not end, or if that much came fast and often.
//
// After a flood, its address may connect again after a pause (flood_pauses.hpp). A connection that is cut off for the
// messages of its own calls is no flood: only what it loses counts for its address.
//
// An address that sends many calls on many connections is no flood. Where others would wait for it, its connections are
// read in turns (reading_turns.hpp). Then a client that ends its side of a connection loses the whole connection.
//
// Other parts may name connections that must end, too.
//
// Thread safety: two threads of its own; any thread may call counts() and list(). One accepts and hands over. gRPC
// reads from a new connection in that thread, for as long as data comes, so a flood can keep it busy. The other one
// looks for ends and floods, and so frees the first.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "server/edge/address_rate.hpp"
#include "server/edge/connection_account.hpp"
#include "server/edge/descriptor.hpp"
#include "server/edge/flood_pauses.hpp"
#include "server/edge/listener.hpp"
#include "server/edge/peer_name.hpp"
#include "server/edge/reading_turns.hpp"

namespace kilokv::server {

struct ConnectionCounts {
  std::uint32_t open = 0;
  std::uint64_t accepted = 0;  // since the start
  std::uint64_t refused = 0;   // likewise: beyond a limit
  std::uint64_t cut_off = 0;   // likewise: floods
};

// An open connection, for people. The calls and bytes are as of the last look at it.
struct ConnectionInfo {
  std::string peer;  // such as ipv4:127.0.0.1:1234
  std::int64_t age_ms = 0;
  std::uint64_t received_bytes = 0;  // since it began
  std::uint64_t open_calls = 0;
  std::uint64_t unfinished_bytes = 0;  // of messages that lack their end
};

// A connection that is not open any more, for people.
struct ConnectionEnd {
  std::string peer;
  std::int64_t age_ms = 0;
  std::uint64_t received_bytes = 0;
  std::string why;
};

class Connections {
 public:
  // Tells of connections that were refused, were cut off or take turns, at most every ten seconds.
  struct Report {
    std::uint64_t refused = 0, cut_off = 0;  // since the last report
    std::string address, why;                // of the last of them
    std::uint64_t crowds = 0;                // so often, connections of an address began to take turns
    std::string crowd;                       // the last such address
  };
  // Those calls of a peer must end that have lacked a message for long.
  struct Late {
    std::string peer;
    std::uint64_t bytes = 0;  // what they may hold
    bool is_again = false;    // they have been told so for a while, and have not ended
  };
  // The calls of an address that had no valid login, also those of connections that have ended.
  struct AddressCalls {
    std::string address;  // such as 127.0.0.1 or 2001:db8::/64
    std::uint64_t count = 0;
  };
  // Peers are named as gRPC names them: "ipv4:127.0.0.1:1234". The looking thread calls all but hand_over and on_open.
  // The accepting one calls `use_of`, too.
  struct Callbacks {
    // Gets each accepted connection, and owns it from then on. The accepting thread calls it.
    std::function<void(int listener, Descriptor connection)> hand_over;
    // The calls of this peer. Nothing if it is not known (yet).
    std::function<std::optional<CallCounts>(const std::string& peer)> inspect;
    std::function<PeerUse(const std::string& peer)> use_of;
    // Since the last time.
    std::function<std::vector<AddressCalls>()> take_calls_without_login = [] { return std::vector<AddressCalls>(); };
    // The peers whose connections must end. They end a moment later, so that answers that are on their way arrive.
    std::function<std::vector<std::string>()> take_ended = [] { return std::vector<std::string>(); };
    std::function<void(const Late& late)> end_late_calls;
    // A connection of this peer was accepted. The accepting thread calls it.
    std::function<void(const std::string& peer)> on_open = [](const std::string&) {};
    // A connection is not open any more.
    std::function<void(const ConnectionEnd& end)> on_end = [](const ConnectionEnd&) {};
    // The number of open connections has changed. Any thread of this class calls it.
    std::function<void(std::uint32_t open)> on_count = [](std::uint32_t) {};
    std::function<void(const Report& report)> on_report;
  };

  Connections(Listener listener, ConnectionLimits limits, Callbacks callbacks);
  ~Connections();  // stops

  void start();
  // Closes the listening sockets. The connections that are open stay open.
  void stop();

  ConnectionCounts counts() const;
  // All open connections, in no order.
  std::vector<ConnectionInfo> list() const;

 private:
  struct Connection {
    Descriptor descriptor;  // a duplicate
    PeerName peer;
    ConnectionAccount account;
    std::int64_t accepted_ms = 0;
    // The peer has ended its side. Who reads from the connection ends the other side, within kLingerMs.
    std::int64_t half_closed_ms = 0;
    std::string why_ended = {};  // empty: one of the sides has closed it
  };

  void accept_connections();
  void watch_connections();
  void look(std::int64_t now_ms);
  bool accept_some(int listener);
  bool admit(int connection, PeerName peer);
  void hand_over(int listener, Descriptor connection);
  void count_open();
  void refuse(const std::string& address, const std::string& why);
  void report(std::int64_t now_ms);
  void on_event(int descriptor, std::uint32_t events);
  void look_for_floods(std::int64_t now_ms);
  void give_turns(std::int64_t now_ms);
  void drop(int descriptor, std::int64_t now_ms);
  void inspect(int descriptor, std::int64_t now_ms);
  void bound_taken(std::int64_t now_ms);
  void bound_unfinished(std::int64_t now_ms);
  void bound_late(std::int64_t now_ms);
  void bound_refused(std::int64_t now_ms);
  using Amount = std::uint64_t (ConnectionAccount::*)() const;
  void cut_off_holders(Amount amount, std::uint64_t max, std::int64_t now_ms, const std::string& what);
  std::vector<int> largest_holders(Amount amount, std::uint64_t* all) const;
  void look_at(Connection* connection, std::int64_t now_ms);
  void charge_addresses(std::int64_t now_ms);
  bool count_loss(Connection* connection, std::int64_t now_ms);
  bool take_loss(const std::string& address, std::uint64_t lost, std::int64_t now_ms);
  void cut_off_losers(std::int64_t now_ms);
  std::string useless_calls_of_address() const;
  void cut_off_overdrawn(std::int64_t now_ms);
  std::string lost_too_much() const;
  void cut_off(int descriptor, std::int64_t now_ms, bool is_flood, const std::string& why);
  void end_half_closed(std::int64_t now_ms);
  void end_those_that_must();
  void end(int descriptor, std::int64_t now_ms);
  static ConnectionEnd end_of(const Connection& connection);
  void forget(int descriptor);

  Listener listener_;
  const ConnectionLimits limits_;
  const Callbacks callbacks_;
  Descriptor listeners_, duplicates_;  // epoll, one for each thread
  Descriptor stop_;                    // eventfd; wakes the accepting thread
  std::atomic<bool> stopping_{false}, watching_{true};
  std::atomic<bool> accepting_{false};
  std::thread acceptor_, watcher_;
  std::atomic<std::uint32_t> open_{0};
  std::atomic<std::uint64_t> accepted_{0}, refused_{0}, cut_off_{0};

  mutable std::mutex mutex_;                         // of these:
  std::unordered_map<int, Connection> connections_;  // by the duplicate's number
  std::unordered_map<std::string, std::uint32_t> by_address_;
  std::unordered_set<std::string> names_;  // of the peers
  FloodPauses pauses_;
  AddressRate openings_, cancels_, losses_, forgiven_;  // connections, calls, bytes, bytes
  std::unordered_map<std::string, std::int64_t>
      losers_;  // addresses that have lost too much, and until when they count
  std::unordered_map<std::string, std::int64_t> overdrawn_;  // likewise: that had too many calls without a login
  ReadingTurns turns_;
  Report unreported_;
  int handing_over_ = -1;  // the duplicate of the connection that is being handed over

  // Only the watching thread uses these.
  std::int64_t reported_at_ms_ = 0;
  bool hurries_ = false;  // all connections together have too much of something
  std::int64_t looked_at_ms_ = 0;
  std::uint32_t looks_ = 0;
  std::vector<std::string> to_end_;  // peers whose connections end at the next look
  std::vector<Late> late_;           // told after this look
};

}  // namespace kilokv::server
