#include "server/edge/connection_account.hpp"

#include <utility>

namespace kilokv::server {
namespace {

// What a connection may have sent that nobody has read yet.
constexpr std::uint64_t kConnectionBytes = std::uint64_t{1} << 20;
// What was there at each look of so long a time counts as lasting.
constexpr std::int64_t kStuckMs = 300;
// Calls of health and pings go on for days. A client that takes long answers sends frames about its windows.
constexpr std::uint64_t kForgivenPerMs = 16, kForgivenPartOfTaken = 16;
// Each client may have a health check that stays open.
constexpr std::uint64_t kQuietCalls = 1;
// Longer than a message takes to be late.
constexpr std::int64_t kSampleMs = 2500;

std::uint64_t grown(std::uint64_t before, std::uint64_t now) { return now - std::min(now, before); }

}  // namespace

ConnectionAccount::ConnectionAccount(const ConnectionLimits* limits, const PeerUse& use, std::int64_t now_ms)
    : limits_(limits),
      inspected_ms_(now_ms),
      cancels_left_(limits->cancels_max),
      looked_ms_(now_ms),
      use_(use),
      now_{0, use.message_bytes},
      of_calls_{now_, now_},
      of_streams_{now_, now_} {}

void ConnectionAccount::look(const PeerUse& use, const SocketBytes& bytes, std::int64_t now_ms) {
  const PeerUse before = std::exchange(use_, use);
  const std::uint64_t accounted = use.accounted_bytes;
  const std::uint64_t used = accounted >= before.accounted_bytes ? accounted - before.accounted_bytes : accounted;
  now_.message_bytes = use.message_bytes;
  if (use.late == 0) of_calls_.take(now_, now_ms);
  if (use.late_streams == 0) of_streams_.take(now_, now_ms);
  unused_ += grown(now_.received, bytes.received);
  const auto elapsed_ms = static_cast<std::uint64_t>(now_ms - std::exchange(looked_ms_, now_ms));
  const std::uint64_t forgiven = elapsed_ms * kForgivenPerMs + grown(taken_, bytes.taken) / kForgivenPartOfTaken;
  unused_ -= std::min(unused_, used + forgiven);
  now_.received = std::max(now_.received, bytes.received);
  taken_ = std::max(taken_, bytes.taken);
  unused_least_.see(unused_, now_ms);
  refused_least_.see(use.refused_calls, now_ms);
}

double ConnectionAccount::inspect(const CallCounts& calls, std::int64_t now_ms) {
  const double seconds = static_cast<double>(now_ms - std::exchange(inspected_ms_, now_ms)) * 1e-3;
  inspected_bytes_ = now_.received;
  const CallCounts before = std::exchange(calls_, calls);
  has_lost_calls_ = calls.open() == 0 && calls.ended() > before.ended();
  elsewhere_ = grown(use_.calls + kQuietCalls, calls.open());
  elsewhere_least_.see(elsewhere_, now_ms);
  const std::uint64_t cancelled_now = cancelled();
  const double more = static_cast<double>(cancelled_now) - static_cast<double>(cancelled_);
  cancelled_ = cancelled_now;
  const double rate = limits_->cancels_max;
  cancels_left_ = std::min(rate, std::min(rate, cancels_left_ + rate * seconds) - more);
  return more;
}

std::uint64_t ConnectionAccount::received_since() const { return grown(inspected_bytes_, now_.received); }

// gRPC counts a call that its client has reset as open until it has let go of it. More calls than a connection may have
// are such calls.
std::uint64_t ConnectionAccount::cancelled() const { return calls_.failed + grown(limits_->calls_max, calls_.open()); }

// The messages of several calls may be many bytes for a moment. The message of one is not, and headers that never end
// are the begin of one call, too.
std::uint64_t ConnectionAccount::unread() const {
  const bool is_too_much = unused_ > limits_->unread_bytes_max + limits_->unread_bytes_max / 2;
  return calls_.open() <= 1 || is_too_much ? unused_ : held();
}

std::uint64_t ConnectionAccount::unread_bytes_max() const {
  const std::uint64_t messages = limits_->messages_more + calls_.open();
  return std::min(limits_->unread_bytes_max, kConnectionBytes + limits_->message_bytes_max * messages);
}

// One message that gets its end, among many that do not, does not make them fewer. Those of messages that come and go
// count only as far as there always are some.
std::uint64_t ConnectionAccount::held() const {
  return std::max(held_by(use_.late, of_calls_), has_calls() ? unused_least_.value() : 0);
}

std::uint64_t ConnectionAccount::held_by_late_streams() const { return held_by(use_.late_streams, of_streams_); }

std::uint64_t ConnectionAccount::held_by(std::uint64_t late, const Samples& samples) const {
  const std::uint64_t whole = grown(samples.before.message_bytes, now_.message_bytes);
  return std::min(late * limits_->message_bytes_max * limits_->messages_more,
                  grown(whole, grown(samples.before.received, now_.received)));
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

void ConnectionAccount::Samples::take(const Sample& now, std::int64_t now_ms) {
  if (now_ms - taken_ms < kSampleMs) return;
  taken_ms = now_ms;
  before = std::exchange(latest, now);
}

}  // namespace kilokv::server
