// The account of one connection: its bytes, and its calls. It tells which of the bytes belong to no whole message, and
// how many of these are held by calls that are open.
//
// Nobody sees the frames of the connection. What is known are the bytes that were received, and what its service counts
// (PeerUse). The headers of a call are credited with the most that they can have taken, a refused call with a window of
// its message, and a quiet connection with its pings. So what remains is too little, never too much. Where a message is
// late, there is a second count: what was received since some moment before its begin, less all whole messages. It is
// too little only by what was under way at that moment, and became whole since then.
//
// Times are in milliseconds, of a clock that never goes back. Thread safety: one user at a time.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

namespace kilokv::server {

struct ConnectionLimits {
  std::uint32_t connections_max = 0;
  std::uint32_t connections_per_address_max = 0;  // never more than half of the connections count
  // Bytes of one connection that belong to no whole message: a message for each open call, and a few more for what is
  // refused later. Never more than the last number. All connections together may hold as much, and four times as much
  // for a moment. An address may lose as much in ten seconds.
  std::uint64_t message_bytes_max = 0;
  std::uint32_t messages_more = 0;
  std::uint64_t unread_bytes_max = 0;
  // Refused calls of all connections together whose clients do not take the error. Four times as many are never
  // allowed, not even for a moment.
  std::uint64_t refused_calls_max = 0;
  std::uint32_t calls_max = 0;  // open at once on one connection
  // Calls of one connection that its client cancels, per second. All connections of an address may have kAddressCancels
  // times as many. A call without a valid login counts as kWithoutLogin of them, because each is answered.
  std::uint32_t cancels_max = 0;
  static constexpr std::uint32_t kAddressCancels = 8, kWithoutLogin = 8;
  std::uint32_t opens_max = 0;  // new connections of one address per second, after as many at once as it may have open
};

// The calls that the reader of a connection has counted in it since the connection began.
struct CallCounts {
  std::uint64_t started = 0;
  std::uint64_t answered = 0;  // of them
  std::uint64_t failed = 0;    // of them: ended without their answer

  std::uint64_t ended() const { return answered + failed; }
  std::uint64_t open() const { return started - std::min(started, ended()); }
};

// What the calls of a peer use, as their service counts it. The numbers of bytes and of calls without a login grow,
// and begin again at any time.
struct PeerUse {
  std::uint64_t accounted_bytes = 0;      // what its whole messages, and the headers of its calls, account for at most
  std::uint64_t message_bytes = 0;        // the part of the messages, which is exact
  std::uint64_t forgiven_bytes = 0;       // what calls may have brought, at most, that were refused and have ended
  std::uint64_t refused_calls = 0;        // that are open, and were refused for want of a place
  std::uint64_t calls_without_login = 0;  // calls without a valid login, on a server that needs one
  // Since when the call has lacked a message that has lacked it longest; kNever: none has for kLateMs.
  static constexpr std::int64_t kLateMs = 1000, kNever = -1;
  std::int64_t late_since_ms = kNever;
};

// What the system has counted for a connection since it began.
struct SocketBytes {
  std::uint64_t received = 0;  // and read; what waits in the system is not in the reader's memory
  std::uint64_t waiting = 0;   // to be read
  std::uint64_t taken = 0;     // by the peer
  bool is_stuck = false;       // the peer does not take what is sent to it
};

class ConnectionAccount {
 public:
  // `limits` outlives the account.
  ConnectionAccount(const ConnectionLimits* limits, const PeerUse& use, std::int64_t now_ms);

  // The service is asked for `use` before the system for `bytes`: then the bytes of those messages have been received.
  // At most `forgivable` bytes of refused calls are forgiven. Returns how many were.
  std::uint64_t look(const PeerUse& use, const SocketBytes& bytes, std::uint64_t forgivable, std::int64_t now_ms);
  // Inspects the calls, after a look at the same time. Returns the calls since the last inspection that were cancelled,
  // less those of before that have been answered since.
  double inspect(const CallCounts& calls, std::int64_t now_ms);
  // An inspection found no calls, because they are not known (yet).
  void inspect_nothing(std::int64_t now_ms) { inspected_ms_ = now_ms; }

