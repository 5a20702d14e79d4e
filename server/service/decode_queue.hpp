// Decodes long messages in fair turns between clients. To decode a message of many transactions takes milliseconds.
// gRPC handles events in the order in which they come, so a client that sends many such messages would make all others
// wait. A short message is decoded at once, where it came, and never meets this queue. Longer ones are decoded where
// they came, too, as long as they are kDecodedHereBytesMax at a time at most, and no other waits: where there is no
// crowd, to pass them to another thread would cost more than it is worth.
//
// Each client has a queue of its own. The client whose next message would end first, if each client had the same part
// of the time, is served first (start-time fair queueing, as in core/pipeline/turns.hpp; here a message costs its
// bytes). While the admission queue holds as many transactions of a client as two batches may have, or of all
// connections of its address, its next messages stay here. So no time goes into messages that the admission queue would
// refuse, and what is decoded already has the cores. With so many of each connection, batches had a small part of every
// connection, and to answer these parts took longer than to run them. While a client waits so, the present stays with
// it.
//
// The transactions that are queued may be long ones, and take minutes. So a connection that has nothing in the
// admission queue need not wait for those of its neighbours: from time to time, one message of such a connection passes
// (kPassEvery, for each address).
//
// A message grows while it is decoded (ServiceOptions::kDecodedFactor). So all threads together decode at most the
// bytes of one longest message at a time, or one message.
//
// Thread safety: all members.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

#include "engine/base/status.hpp"
#include "server/core/clients/client.hpp"
#include "server/service/options.hpp"

namespace kilokv::server {

class DecodeQueue {
 public:
  // A message up to this length is short.
  static constexpr std::uint64_t kShortBytes = 4096;
  // An address may let a message pass so often, and less often after one of more than kPassBytes, in proportion.
  static constexpr std::chrono::milliseconds kPassEvery{100};
  static constexpr std::uint64_t kPassBytes = std::uint64_t{256} << 10;

  // `bytes_max`: of all messages that wait here. `setting`: the flag that it comes from. `decoding_max`: bytes of the
  // messages that the threads decode at a time. `pass_every`: only tests have another.
  DecodeQueue(std::uint64_t bytes_max, const char* setting, std::uint64_t decoding_max,
              std::chrono::milliseconds pass_every = kPassEvery);
  ~DecodeQueue();
  DecodeQueue(const DecodeQueue&) = delete;
  DecodeQueue& operator=(const DecodeQueue&) = delete;

  // Decodes a long message of this length: now, by `work()`, or later, by the function that `keep()` returns. That one
  // owns what it needs. RESOURCE_EXHAUSTED, and neither is called: too many bytes wait, of all clients or of this one.
  // `queued_max`: the transactions of the client, or of its address, in the admission queue with which its messages
  // stay here.
  template <class Work, class Keep>
  Status run(const std::shared_ptr<Client>& client, std::uint64_t bytes, std::uint64_t queued_max, const Work& work,
             const Keep& keep) {
    if (may_run_here(*client, bytes, queued_max)) {
      work();
      here_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
      return {};
    }
    if (Status status = bytes_.charge(client->account(&Client::undecoded_bytes), bytes); !status.ok()) return status;
    wait(client, bytes, queued_max, keep());
    return {};
  }
  // Runs everything that waits, and returns when nothing waits or runs.
  void drain();
  std::size_t threads() const { return threads_.size(); }
  // For the messages that wait here.
  std::uint64_t bytes() const { return bytes_.held(); }

 private:
  struct Message {
    std::uint64_t bytes;
    std::uint64_t queued_max;
    std::function<void()> work;
  };
  struct Flow {  // of one client
    std::shared_ptr<Client> client;
    std::deque<Message> messages;
  };
  using Flows = std::unordered_map<Client*, Flow>;

  bool may_run_here(const Client& client, std::uint64_t bytes, std::uint64_t queued_max);
  void wait(const std::shared_ptr<Client>& client, std::uint64_t bytes, std::uint64_t queued_max,
            std::function<void()> work);
  void serve();
  static bool is_full(const Flow& flow);
  Flows::iterator next();
  Message take(Flows::iterator it);
  bool has_room_for(std::uint64_t bytes) const { return running_ == 0 || running_bytes_ + bytes <= decoding_max_; }

  const std::uint64_t decoding_max_;
  const std::chrono::milliseconds pass_every_;
  SharedLimit bytes_;
  std::atomic<std::uint64_t> here_bytes_{0};  // of the messages that are being decoded where they came
  std::atomic<std::uint64_t> waiting_{0};     // messages in flows_
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false, draining_ = false;
  Flows flows_;                      // those that have messages
  std::size_t running_ = 0;          // messages that are being decoded ...
  std::uint64_t running_bytes_ = 0;  // ... and their bytes
  double now_ = 0;                   // virtual
  double present_max_ = 0;           // the earliest begin of a flow that next() passed over
  std::vector<std::thread> threads_;
};

}  // namespace kilokv::server
