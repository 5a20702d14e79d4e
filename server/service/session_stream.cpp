#include "server/service/session_stream.hpp"

#include <google/protobuf/arena.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include "server/core/access/access_check.hpp"
#include "server/service/call_sink.hpp"
#include "server/service/decode.hpp"
#include "server/service/encode.hpp"
#include "server/service/identity.hpp"
#include "server/service/long_rows.hpp"
#include "server/service/message_buffer.hpp"
#include "server/service/status_map.hpp"

namespace kilokv::server {
namespace {

using google::protobuf::internal::WireFormatLite;

// For a message that is not to be parsed, because it is too long or refused: reads only the number, which the refusal
// names, and the session with its holder, to which a first message binds the stream. Skips everything else. So it takes
// no more memory than the bytes themselves.
Status read_head(grpc::ByteBuffer* buffer, v1::SessionRequest* head) {
  constexpr auto kNumber =
      WireFormatLite::MakeTag(v1::SessionRequest::kNumberFieldNumber, WireFormatLite::WIRETYPE_VARINT);
  constexpr auto kHolder =
      WireFormatLite::MakeTag(v1::SessionRequest::kHolderFieldNumber, WireFormatLite::WIRETYPE_VARINT);
  constexpr auto kSession =
      WireFormatLite::MakeTag(v1::SessionRequest::kSessionFieldNumber, WireFormatLite::WIRETYPE_LENGTH_DELIMITED);
  grpc::ProtoBufferReader reader(buffer);
  if (!reader.status().ok()) return malformed(v1::SessionRequest::descriptor());
  google::protobuf::io::CodedInputStream input(&reader);
  while (const std::uint32_t tag = input.ReadTag()) {
    bool good = false;
    if (tag == kNumber || tag == kHolder) {
      std::uint64_t value = 0;
      good = input.ReadVarint64(&value);
      tag == kNumber ? head->set_number(value) : head->set_holder(value);
    } else if (tag == kSession) {
      good = WireFormatLite::ReadBytes(&input, head->mutable_session());
    } else {
      good = WireFormatLite::SkipField(&input, tag);
    }
    if (!good) return malformed(v1::SessionRequest::descriptor());
  }
  return input.ConsumedEntireMessage() ? Status() : malformed(v1::SessionRequest::descriptor());
}

}  // namespace

// The answers of one request. It holds the stream as a CallSink holds its call.
class SessionStream::Answer final : public ResponseSink {
 public:
  Answer(const std::shared_ptr<SessionStream>& stream, const v1::SessionRequest& message, std::uint64_t bytes,
         std::int64_t begun_us)
      : stream_(stream),
        number_(message.number()),
        begun_us_(begun_us),
        bytes_(static_cast<std::uint32_t>(bytes)),
        as_columns_(message.has_columns()) {}

  void results(const ResultSlice& slice, bool last) override {
    const std::shared_ptr<SessionStream> stream = stream_.lock();
    if (stream == nullptr) return;
    const bool is_gone = stream->ended();  // asked once: the client may leave as soon as it has the answer
    if (!is_gone) {
      encode_slice<v1::SessionResponse>(slice, as_columns_, stream->environment_->options.message_bytes_max,
                                        [&](v1::SessionResponse* message, bool is_last_of_slice) {
                                          message->set_last(last && is_last_of_slice);
                                          send(stream.get(), message);
                                        });
    }
    if (last) answered(stream.get(), is_gone ? StatusCode::cancelled : StatusCode::ok);
  }

  void fail(const Status& status) override {
    const std::shared_ptr<SessionStream> stream = stream_.lock();
    if (stream == nullptr) return;
    v1::SessionResponse message;
    message.set_last(true);
    fill_error(status, message.mutable_error());
    stream->environment_->refuse(status, *stream->client_);  // first: whoever has read the answer finds it counted
    send(stream.get(), &message);
    answered(stream.get(), status.code());
  }

  bool gone() const override {
    const std::shared_ptr<SessionStream> stream = stream_.lock();
    return stream == nullptr || stream->ended();
  }

 private:
  void send(SessionStream* stream, v1::SessionResponse* message) const {
    if (stream->ended()) return;
    message->set_number(number_);
    const grpc::ByteBuffer buffer = serialize_message(*message);
    const std::lock_guard lock(stream->mutex_);
    stream->write(buffer);
  }
  void answered(SessionStream* stream, StatusCode code) const {
    stream->environment_->metrics.session_requests()->end(begun_us_, to_grpc_code(code));
    const std::lock_guard lock(stream->mutex_);
    stream->answered(bytes_);
  }

