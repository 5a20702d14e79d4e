// A unary call: its client, its message, and its end. The answer counts in the AnswerAccount until the call is done.
//
// The call is here from its headers on. A call that is refused for its client, or for want of a place, ends before
// anybody reads its message.
//
// A call ends once: with its answer, or with an error, or when its client goes away or may make no calls any more, or
// when its deadline passes.
//
// Thread safety: all members, because gRPC may run several reactions of one call at the same time.
#pragma once

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include <cstdint>
#include <memory>
#include <mutex>

#include "engine/base/status.hpp"
#include "server/service/call_environment.hpp"

namespace kilokv::server {

class UnaryCall : public grpc::ServerGenericBidiReactor,
                  public WatchedCall,
                  public OpenCall,
                  public AwaitingCall,
                  public std::enable_shared_from_this<UnaryCall> {
 public:
  // Begins to read the message. Keeps the call alive until gRPC no longer uses it. Requires: called once, before gRPC
  // sees the reactor.
  UnaryCall* adopted_by_rpc();

  void end_without_certificate(const Status& status) final {
    if (end_with(status)) on_gone();
  }
  bool end_late(const Status& status, bool is_again) final;
  const std::shared_ptr<ClientCertificate>& certificate() const final { return caller_.certificate; }

 protected:
  UnaryCall(CallContext* context, CallEnvironment* environment, NeedsLogin needs_login = NeedsLogin::yes)
      : environment_(environment),
        caller_(environment->logins.caller_of(*context, needs_login, &place_)),
        client_(caller_.client),
        trace_(environment->traces.of(*context, *client_)),
        needs_login_(needs_login),
        context_(context),
        method_(environment->metrics.method(context->method())),
        begun_us_(method_->begin()) {}

  // Not ok: the call ends before its message is read.
  virtual const Status& refused() const { return caller_.status; }
  // The message has come. Called once, unless the call ends before.
  virtual void on_message(grpc::ByteBuffer* message) = 0;
  // Ends the call, unless it has ended. If too much is unsent for the answer, the call ends with RESOURCE_EXHAUSTED
  // instead. Returns whether the call ended now.
  bool answer(const grpc::ByteBuffer& bytes);
  bool end_with(const Status& status);  // requires: !status.ok()
  bool ended() const;
  // The client has gone away or may make no calls any more, or the deadline has passed, before the call ended.
  virtual void on_gone() {}

  CallEnvironment* const environment_;
  CallAccount::Place place_;  // until gRPC has let go of the call
  const Caller caller_;
  const std::shared_ptr<Client>& client_;  // of the caller
  const TraceParent trace_;                // that the metadata of the call name

 private:
  void OnReadDone(bool ok) final;
  void OnCancel() final;
  void OnDone() final;
  void on_timeout() final {
    environment_->refusals.note_timeout(*client_);
    context_->TryCancel();
  }
  void note_end(const Status& status);  // the caller holds mutex_
  void end_now(const Status& status);   // likewise

  const NeedsLogin needs_login_;
  CallContext* const context_;
  CallMetrics::Method* const method_;
  const std::int64_t begun_us_;
  grpc::ByteBuffer incoming_, answer_;
  mutable std::mutex mutex_;
  bool has_message_ = false;
  bool ended_ = false;
  bool done_ = false;  // gRPC has let go of the call
  std::uint64_t charged_bytes_ = 0;
  std::shared_ptr<void> self_;
};

}  // namespace kilokv::server