  // The calls without a valid login that the last look has found.
  std::uint64_t without_login() const { return without_login_now_; }
  std::int64_t inspected_ms() const { return inspected_ms_; }
  // Bytes received since the last inspection.
  std::uint64_t received_since() const;
  // At the last look, and at the last inspection.
  std::uint64_t received() const { return received_; }
  std::uint64_t open_calls() const { return calls_.open(); }
  bool has_calls() const { return calls_.open() > 0; }
  // At the last inspection, no call was open, and some had ended since the one before. What came for them, and was no
  // whole message, is gone.
  bool has_lost_calls() const { return has_lost_calls_; }
  // More calls were cancelled, or had no valid login, than limits allow.
  bool cancels_too_much() const { return cancels_left_ < 0; }

  // Bytes that belong to no whole message (yet).
  std::uint64_t unused() const { return unused_; }
  // The part of them that counts against unread_bytes_max().
  std::uint64_t unread() const;
  std::uint64_t unread_bytes_max() const;
  // The part of them that messages of open calls hold.
  std::uint64_t held() const { return has_calls() ? unused_least_.value() : 0; }
  // What calls whose message is late may hold: what was received since some moment before the first of them began, and
  // was no whole message. It may be headers of other calls.
  std::uint64_t held_by_late() const;
  // For how long that has taken to come.
  std::int64_t late_for_ms(std::int64_t now_ms) const { return now_ms - before_late_.taken_ms; }
  // The late calls are told to end. When they have, most of what they held is gone. Returns for how long some have been
  // told so again and again, and have not ended; 0: now.
  std::int64_t tell_late(std::int64_t now_ms);
  // How many bytes that belong to no whole message have been there for a while.
  std::uint64_t lasting() const { return unused_least_.value(); }
  // More of what was received was whole messages than anything else.
  bool sends_messages() const { return messages_ > received_ / 2; }
  // What belongs to no whole message is gone. Returns how much that was.
  std::uint64_t lose();

  // Refused calls. `lasting`: for a while.
  std::uint64_t refused() const { return use_.refused_calls; }
  std::uint64_t lasting_refused() const { return refused_least_.value(); }

 private:
  // The least of the values that were seen in this window and in the one before.
  struct Least {
    std::int64_t window_ms = 0;
    std::uint64_t now = 0, before = 0;

    void see(std::uint64_t value, std::int64_t now_ms);
    void clear() { now = before = 0; }
    std::uint64_t value() const { return std::min(now, before); }
  };
  struct Sample {
    std::int64_t taken_ms = 0;
    std::uint64_t received = 0, message_bytes = 0;
  };

  // Calls that were late were told to end.
  struct Told {
    std::int64_t at_ms = 0, last_ms = 0;
    Sample before;           // each call that was not late then
    std::uint64_t held = 0;  // came before that
  };

  void sample(const Sample& last);
  std::uint64_t cancelled() const;

  const ConnectionLimits* limits_;
  // At the last inspection.
  std::int64_t inspected_ms_;
  std::uint64_t inspected_bytes_ = 0;
  CallCounts calls_;
  bool has_lost_calls_ = false;
  std::uint64_t cancelled_ = 0, without_login_ = 0;
  double cancels_left_;
  // At the last look.
  std::int64_t looked_ms_;
  PeerUse use_;
  std::uint64_t received_ = 0, taken_ = 0;
  std::uint64_t messages_ = 0;  // bytes of whole messages, since the connection began
  std::uint64_t unused_ = 0;
  std::uint64_t without_login_since_begin_ = 0;
  std::uint64_t without_login_now_ = 0;  // since the look before
  Least unused_least_, refused_least_;
  // The newest first. The last is older than a message that is not late.
  std::array<Sample, 3> samples_;
  Sample before_late_;  // before the begin of each call whose message is late
  std::optional<Told> told_;
};

}  // namespace kilokv::server