  const std::weak_ptr<SessionStream> stream_;
  const std::uint64_t number_;
  const std::int64_t begun_us_;
  const std::uint32_t bytes_;  // gRPC takes no message of so many
  const bool as_columns_;
};

// Nobody waits any more for the requests that are left.
SessionStream::~SessionStream() { environment_->metrics.session_requests()->lose(requests_in_flight_); }

void SessionStream::start() {
  if (!caller_.status.ok()) return end(caller_.status);
  const std::lock_guard lock(mutex_);
  read_on();
}

void SessionStream::refuse(const Status& status) {
  place_.forgive_message();
  end(status);
}

void SessionStream::end(const Status& status) {
  {
    const std::lock_guard lock(mutex_);
    end_when_sent(status);
  }
  // No answer reaches the client after that.
  if (!status.ok()) requests_.abandon();
}

void SessionStream::end_without_login(const AccessTable& table) {
  if (caller_.login != nullptr && table.rights(*caller_.login) == nullptr) end(login_gone(caller_.login->user));
}

void SessionStream::OnReadDone(bool ok) {
  read_ended();
  if (!ok) return handled(true);
  const auto self = std::static_pointer_cast<SessionStream>(shared_from_this());
  grpc::ByteBuffer message = CallEnvironment::take_message(caller_, &incoming_);
  const Status refused = environment_->decode_by(
      client_, &message, [self](grpc::ByteBuffer* taken) { self->take_and_read_on(taken, {}); });
  if (!refused.ok()) take_and_read_on(&message, refused);
}

void SessionStream::take_and_read_on(grpc::ByteBuffer* message, const Status& refused) {
  if (!is_over()) {
    const Status status = take(message, refused);
    if (!status.ok()) end(status);
  }
  message->Clear();
  handled(false);
}

// Whether no answer of a further request can reach the client.
bool SessionStream::is_over() const {
  const std::lock_guard lock(mutex_);
  return finished() || closing();
}

void SessionStream::handled(bool half_closed) {
  const std::lock_guard lock(mutex_);
  reading_ = false;
  half_closed_ = half_closed;
  if (half_closed_ && requests_in_flight_ == 0) finish_when_sent(grpc::Status::OK);
  read_on();
}

// `refused`: if not ok, the request gets this answer.
Status SessionStream::take(grpc::ByteBuffer* buffer, const Status& refused) {
  const std::uint64_t bytes = buffer->Length();
  google::protobuf::Arena arena(arena_for(kParsedFactor * bytes));
  auto* message = google::protobuf::Arena::CreateMessage<v1::SessionRequest>(&arena);
  const bool too_long = bytes > environment_->options.message_bytes_max;  // submit() refuses it
  bool rows_left = false;
  Status status = too_long || !refused.ok()
                      ? read_head(buffer, message)
                      : parse_request(buffer, environment_->options.message_bytes_max, message, &rows_left);
  if (!status.ok()) return status;
  if (!bound_) {
    status = bind(*message);
    if (!status.ok()) return status;
  }
  {
    const std::lock_guard lock(mutex_);
    ++requests_in_flight_;
    request_bytes_ += bytes;
  }
  static_assert(kIsSmallSink<Answer>);
  const std::int64_t begun_us = environment_->metrics.session_requests()->begin();
  auto answer =
      std::make_shared<Answer>(std::static_pointer_cast<SessionStream>(shared_from_this()), *message, bytes, begun_us);
  status = refused.ok() ? submit(*message, rows_left ? buffer : nullptr, bytes, answer) : refused;
  if (!status.ok()) answer->fail(status.as_not_run());
  // Long rows are parsed only when they are decoded.
  return status.reason() == ErrorReason::malformed_message ? status : Status();
}

Status SessionStream::bind(const v1::SessionRequest& message) {
  if (!message.session().empty()) {
    Result<SessionId> session = parse_session(message.session(), "session");
    if (!session.ok()) return session.status();
    session_ = *session;
    holder_ = message.holder();
  }
  bound_ = true;
  return {};
}

// Whether the message is of the session, and of the holder, to which the stream is bound.
Status SessionStream::check_bound(const v1::SessionRequest& message) const {
  if (!message.session().empty()) {
    Result<SessionId> session = parse_session(message.session(), "session");
    if (!session.ok()) return session.status();
    if (session_ != *session) {
      return Status::invalid({.field = "session",
                              .limit = "empty or that of the first message",
                              .actual = "another session",
                              .setting = ""})
          .because(ErrorReason::not_allowed);
    }
  }
  if (message.holder() != 0 && message.holder() != holder_) {
    return Status::invalid({.field = "holder",
                            .limit = "0 or that of the first message, which is " + std::to_string(holder_),
                            .actual = std::to_string(message.holder()),
                            .setting = ""})
        .because(ErrorReason::not_allowed);
  }
  return {};
}

// `rows`: where the rows are, if they are not in `message`.
Status SessionStream::submit(const v1::SessionRequest& message, grpc::ByteBuffer* rows, std::uint64_t bytes,
                             std::shared_ptr<Answer> answer) {
  Result<Database*> database = environment_->gate.get();
  if (!database.ok()) return database.status();
  Status status = check_message_bytes(bytes, environment_->options.message_bytes_max);
  if (!status.ok()) return status;
  if (message.number() == 0) {
    return Status::invalid({.field = "number", .limit = "1 or more", .actual = "0", .setting = ""})
        .because(ErrorReason::missing_field);
  }
  if (status = check_bound(message); !status.ok()) return status;
  std::unique_ptr<Request> request = (*database)->acquire_request();
  status = decode_request(message, rows != nullptr, rows, {(*database)->key_secret(), environment_->options.limits},
                          &request->transactions);
  if (!status.ok()) return status;
  request->identity.session = session_;
  request->identity.holder = holder_;
  request->identity.number = message.number();
  request->identity.acknowledged_through = message.acknowledged_through();
  request->client = client_;
  request->login = caller_.login;
  request->trace = message.traceparent().empty() ? trace_ : environment_->traces.read(message.traceparent(), *client_);
  request->sink = std::move(answer);
  SubmittedRequest submitted = (*database)->submit(std::move(request));
  if (!message.detached()) requests_.add(*database, std::move(submitted));
  return {};
}

void SessionStream::answered(std::uint64_t bytes) {
  --requests_in_flight_;
  request_bytes_ -= bytes;
  if (half_closed_ && requests_in_flight_ == 0) finish_when_sent(grpc::Status::OK);
  read_on();
}

void SessionStream::read_on() {
  if (reading_ || half_closed_ || closing()) return;
  if (requests_in_flight_ >= environment_->options.stream_requests_max) return;
  if (request_bytes_ + unsent_bytes() >= environment_->options.stream_bytes_max) return;
  reading_ = true;
  read(&incoming_);
}

}  // namespace kilokv::server
