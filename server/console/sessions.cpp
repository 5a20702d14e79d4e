// Role: see sessions.hpp.
#include "server/console/sessions.hpp"

#include <algorithm>
#include <utility>

namespace kilokv::server {

std::optional<std::string> ConsoleSessions::open(Login login) {
  std::optional<std::string> secret = tls::make_secret();
  if (!secret) return std::nullopt;
  const TimeUs now = now_us_();
  const std::lock_guard lock(mutex_);
  drop_ended(now);
  make_room(login.user);
  sessions_.emplace(tls::hash_of(*secret), Session{std::move(login), now, now});
  return secret;
}

std::optional<ConsoleSessions::Login> ConsoleSessions::find(std::string_view secret) {
  const TimeUs now = now_us_();
  const std::lock_guard lock(mutex_);
  drop_ended(now);
  const auto found = sessions_.find(tls::hash_of(secret));
  if (found == sessions_.end()) return std::nullopt;
  found->second.used_us = now;
  return found->second.login;
}

void ConsoleSessions::close(std::string_view secret) {
  const std::lock_guard lock(mutex_);
  sessions_.erase(tls::hash_of(secret));
}

void ConsoleSessions::drop_ended(TimeUs now_us) {
  std::erase_if(sessions_, [now_us](const auto& item) {
    return now_us - item.second.opened_us >= kLifeUs || now_us - item.second.used_us >= kIdleUs;
  });
}

void ConsoleSessions::make_room(const std::string& user) {
  std::size_t of_user = 0;
  auto oldest = sessions_.end(), oldest_of_user = sessions_.end();
  for (auto at = sessions_.begin(); at != sessions_.end(); ++at) {
    if (oldest == sessions_.end() || at->second.used_us < oldest->second.used_us) oldest = at;
    if (at->second.login.user != user) continue;
    ++of_user;
    const bool is_older = oldest_of_user == sessions_.end() || at->second.used_us < oldest_of_user->second.used_us;
    if (is_older) oldest_of_user = at;
  }
  if (of_user >= kSessionsOfUserMax) {
    sessions_.erase(oldest_of_user);
  } else if (sessions_.size() >= kSessionsMax) {
    sessions_.erase(oldest);
  }
}

}  // namespace kilokv::server
