// Which connections are read, and which wait for their turn.
//
// gRPC reads one connection after the other. It begins all calls that it finds on one before it reads the next, and
// 500 calls take about 25 ms of a core. So after one address has sent many calls on many connections, a connection of
// somebody else would wait for seconds. Once such a connection has waited for kUnreadMs, the connections of the crowded
// address take turns: the first in line are read, and the others are held back. How many are read at once follows from
// what the server manages: more after all of them were read between two looks, and half as many while somebody else
// waits again. A round of all in line takes about kRoundMs at most. The turns end when no connection has waited for one
// for kEndMs.
//
// The system cannot hold back a connection whose buffer is full. Where others have waited for kUnbearableMs in spite of
// the turns, connections that are held back and have many bytes have to be cut off.
//
// Times are in milliseconds, of a clock that never goes back. Thread safety: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace kilokv::server {

class ReadingTurns {
 public:
  static constexpr std::int64_t kUnreadMs = 60, kUnreadAgainMs = 30, kEndMs = 1000;
  static constexpr std::int64_t kUnbearableMs = 500;
  // gRPC has another reason not to read a connection that has waited for longer.
  static constexpr std::int64_t kNotReadMs = 5000;
  static constexpr std::int64_t kTurnMs = 200, kRoundMs = 2000, kLookMs = 20;
  // A held connection becomes readable when this number of bytes waits, or when its buffer is full.
  static constexpr int kHeldBytes = 1 << 16;
  // An address is crowded if at least kCrowd of its connections wait, and kCrowdTimes as many as those of some other
  // address that has waited too long.
  static constexpr std::size_t kCrowd = 4, kCrowdTimes = 4;
  // After kInTime looks in a row that found all of them read, more connections are read at once.
  static constexpr int kInTime = 5;
  // Holds a connection back, or lets it be read.
  using Hold = std::function<void(int connection, bool is_held)>;

  explicit ReadingTurns(Hold hold) : hold_(std::move(hold)) {}

  void begin(int connection, const std::string& address, std::int64_t now_ms);
  void end(int connection) { readers_.erase(connection); }
  // Takes what a look has found: the bytes of this connection that were read since it began, and those that wait.
  // `is_stuck`: its peer does not take what is sent to it. Then gRPC may leave it unread, and it waits for nobody else.
  void see(int connection, std::uint64_t read, std::uint64_t waiting, bool is_stuck, std::int64_t now_ms);
  struct Decision {
    std::vector<std::string> crowds;  // addresses whose connections take turns from now on
    std::vector<int> to_cut_off;      // connections, unless what they send is cheap to read
  };
  // Decides whose turn it is, after a look at all connections that take turns, and at some of the others. `now_ms`: as
  // for these looks.
  Decision decide(std::int64_t now_ms);
  // Nobody is held back any more.
  void stop();

  bool any() const { return !crowds_.empty(); }
  // Looks are needed at short intervals: some connections take turns, or will if others have to wait for longer.
  bool hurries() const { return any() || may_come_; }
  bool takes_turns(const std::string& address) const { return crowds_.contains(address); }

 private:
  struct Reader {
    int connection = -1;
    std::string address;
    std::uint64_t read = 0, waiting = 0;  // bytes, at the last look
    std::int64_t seen_ms = 0;
    std::int64_t unread_since_ms = 0;  // while some bytes wait
    std::uint64_t turn = 0;            // the lowest is the first in line
    std::int64_t turn_ms = 0;          // since when it is held, or has its turn
    bool is_held = false;
    bool was_read = false;  // in its turn, or there was nothing to read
  };
  // An address whose connections take turns.
  struct Crowd {
    std::size_t at_once = 1;
    int in_time = 0;  // looks in a row that found all of them read
    std::int64_t began_ms = 0;
    std::int64_t waited_ms = 0;  // when a connection waited for its turn last
  };

  // How long a connection has waited at most, of the addresses that take no turns, if that is too long. Adds to
  // `found`.
  std::int64_t find_crowds(std::int64_t now_ms, std::vector<std::string>* found);
  // Returns false if the turns have ended.
  bool take_turns(Crowd* crowd, const std::vector<Reader*>& readers, bool others_wait, std::int64_t now_ms);
  bool is_unbearable(const Reader& reader, std::int64_t others_wait_ms, std::int64_t now_ms) const;
  void set_held(Reader* reader, bool is_held, std::int64_t now_ms);

  const Hold hold_;
  std::unordered_map<int, Reader> readers_;
  std::unordered_map<std::string, Crowd> crowds_;  // by address
  bool may_come_ = false;                          // a crowd, as soon as others have waited too long
  std::uint64_t last_turn_ = 0;
};

}  // namespace kilokv::server
