// The numbers of the requests of a session that are ready to be sent. The lowest number goes first, so the oldest
// request that was refused goes before younger ones. A request that may wait for other transactions does not need room
// in the window (send_window.hpp). So it passes those that do.
// Thread safety: none; the session's lock guards it.
#pragma once

#include <cstdint>
#include <set>

namespace kilokv::client {

class SendQueue {
 public:
  void insert(std::uint64_t number, bool may_wait) { (may_wait ? waiting_ : plain_).insert(number); }
  void erase(std::uint64_t number) {
    plain_.erase(number);
    waiting_.erase(number);
  }
  void clear() {
    plain_.clear();
    waiting_.clear();
  }
  bool empty() const { return plain_.empty() && waiting_.empty(); }
  // The number to send next, or 0. `room`: whether the window has room.
  std::uint64_t next(bool room) const {
    const std::uint64_t plain = room && !plain_.empty() ? *plain_.begin() : 0;
    if (waiting_.empty()) return plain;
    return plain != 0 && plain < *waiting_.begin() ? plain : *waiting_.begin();
  }

 private:
  std::set<std::uint64_t> plain_, waiting_;
};

}  // namespace kilokv::client
