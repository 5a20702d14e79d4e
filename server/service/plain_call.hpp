// A unary call that runs no transaction, and how it begins: for the handlers of most calls (service.cpp).
//
// Thread safety: that of UnaryCall.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "server/core/access/access_check.hpp"
#include "server/service/message_buffer.hpp"
#include "server/service/unary_call.hpp"

namespace kilokv::server {

using KStatus = kilokv::Status;  // the class of the handlers has a method `Status`

// A unary call that runs no transaction: its messages, and its end. Code that still has to answer holds the call by
// shared_ptr.
template <class Request, class Response>
class PlainCall final : public UnaryCall {
 public:
  // `handle` ends the call at once or later, and reads the request only before it returns: the parsed message does not
  // outlive it, because the call may wait long for its end.
  using Handle = std::function<void(const std::shared_ptr<PlainCall>&)>;
  PlainCall(CallContext* context, CallEnvironment* environment, Handle handle)
      : UnaryCall(context, environment), handle_(std::move(handle)) {}

  void end(const KStatus& status) {
    if (ended()) return;  // the client has gone away
    if (status.ok()) {
      answer(serialize_message(response));
    } else {
      end_with(status);
    }
    Response().Swap(&response);  // the call may stay until its client takes the answer
  }
  // Ends the call with an error, before anything ran.
  void refuse(const KStatus& status) { end_with(status.as_not_run()); }

  const std::shared_ptr<Client>& client() const { return client_; }
  const Caller& caller() const { return caller_; }
  // What the caller may do; null on a server without logins, where everybody may do everything. PERMISSION_DENIED: the
  // login does not count any more. UNAUTHENTICATED: its token has expired.
  Result<std::shared_ptr<const Rights>> rights(const Database& database) const {
    if (caller_.login == nullptr) return std::shared_ptr<const Rights>();
    return rights_at(*database.access().latest(), *caller_.login, database.time_of_day());
  }
  // PERMISSION_DENIED, unless the caller's rights are enough. `right`: its name, for the message.
  template <class Enough>
  KStatus need(const Database& database, const char* right, const std::string& field, const Enough& enough) const {
    const Result<std::shared_ptr<const Rights>> rights = this->rights(database);
    if (!rights.ok()) return rights.status();
    if (*rights == nullptr || enough(**rights)) return {};
    return right_missing(caller_.login->user, right, field);
  }
  KStatus need_metrics(const Database& database, const std::string& field) const {
    return need(database, "metrics", field, [](const Rights& rights) { return rights.metrics; });
  }
  KStatus need_admin(const Database& database, const std::string& field) const {
    return need(database, "admin", field, [](const Rights& rights) { return rights.admin; });
  }
  bool is_over() const { return ended(); }

  Request request;
  Response response;

 private:
  void on_message(grpc::ByteBuffer* message) override {
    const auto self = std::static_pointer_cast<PlainCall>(shared_from_this());
    const KStatus refused =
        environment_->decode_by(client_, message, [self](grpc::ByteBuffer* taken) { self->decode(taken); });
    if (!refused.ok()) refuse(refused);
  }
  void decode(grpc::ByteBuffer* message) {
    if (ended()) return;
    const ServiceOptions& options = environment_->options;
    KStatus status = check_login();
    if (status.ok()) {
      status = parse_message(message, options.message_bytes_max, {.transactions = options.limits}, &request);
    }
    if (status.ok()) {
      handle_(std::static_pointer_cast<PlainCall>(shared_from_this()));
    } else {
      refuse(status);
    }
    Request().Swap(&request);
  }
  // The login counted when the headers came, and the message may have come much later.
  KStatus check_login() const {
    const Result<Database*> database = environment_->gate.get();
    return database.ok() ? rights(**database).status() : KStatus();  // without a database, nothing is allowed
  }

  const Handle handle_;
};

// A call begins, which `handle` answers.
template <class Request, class Response, class Handle>
grpc::ServerGenericBidiReactor* take(CallEnvironment* environment, CallContext* context, const Handle& handle) {
  return std::make_shared<PlainCall<Request, Response>>(context, environment, handle)->adopted_by_rpc();
}

// The same for a call that needs the database. `handle` also gets the database.
template <class Request, class Response, class Handle>
grpc::ServerGenericBidiReactor* take_for_database(CallEnvironment* environment, CallContext* context,
                                                  const Handle& handle) {
  return take<Request, Response>(environment, context, [environment, handle](const auto& call) {
    const Result<Database*> database = environment->gate.get();
    if (!database.ok()) return call->refuse(database.status());
    handle(call, *database);
  });
}

}  // namespace kilokv::server
