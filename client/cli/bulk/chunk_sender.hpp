// Sends the chunks of an import, several at a time, and brings each of them to its end: it leaves out records whose
// keys exist or that the server does not take, and sends the rest again.
//
// With a position key, chunks are applied in the order of the input, because each waits on the server for the one
// before. If the server does not let it wait there, it waits here until it is the first. Without a position key, the
// server may apply requests that are on their way together in any order. So a chunk that has a key in common with one
// on its way waits here.
//
// Thread safety: one thread uses it. The callbacks of the session, on other threads, only add to events_.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "client/cli/bulk/chunk.hpp"
#include "kilokv/client.hpp"

namespace kilokv::client {

struct SenderTotals {
  std::uint64_t written = 0, kept = 0;  // records
  std::uint64_t integers = 0;           // of those that were written; the others have bytes
  std::uint64_t left_out = 0;           // records that were refused, or that the server did not take
  std::uint64_t unknown = 0;            // records of chunks whose outcome is not known
  std::uint64_t line = 1;               // all lines before it are done
  std::uint64_t line_max = 1;           // no line from it on is done
};

class ChunkSender {
 public:
  // Takes a record that is not written, with the reason. Returns whether the import goes on after it.
  using LeaveOut = std::function<bool(std::uint64_t line, std::string_view problem, std::string_view text)>;
  // Is called before a chunk is sent, and returns whether the import goes on.
  using BeforeSending = std::function<bool()>;
  // Is called a few times in a second while the sender waits for answers.
  using WhileWaiting = std::function<void()>;
  struct Callbacks {
    LeaveOut leave_out;
    BeforeSending before_sending;
    WhileWaiting while_waiting;
  };

  // `call`: of each request.
  ChunkSender(std::unique_ptr<Session> session, ChunkRules rules, std::uint32_t in_flight_max, CallOptions call,
              Callbacks callbacks);
  ~ChunkSender();
  ChunkSender(const ChunkSender&) = delete;
  ChunkSender& operator=(const ChunkSender&) = delete;

  // Sends the chunk as soon as there is room. Returns false when the import must stop. Requires: unless existing keys
  // are overwritten, no key is in the chunk twice.
  bool send(std::unique_ptr<Chunk> chunk);
  // Takes the answers that have come. Does not wait.
  bool look();
  // Waits until all chunks have ended. After it, nothing can be sent any more.
  void finish();

  const SenderTotals& totals() const { return totals_; }
  const Error& error() const { return error_; }  // the first one

 private:
  struct Open {  // a chunk that has not ended
    std::unique_ptr<Chunk> chunk;
    std::vector<std::uint64_t> keys;  // sorted hashes, without a position key
    std::uint64_t number = 0;
    bool sent_as_first = false;  // when it was sent last, all chunks before it had ended
    bool is_held = false;        // it is sent when it is the first
    bool has_ended = false, is_done = false;
  };
  struct Event {
    Open* open = nullptr;
    bool is_probe = false;
    Error error;
    Outcome outcome = Outcome::unknown;
    std::vector<bool> exists;  // of a probe
  };

  bool has_position() const { return !rules_.position_key.empty(); }
  bool stops() const { return has_failed_ || cut_.has_value(); }
  bool is_first(const Open* open) const { return open_.front().get() == open; }
  bool meets_open_keys(const std::vector<std::uint64_t>& keys) const;
  void transmit(Open* open);
  void hold(Open* open);
  void release(Open* open);
  void probe(Open* open);
  void note(Open* open, bool is_probe, const Progress& progress);
  std::optional<Event> take_event();
  Event wait_for_event();
  void handle(const Event& event);
  void on_outcome(Open* open, Outcome outcome);
  void on_probe(Open* open, const std::vector<bool>& exists);
  void on_error(Open* open, const Error& error);
  bool leave_out(Open* open, std::size_t entry, const std::string& problem);
  void cut(Open* open, std::size_t entry);
  void end(Open* open, bool is_done);
  void fail(Open* open, const Error& error);
  void drain();
  // A chunk that never will be applied, because the position that it waits for never comes.
  bool is_after_cut(const Open* open) const { return has_position() && cut_ && open->number > *cut_; }

  std::unique_ptr<Session> session_;
  const ChunkRules rules_;
  const std::uint32_t in_flight_max_;
  const CallOptions call_;
  const Callbacks callbacks_;
  Batch batch_;
  std::deque<std::unique_ptr<Open>> open_;  // in the order of the input
  std::uint64_t next_number_ = 0;
  std::optional<std::uint64_t> cut_;  // the first chunk that was cut: the import stops there
  bool has_failed_ = false;
  bool may_wait_ = true;     // whether the server lets transactions wait
  bool is_in_order_ = true;  // all chunks before the first one that has not ended are done, and none of them was cut
  Error error_;
  SenderTotals totals_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Event> events_;  // guarded by mutex_
};

}  // namespace kilokv::client
