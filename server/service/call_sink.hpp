// What core holds of a call that waits for its answer. A transaction can wait for a day, and its call can end long
// before. So this sink holds the call by weak_ptr: gRPC alone keeps a call alive, and its memory is free when gRPC has
// let go of it. Core keeps only the sink (kSinkBytes in core/request.hpp).
//
// Thread safety: as ResponseSink says.
#pragma once

#include <memory>
#include <utility>

#include "server/core/request.hpp"

namespace kilokv::server {

// Makes a call whose memory is free when the last shared_ptr is gone. With std::make_shared, the sinks that are left in
// core would keep the memory, too.
template <class Call, class... Arguments>
std::shared_ptr<Call> make_call(Arguments&&... arguments) {
  return std::shared_ptr<Call>(new Call(std::forward<Arguments>(arguments)...));
}

class CallSink final : public ResponseSink {
 public:
  explicit CallSink(const std::shared_ptr<ResponseSink>& call) : call_(call) {}

  void results(const ResultSlice& slice, bool last) override {
    if (const auto call = call_.lock()) call->results(slice, last);
  }
  void fail(const Status& status) override {
    if (const auto call = call_.lock()) call->fail(status);
  }
  bool gone() const override {
    const auto call = call_.lock();
    return call == nullptr || call->gone();
  }

 private:
  const std::weak_ptr<ResponseSink> call_;
};

// With the count of its owners, and with that of the call, which stays as long as there are sinks.
template <class Sink>
inline constexpr bool kIsSmallSink = sizeof(Sink) + 16 + 32 <= kSinkBytes;
static_assert(kIsSmallSink<CallSink>);

}  // namespace kilokv::server
