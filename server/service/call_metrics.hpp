// Counts calls for the metrics: how many begin, how they end, how long they take, and why requests are refused.
//
// The methods are those of the protocol, and a few more. A call of an unknown method counts for "Unknown". So nothing
// that a client sends becomes the name of something that is counted.
//
// A call takes from its headers until its answer, or its error, is given to gRPC. The time in which the client takes
// the answer does not count. Where there are several answers, that of the last one does not. The requests on a stream
// of sessions count as calls of "SessionRequest". A stream that stays open is counted, and its time is not.
//
// Thread safety: all members. Each call costs two readings of a clock, and a few relaxed additions.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/base/status.hpp"
#include "server/core/histogram.hpp"

namespace kilokv::server {

class CallMetrics {
 public:
  // How a call ended, for its time. `refused`: the client may send it again. `cancelled`: the client went away, or its
  // deadline passed.
  enum class Outcome : std::uint8_t { ok, refused, cancelled, error };
  static constexpr std::size_t kOutcomes = 4;
  static const char* name_of(Outcome outcome);

  static constexpr std::size_t kCodes = 17;  // of gRPC, from OK to UNAUTHENTICATED
  static const char* name_of_code(std::size_t code);

  class Method {
   public:
    Method(std::string name, bool is_timed) : name_(std::move(name)), is_timed_(is_timed) {}

    // A call begins. Returns the time that its end needs.
    std::int64_t begin() {
      begun_.fetch_add(1, std::memory_order_relaxed);
      return is_timed_ ? now_us() : 0;
    }
    // Requires: called once for each begin(). `code`: of gRPC.
    void end(std::int64_t begun_us, std::size_t code);
    // So many calls will never end, because the stream that they came on is gone.
    void lose(std::uint64_t count) { ended_[kCancelled].fetch_add(count, std::memory_order_relaxed); }

    const std::string& name() const { return name_; }
    bool is_timed() const { return is_timed_; }
    std::uint64_t ended(std::size_t code) const { return ended_[code].load(std::memory_order_relaxed); }
    std::uint64_t in_flight() const;
    Histogram::Snapshot duration(Outcome outcome) const {
      return durations_[static_cast<std::size_t>(outcome)].snapshot();
    }

   private:
    static constexpr std::size_t kCancelled = 1;
    static std::int64_t now_us();
    struct Duration : Histogram {
      Duration();
    };
    const std::string name_;
    const bool is_timed_;
    std::atomic<std::uint64_t> begun_{0};
    std::array<std::atomic<std::uint64_t>, kCodes> ended_{};
    std::array<Duration, kOutcomes> durations_;
  };

  CallMetrics();

  // The method with this path, such as /kilokv.v1.KiloKV/Execute.
  Method* method(const std::string& path);
  Method* session_requests() { return session_requests_; }
  const std::deque<Method>& methods() const { return methods_; }

  // A request ended with this error. A request whose client went away was not refused.
  void refuse(const Status& status);
  // How many there were of each reason. The names are those of the protocol, such as QUEUE_FULL.
  std::vector<std::pair<std::string, std::uint64_t>> refusals() const;

 private:
  Method* add(std::string name, const std::string& path, bool is_timed);

  static constexpr std::size_t kReasonsMax = 256;
  std::deque<Method> methods_;  // they never move
  std::unordered_map<std::string, Method*> paths_;
  Method* session_requests_ = nullptr;
  Method* unknown_ = nullptr;
  std::array<std::atomic<std::uint64_t>, kReasonsMax> refusals_{};  // by the numbers of the protocol
};

}  // namespace kilokv::server
