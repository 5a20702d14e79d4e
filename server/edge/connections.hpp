// Accepts connections, hands them on, and keeps an account of each until it ends. A connection beyond a limit is closed
// before anybody reads from it. So silent or many connections cost a known number of descriptors, and none that storage
// needs.
//
// The account holds a duplicate of the connection's descriptor. With it, this class notices the end of a connection,
// whoever reads from it.
//
// Thread safety: a thread of its own accepts; any thread may call counts().
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <unordered_map>

#include "server/edge/descriptor.hpp"
#include "server/edge/listener.hpp"

namespace kilokv::server {

struct ConnectionLimits {
  std::uint32_t connections_max = 0;
  std::uint32_t connections_per_address_max = 0;  // never more than half of the connections count
};

struct ConnectionCounts {
  std::uint32_t open = 0;
  std::uint64_t accepted = 0;  // since the start
  std::uint64_t refused = 0;   // likewise: beyond a limit
};

class Connections {
 public:
  // Gets each accepted connection, and owns it from then on. The thread of this class calls it.
  using HandOver = std::function<void(int listener, Descriptor connection)>;
  // Tells of refused connections, at most every ten seconds: how many since the last time, and the last of them.
  using OnRefused = std::function<void(std::uint64_t count, const std::string& address, const std::string& why)>;

  Connections(Listener listener, ConnectionLimits limits, HandOver hand_over, OnRefused on_refused);
  ~Connections();  // stops

  void start();
  // Closes the listening sockets. The connections that are open stay open.
  void stop();

  ConnectionCounts counts() const;

 private:
  struct Connection {
    Descriptor descriptor;  // a duplicate
    std::string address;    // without the port
    // The peer has ended its side. Who reads from the connection ends the other side, within kLingerMs.
    std::int64_t half_closed_ms = 0;
  };

  void run();
  void accept_all(int listener);
  void admit(int listener, Descriptor connection, std::string address);
  void refuse(const std::string& address, const std::string& why);
  void report_refused(std::int64_t now_ms);
  void on_event(int descriptor, std::uint32_t events);
  void end_half_closed(std::int64_t now_ms);
  void forget(int descriptor);

  Listener listener_;
  const ConnectionLimits limits_;
  const HandOver hand_over_;
  const OnRefused on_refused_;
  Descriptor events_;  // epoll
  Descriptor wake_;    // eventfd; ends the thread
  std::thread thread_;
  std::atomic<std::uint32_t> open_{0};
  std::atomic<std::uint64_t> accepted_{0}, refused_{0};

  // Only the thread uses these.
  std::unordered_map<int, Connection> connections_;  // by the duplicate's number
  std::unordered_map<std::string, std::uint32_t> by_address_;
  std::uint64_t reported_ = 0;  // of refused_
  std::int64_t reported_at_ms_ = 0;
  std::int64_t ticked_at_ms_ = 0;
  std::string last_address_, last_why_;
  bool out_of_descriptors_ = false;
};

}  // namespace kilokv::server
