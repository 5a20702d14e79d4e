// Tells ThreadSanitizer the order that gRPC and RocksDB keep between threads. Only builds with -fsanitize=thread have
// this file.
//
// The libraries of Debian are not instrumented, so ThreadSanitizer does not see their locks and atomics. Without this
// file it reports a race wherever one thread hands a call to gRPC and another thread goes on with it. To suppress such
// reports would also hide races of our own reactions, which run on the same threads.
//
// So the functions here take the places of gRPC's functions of the same name, as the program comes first where the
// dynamic linker looks. Each says "what was done until here comes before ...", and calls gRPC's function:
// - an operation is started with a tag, and it is completed, before a completion queue returns that tag;
// - a reaction is passed to gRPC's executor, before a thread of the executor runs it;
// - each reaction of a call on the server ends, before the call's OnDone() begins;
// - a verifier of certificates, or a check of calls, is made before it is used, and used before it is destroyed: gRPC
//   counts the users;
// - a thread unlocks an absl::Mutex of gRPC's inline functions, before another thread locks it.
// No other order is said: a race between two reactions, or between a reaction and a thread of the server, is reported.
//
// The handler of calls in bytes is a template of gRPC's headers. gRPC's library has a copy, which is not instrumented.
// The copy of this file takes its place, so ThreadSanitizer sees how it counts the reactions of a call.
//
// When RocksDB's table in memory is full, a thread of RocksDB reads it and writes a file. What this thread reads is not
// looked at. Other threads have filled the table, under atomics that are not instrumented. ThreadSanitizer has
// forgotten the stacks of these writes by then, so no rule of tsan.supp would leave out the reports.
//
// Thread safety: any thread.
#include <absl/synchronization/mutex.h>
#include <dlfcn.h>
#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <grpcpp/impl/codegen/server_callback_handlers.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/client_callback.h>
#include <grpcpp/support/server_callback.h>
#include <sanitizer/tsan_interface.h>

#include <utility>

// A function with this mark is not looked at: a thread reads there what it has not yet acquired.
#define KILOKV_NOT_WATCHED __attribute__((no_sanitize("thread")))

namespace {

// The next definition of a function, which is gRPC's.
template <class Function>
KILOKV_NOT_WATCHED Function next_of(const char* name) {
  return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

KILOKV_NOT_WATCHED grpc_event seen(grpc_event event) {
  if (event.type == GRPC_OP_COMPLETE) __tsan_acquire(event.tag);
  return event;
}

}  // namespace

extern "C" {

// grpc_cq_end_op() of gRPC's own sources: ends an operation. The parameters are not looked at, and `error` is passed as
// the address of an absl::Status.
#define KILOKV_END_OPERATION \
  "_Z14grpc_cq_end_opP21grpc_completion_queuePvN4absl7debian36StatusEPFvS1_P18grpc_cq_completionES1_S6_b"
void kilokv_end_operation(void* queue, void* tag, void* error, void* done, void* done_argument, void* storage,
                          bool is_internal) __asm__(KILOKV_END_OPERATION);

KILOKV_NOT_WATCHED void kilokv_end_operation(void* queue, void* tag, void* error, void* done, void* done_argument,
                                             void* storage, bool is_internal) {
  static const auto kNext = next_of<decltype(&kilokv_end_operation)>(KILOKV_END_OPERATION);
  __tsan_release(tag);
  kNext(queue, tag, error, done, done_argument, storage, is_internal);
}

KILOKV_NOT_WATCHED grpc_call_error grpc_call_start_batch(grpc_call* call, const grpc_op* operations, size_t count,
                                                         void* tag, void* reserved) {
  static const auto kNext = next_of<decltype(&grpc_call_start_batch)>("grpc_call_start_batch");
  __tsan_release(tag);
  return kNext(call, operations, count, tag, reserved);
}

KILOKV_NOT_WATCHED grpc_event grpc_completion_queue_next(grpc_completion_queue* queue, gpr_timespec deadline,
                                                         void* reserved) {
  static const auto kNext = next_of<decltype(&grpc_completion_queue_next)>("grpc_completion_queue_next");
  return seen(kNext(queue, deadline, reserved));
}

KILOKV_NOT_WATCHED grpc_event grpc_completion_queue_pluck(grpc_completion_queue* queue, void* tag,
                                                          gpr_timespec deadline, void* reserved) {
  static const auto kNext = next_of<decltype(&grpc_completion_queue_pluck)>("grpc_completion_queue_pluck");
  return seen(kNext(queue, tag, deadline, reserved));
}
}

extern "C" {

// rocksdb::FlushJob::WriteLevel0Table(), which returns a rocksdb::Status at an address of its caller. It calls no code
// of ours, but for the file systems (server/storage/store_file_system.cpp and fault_file_system.cpp).
#define KILOKV_FLUSH "_ZN7rocksdb8FlushJob16WriteLevel0TableEv"
void* kilokv_flush(void* status, void* job) __asm__(KILOKV_FLUSH);

void AnnotateIgnoreReadsBegin(const char* file, int line);
void AnnotateIgnoreReadsEnd(const char* file, int line);

KILOKV_NOT_WATCHED void* kilokv_flush(void* status, void* job) {
  static const auto kNext = next_of<decltype(&kilokv_flush)>(KILOKV_FLUSH);
  AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
  void* const result = kNext(status, job);
  AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
  return result;
}
}

namespace {

// All verifiers come from one class of gRPC, so they have the same functions.
decltype(grpc_tls_certificate_verifier_external::verify) next_verify = nullptr;
decltype(grpc_tls_certificate_verifier_external::destruct) next_destruct = nullptr;

KILOKV_NOT_WATCHED int verify(void* verifier, grpc_tls_custom_verification_check_request* request,
                              grpc_tls_on_custom_verification_check_done_cb callback, void* callback_argument,
                              grpc_status_code* status, char** details) {
  const int is_done = next_verify(verifier, request, callback, callback_argument, status, details);
  __tsan_release(verifier);
  return is_done;
}

KILOKV_NOT_WATCHED void destruct(void* verifier) {
  __tsan_acquire(verifier);
  next_destruct(verifier);
}

}  // namespace

extern "C" KILOKV_NOT_WATCHED grpc_tls_certificate_verifier* grpc_tls_certificate_verifier_external_create(
    grpc_tls_certificate_verifier_external* verifier) {
  static const auto kNext = next_of<decltype(&grpc_tls_certificate_verifier_external_create)>(
      "grpc_tls_certificate_verifier_external_create");
  static const bool kNoted = [verifier] {
    next_verify = verifier->verify;
    next_destruct = verifier->destruct;
    return true;
  }();
  static_cast<void>(kNoted);
  verifier->verify = verify;
  verifier->destruct = destruct;
  return kNext(verifier);
}

namespace absl {
ABSL_NAMESPACE_BEGIN

// The linker keeps these two inside the program (library_order.map), so the libraries go on with their own.
KILOKV_NOT_WATCHED void Mutex::Lock() {
  static const auto kNext = next_of<void (*)(Mutex*)>("_ZN4absl7debian35Mutex4LockEv");
  kNext(this);
  __tsan_acquire(this);
}

KILOKV_NOT_WATCHED void Mutex::Unlock() {
  static const auto kNext = next_of<void (*)(Mutex*)>("_ZN4absl7debian35Mutex6UnlockEv");
  __tsan_release(this);
  kNext(this);
}

ABSL_NAMESPACE_END
}  // namespace absl

namespace grpc::internal {

// This one is looked at (see the head of this file).
template class CallbackBidiHandler<ByteBuffer, ByteBuffer>;

namespace {

using ScheduleOnDone = void (*)(ServerCallbackCall*, bool);
using CallOnCancel = void (*)(ServerCallbackCall*, ServerReactor*);
using InternalScheduleOnDone = void (*)(ClientReactor*, Status);

KILOKV_NOT_WATCHED void schedule_on_done(ServerCallbackCall* call, bool at_once) {
  static const auto kNext = next_of<ScheduleOnDone>("_ZN4grpc8internal18ServerCallbackCall14ScheduleOnDoneEb");
  kNext(call, at_once);
}

// The executor gets this one instead of the call.
class EndOfServerCall final : public ServerCallbackCall {
 public:
  KILOKV_NOT_WATCHED explicit EndOfServerCall(ServerCallbackCall* call) : call_(call) {}

