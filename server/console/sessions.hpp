// The browsers that have logged in to the console. Each has a cookie, which is a secret of 256 random bits, and stands
// for the token that somebody gave at the login. The token never goes back to the browser.
//
// A session ends 12 hours after its login, and after 30 minutes without a request. There are few of them: a user who
// opens more loses the session that was used longest ago, and so does everybody if all places are taken.
//
// Thread safety: all members.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "engine/base/types.hpp"
#include "tls/token.hpp"

namespace kilokv::server {

class ConsoleSessions {
 public:
  static constexpr DurationUs kLifeUs = DurationUs{12} * 3600 * 1000000, kIdleUs = DurationUs{30} * 60 * 1000000;
  static constexpr std::size_t kSessionsMax = 256, kSessionsOfUserMax = 8;

  struct Login {
    std::string user, token;
  };

  // `now_us`: a monotonic time.
  explicit ConsoleSessions(std::function<TimeUs()> now_us) : now_us_(std::move(now_us)) {}

  // Opens a session. Returns the secret; empty: there is no randomness.
  std::optional<std::string> open(Login login);
  // Who has this secret; empty: nobody, or not any more.
  std::optional<Login> find(std::string_view secret);
  void close(std::string_view secret);

 private:
  struct Session {
    Login login;
    TimeUs opened_us, used_us;
  };
  using Sessions = std::map<tls::SecretHash, Session>;

  void drop_ended(TimeUs now_us);
  void make_room(const std::string& user);

  const std::function<TimeUs()> now_us_;
  std::mutex mutex_;
  Sessions sessions_;
};

}  // namespace kilokv::server
