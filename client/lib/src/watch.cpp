// The stream of a watch (kilokv/watch.hpp).
#include "kilokv/watch.hpp"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "client/lib/src/connection.hpp"
#include "client/lib/src/hex.hpp"
#include "client/lib/src/idle_watch.hpp"
#include "client/lib/src/reach.hpp"

namespace kilokv::client {
namespace {

constexpr std::size_t kIncarnationBytes = 16;

WatchedWrite to_write(const v1::WatchedWrite& from) {
  WatchedWrite write;
  write.key = from.key();
  if (from.value().has_integer()) write.value = from.value().integer();
  if (from.value().has_bytes()) write.value = std::string_view(from.value().bytes());
  write.version = from.version();
  write.batch_time_us = from.batch_time_us();
  write.expires_at_us = from.expires_at_us();
  write.expired = from.expired();
  write.batch = from.batch();
  write.rank = from.rank();
  return write;
}

class RemoteWatch final : public Watch {
 public:
  RemoteWatch(const ClientOptions& options, const std::shared_ptr<grpc::ChannelCredentials>& credentials)
      : connection_(options, credentials) {}

  Error reach() { return reach_server(&connection_); }

  Error read(const WatchOptions& options, const std::function<bool(const WatchedPart&)>& take) override {
    v1::WatchRequest request;
    request.mutable_range()->set_from(options.from);
    request.mutable_range()->set_to(options.to);
    const auto incarnation = from_hex(options.incarnation);
    if (!options.incarnation.empty() && (!incarnation || incarnation->size() != kIncarnationBytes)) {
      Error error;
      error.code = ErrorCode::invalid_argument;
      error.field = "incarnation";
      error.message = "the incarnation of a database has 32 hexadecimal digits, not \"" + options.incarnation + "\"";
      return error;
    }
    request.set_incarnation(incarnation.value_or(""));
    incarnation_ = options.incarnation;
    if (options.after) {
      request.mutable_after()->set_version(options.after->version);
      request.mutable_after()->set_writes(options.after->writes);
    }
    Backoff backoff(connection_.options());
    TimePoint last = Clock::now();  // when the last answer was taken
    for (;;) {
      bool is_stopped = false;
      const Connection::Link& link = connection_.next();
      Error error = read_once(link, options, take, &request, &backoff, &last, &is_stopped);
      if (is_stopped) return {};
      // The server cancels a stream whose client has taken no answer for long.
      const bool is_lost = error.code == ErrorCode::unavailable || error.code == ErrorCode::cancelled;
      if (!is_lost || Clock::now() - last >= std::chrono::microseconds(options.reconnect_us_max)) return error;
      // After a failed try, a channel connects again only if the program waits for it.
      const TimePoint again = Clock::now() + backoff.next(error.retry_after_us);
      link.channel->WaitForConnected(std::chrono::system_clock::now() + (again - Clock::now()));
      std::this_thread::sleep_until(again);
    }
  }

 private:
  // One stream. The request moves on with each answer.
  Error read_once(const Connection::Link& link, const WatchOptions& options,
                  const std::function<bool(const WatchedPart&)>& take, v1::WatchRequest* request, Backoff* backoff,
                  TimePoint* last, bool* is_stopped) {
    grpc::ClientContext context;
    connection_.log_in(&context);
    const auto reader = link.stub->Watch(&context, *request);
    bool is_idle = false;
    {
      IdleWatch idle(&connection_.timers(), &context, options.idle_us_max);
      v1::WatchResponse answer;
      WatchedPart part;
      while (!*is_stopped && reader->Read(&answer)) {
        idle.pause();
        backoff->reset();
        if (!answer.incarnation().empty()) {
          request->set_incarnation(answer.incarnation());
          incarnation_ = to_hex(answer.incarnation());
        }
        *request->mutable_after() = answer.position();
        part.writes.clear();
        for (const v1::WatchedWrite& write : answer.writes()) part.writes.push_back(to_write(write));
        part.position = {answer.position().version(), answer.position().writes()};
        part.unfinished = answer.unfinished();
        part.incarnation = incarnation_;
        *is_stopped = !take(part);
        *last = Clock::now();
        idle.alive();
      }
      is_idle = idle.is_idle();
    }
    if (*is_stopped) context.TryCancel();
    const grpc::Status status = reader->Finish();
    if (*is_stopped) return {};
    Error error = connection_.describe(to_error(status, context, connection_.where("Watch")));
    if (is_idle) {
      error.code = ErrorCode::unavailable;
      error.message = "the server has sent nothing of the watch for too long";
    } else if (status.ok()) {  // a watch has no end of its own
      error.code = ErrorCode::unavailable;
      error.message = "the server has ended the watch";
    }
    return error;
  }

  Connection connection_;
  std::string incarnation_;  // of the database, as hexadecimal digits; empty: not known yet
};

}  // namespace

Expected<std::unique_ptr<Watch>> Watch::connect(const ClientOptions& options) {
  return connect_as<RemoteWatch, Watch>(options);
}

}  // namespace kilokv::client