 private:
  KILOKV_NOT_WATCHED ServerReactor* reactor() override { return nullptr; }
  KILOKV_NOT_WATCHED void CallOnDone() override {
    __tsan_acquire(call_);
    schedule_on_done(call_, true);
    delete this;
  }

  ServerCallbackCall* const call_;
};

class CancelOfServerCall final : public ServerReactor {
 public:
  KILOKV_NOT_WATCHED CancelOfServerCall(ServerReactor* reactor, void* count) : reactor_(reactor), count_(count) {}
  KILOKV_NOT_WATCHED void OnDone() override {}
  KILOKV_NOT_WATCHED void OnCancel() override {
    __tsan_acquire(reactor_);
    reactor_->OnCancel();
    __tsan_release(count_);
    delete this;
  }

 private:
  ServerReactor* const reactor_;
  void* const count_;  // of the reactions that the call waits for
};

class EndOfClientCall final : public ClientReactor {
 public:
  KILOKV_NOT_WATCHED explicit EndOfClientCall(ClientReactor* reactor) : reactor_(reactor) {}
  KILOKV_NOT_WATCHED void OnDone(const Status& status) override {
    __tsan_acquire(reactor_);
    reactor_->OnDone(status);
    delete this;
  }

 private:
  ClientReactor* const reactor_;
};

}  // namespace

// gRPC counts the reactions of a call, partly in code that is not instrumented.
KILOKV_NOT_WATCHED void ServerCallbackCall::ScheduleOnDone(bool inline_ondone) {
  __tsan_acquire(&callbacks_outstanding_);
  if (inline_ondone) return schedule_on_done(this, true);
  auto* const end = new EndOfServerCall(this);
  __tsan_release(this);
  schedule_on_done(end, false);
}

KILOKV_NOT_WATCHED void ServerCallbackCall::CallOnCancel(ServerReactor* reactor) {
  static const auto kNext =
      next_of<internal::CallOnCancel>("_ZN4grpc8internal18ServerCallbackCall12CallOnCancelEPNS0_13ServerReactorE");
  __tsan_acquire(&on_cancel_conditions_remaining_);
  if (reactor->InternalInlineable()) return kNext(this, reactor);
  auto* const cancel = new CancelOfServerCall(reactor, &callbacks_outstanding_);
  __tsan_release(reactor);
  kNext(this, cancel);
}

KILOKV_NOT_WATCHED void ClientReactor::InternalScheduleOnDone(Status s) {
  static const auto kNext =
      next_of<internal::InternalScheduleOnDone>("_ZN4grpc8internal13ClientReactor22InternalScheduleOnDoneENS_6StatusE");
  auto* const end = new EndOfClientCall(this);
  __tsan_release(this);
  kNext(end, std::move(s));
}

}  // namespace grpc::internal
