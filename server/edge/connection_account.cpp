#include "server/edge/connection_account.hpp"

#include <utility>

namespace kilokv::server {
namespace {

// What a connection may have sent that nobody has read yet.
constexpr std::uint64_t kConnectionBytes = std::uint64_t{1} << 20;
// What was there at each look of so long a time counts as lasting.
constexpr std::int64_t kStuckMs = 300;
// Pings go on for days. A client that takes long answers sends frames about its windows.
constexpr std::uint64_t kForgivenPerMs = 16, kForgivenPartOfTaken = 16;
// After so long without a tell, one begins anew.
constexpr std::int64_t kForgottenMs = 500;
constexpr std::int64_t kSampleMs = 600;
static_assert(2 * kSampleMs > PeerUse::kLateMs);  // two of them lie between the first sample and the last

std::uint64_t grown(std::uint64_t before, std::uint64_t now) { return now - std::min(now, before); }
// The same for a number that may begin again with 0.
std::uint64_t grown_or_begun(std::uint64_t before, std::uint64_t now) { return now >= before ? now - before : now; }

}  // namespace

ConnectionAccount::ConnectionAccount(const ConnectionLimits* limits, const PeerUse& use, std::int64_t now_ms)
    : limits_(limits),
      inspected_ms_(now_ms),
      cancels_left_(limits->cancels_max),
      looked_ms_(now_ms),
      use_(use),
      before_late_{now_ms, 0, use.message_bytes} {
  samples_.fill(before_late_);
}

std::uint64_t ConnectionAccount::look(const PeerUse& use, const SocketBytes& bytes, std::uint64_t forgivable,
                                      std::int64_t now_ms) {
  const PeerUse before = std::exchange(use_, use);
  const std::uint64_t used = grown_or_begun(before.accounted_bytes, use.accounted_bytes);
  if (use.message_bytes < before.message_bytes) {  // counted from the begin again, so there is no call
    before_late_ = {now_ms, received_, use.message_bytes};
    samples_.fill(before_late_);
    told_.reset();
  } else {
    sample({looked_ms_, received_, before.message_bytes});
  }
  messages_ += grown_or_begun(before.message_bytes, use.message_bytes);
  without_login_now_ = grown_or_begun(before.calls_without_login, use.calls_without_login);
  without_login_since_begin_ += without_login_now_;
  unused_ += grown(received_, bytes.received);
  const auto elapsed_ms = static_cast<std::uint64_t>(now_ms - std::exchange(looked_ms_, now_ms));
  const std::uint64_t forgiven = elapsed_ms * kForgivenPerMs + grown(taken_, bytes.taken) / kForgivenPartOfTaken;
  unused_ -= std::min(unused_, used + forgiven);
  const std::uint64_t of_refused =
      std::min({unused_, forgivable, grown_or_begun(before.forgiven_bytes, use.forgiven_bytes)});
  unused_ -= of_refused;
  received_ = std::max(received_, bytes.received);
  taken_ = std::max(taken_, bytes.taken);
  unused_least_.see(unused_, now_ms);
  refused_least_.see(use.refused_calls, now_ms);
  return of_refused;
}

double ConnectionAccount::inspect(const CallCounts& calls, std::int64_t now_ms) {
  const double seconds = static_cast<double>(now_ms - std::exchange(inspected_ms_, now_ms)) * 1e-3;
  inspected_bytes_ = received_;
  const CallCounts before = std::exchange(calls_, calls);
  has_lost_calls_ = calls.open() == 0 && calls.ended() > before.ended();
  const std::uint64_t now_cancelled = cancelled();
  const double more =
      static_cast<double>(now_cancelled) - static_cast<double>(std::exchange(cancelled_, now_cancelled));
  const std::uint64_t without_login =
      without_login_since_begin_ - std::exchange(without_login_, without_login_since_begin_);
  const double rate = limits_->cancels_max;
  // Who sends little is seldom inspected. What came in a long time may have come evenly.
  const double may_be = std::min(rate * std::max(1.0, seconds), cancels_left_ + rate * seconds);
  cancels_left_ = std::min(rate, may_be - more - static_cast<double>(without_login * ConnectionLimits::kWithoutLogin));
  return more;
}

std::uint64_t ConnectionAccount::received_since() const { return grown(inspected_bytes_, received_); }

// gRPC counts a call that its client has reset as open until it has let go of it. More calls than a connection may have
// are such calls.
std::uint64_t ConnectionAccount::cancelled() const { return calls_.failed + grown(limits_->calls_max, calls_.open()); }

// The messages of several calls may be many bytes for a moment. The message of one is not, and headers that never end
// are the begin of one call, too. One message that gets its end, among many that do not, does not make them fewer:
// those of messages that come and go count only as far as there always are some.
std::uint64_t ConnectionAccount::unread() const {
  const bool is_too_much = unused_ > limits_->unread_bytes_max + limits_->unread_bytes_max / 2;
  return calls_.open() <= 1 || is_too_much ? unused_ : held();
}

std::uint64_t ConnectionAccount::unread_bytes_max() const {
  const std::uint64_t messages = limits_->messages_more + calls_.open();
  return std::min(limits_->unread_bytes_max, kConnectionBytes + limits_->message_bytes_max * messages);
}

std::uint64_t ConnectionAccount::held_by_late() const {
  if (use_.late_since_ms == PeerUse::kNever) return 0;
  const std::uint64_t whole = grown(before_late_.message_bytes, use_.message_bytes);
  return grown(whole, grown(before_late_.received, received_));
}

std::int64_t ConnectionAccount::tell_late(std::int64_t now_ms) {
  if (!told_ || now_ms - told_->last_ms > kForgottenMs) {
    const Sample& before = samples_.back();
    const std::uint64_t whole = grown(before_late_.message_bytes, before.message_bytes);
    told_ = Told{now_ms, now_ms, before, grown(whole, grown(before_late_.received, before.received))};
  }
  told_->last_ms = now_ms;
  return now_ms - told_->at_ms;
}

// `last`: what the look before this one has seen.
void ConnectionAccount::sample(const Sample& last) {
  const bool is_late = use_.late_since_ms != PeerUse::kNever;
  // Those that were told to end have ended. Others may be late by now.
  if (told_ && (!is_late || use_.late_since_ms > told_->at_ms - PeerUse::kLateMs)) {
    unused_ -= std::min(unused_, told_->held);
    before_late_ = std::exchange(told_, std::nullopt)->before;
  }
  if (last.taken_ms - samples_.front().taken_ms >= kSampleMs) {
    std::rotate(samples_.begin(), samples_.end() - 1, samples_.end());
    samples_.front() = last;
  }
  if (!is_late && before_late_.taken_ms < samples_.back().taken_ms) before_late_ = samples_.back();
}

std::uint64_t ConnectionAccount::lose() {
  unused_least_.clear();
  return std::exchange(unused_, 0);
}

void ConnectionAccount::Least::see(std::uint64_t value, std::int64_t now_ms) {
  if (now_ms - window_ms >= kStuckMs) {
    window_ms = now_ms;
    before = std::exchange(now, value);
  }
  now = std::min(now, value);
}

}  // namespace kilokv::server
