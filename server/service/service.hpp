// The KiloKV service. Each handler validates its message, calls the database, and maps the error. It does nothing else.
//
// Handlers run on gRPC's threads and never block. A unary RPC ends with its answer. It also ends when its client goes
// away, or when its deadline passes. Its transactions then end too, unless they are in a session or detached. Thread
// safety: all members. The database that is passed to serve() must outlive every RPC.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "kilokv/v1/kilokv.grpc.pb.h"
#include "server/service/call_environment.hpp"
#include "server/service/options.hpp"
#include "server/service/rare_line.hpp"
#include "server/service/session_stream.hpp"

namespace kilokv::server {

// Every handler gets raw bytes (message_buffer.hpp says why).
using KiloKvMethods = v1::KiloKV::WithRawCallbackMethod_Execute<
    v1::KiloKV::WithRawCallbackMethod_UploadReadSet<v1::KiloKV::WithRawCallbackMethod_ExecuteBatch<
        v1::KiloKV::WithRawCallbackMethod_Session<v1::KiloKV::WithRawCallbackMethod_OpenSession<
            v1::KiloKV::WithRawCallbackMethod_KeepSessionAlive<v1::KiloKV::WithRawCallbackMethod_CloseSession<
                v1::KiloKV::WithRawCallbackMethod_Get<v1::KiloKV::WithRawCallbackMethod_Scan<
                    v1::KiloKV::WithRawCallbackMethod_ListParked<v1::KiloKV::WithRawCallbackMethod_Cancel<
                        v1::KiloKV::WithRawCallbackMethod_Status<v1::KiloKV::WithRawCallbackMethod_ChangeAccess<
                            v1::KiloKV::WithRawCallbackMethod_ListAccess<v1::KiloKV::Service>>>>>>>>>>>>>>;

// What Status shows about the program, even when there is no database yet. The values are those of the flags with these
// names.
struct ServerInfo {
  std::string version;
  std::string strategy;
  std::uint32_t threads = 0;
  double shadow_rate = 0;
  std::uint64_t memory_limit = 0;                      // the one that is in force
  std::uint64_t storage_bound = 0, process_bytes = 0;  // owners of memory that the service does not know
  std::vector<std::pair<std::string, std::string>>
      settings;  // name and value of each setting that not all strategies have
};

class KiloKvService final : public KiloKvMethods {
 public:
  KiloKvService(ServiceOptions options, ServerInfo info);

  // Begins to serve requests. Before, every request gets UNAVAILABLE, "recovering".
  void serve(Database* database) { environment_.gate.open(database); }
  // Stops serving. After this, every request gets UNAVAILABLE, "draining". Streams end when their queued answers are
  // sent.
  void close();
  // Lets Status say that other machines reach the server without TLS or without logins.
  void set_insecure() { insecure_.store(true, std::memory_order_relaxed); }
  Logins& logins() { return environment_.logins; }
  // Ends the calls of all clients whose certificate is not accepted any more, and then their connections. Called once a
  // second.
  void end_without_certificate(const CertificateCheck& check);
  CallEnvironment* environment() { return &environment_; }
  // Bytes of answers that clients have not taken yet, on all calls.
  std::uint64_t unsent_answer_bytes() const { return environment_.answers.unsent_bytes(); }

  grpc::ServerUnaryReactor* Execute(grpc::CallbackServerContext* context, const grpc::ByteBuffer* message,
                                    grpc::ByteBuffer* answer) override;
  grpc::ServerUnaryReactor* UploadReadSet(grpc::CallbackServerContext* context, const grpc::ByteBuffer* message,
                                          grpc::ByteBuffer* answer) override;
  grpc::ServerWriteReactor<grpc::ByteBuffer>* ExecuteBatch(grpc::CallbackServerContext* context,
                                                           const grpc::ByteBuffer* request) override;
  grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* Session(grpc::CallbackServerContext* context) override;
  grpc::ServerUnaryReactor* OpenSession(grpc::CallbackServerContext* context, const grpc::ByteBuffer* message,
                                        grpc::ByteBuffer* answer) override;
  grpc::ServerUnaryReactor* KeepSessionAlive(grpc::CallbackServerContext* context, const grpc::ByteBuffer* message,
                                             grpc::ByteBuffer* answer) override;
  grpc::ServerUnaryReactor* CloseSession(grpc::CallbackServerContext* context, const grpc::ByteBuffer* message,
                                         grpc::ByteBuffer* answer) override;
  grpc::ServerUnaryReactor* Get(grpc::CallbackServerContext* context, const grpc::ByteBuffer* message,
                                grpc::ByteBuffer* answer) override;
  grpc::ServerUnaryReactor* Scan(grpc::CallbackServerContext* context, const grpc::ByteBuffer* message,
                                 grpc::ByteBuffer* answer) override;
  grpc::ServerUnaryReactor* ListParked(grpc::CallbackServerContext* context, const grpc::ByteBuffer* message,
                                       grpc::ByteBuffer* answer) override;
  grpc::ServerUnaryReactor* Cancel(grpc::CallbackServerContext* context, const grpc::ByteBuffer* message,
                                   grpc::ByteBuffer* answer) override;
  grpc::ServerUnaryReactor* Status(grpc::CallbackServerContext* context, const grpc::ByteBuffer* message,
                                   grpc::ByteBuffer* answer) override;

  grpc::ServerUnaryReactor* ChangeAccess(grpc::CallbackServerContext* context, const grpc::ByteBuffer* message,
                                         grpc::ByteBuffer* answer) override;
  grpc::ServerUnaryReactor* ListAccess(grpc::CallbackServerContext* context, const grpc::ByteBuffer* message,
                                       grpc::ByteBuffer* answer) override;

 private:
  void end_without_login(const Database& database);
  kilokv::Status place_for(SessionStream* stream);
  void note_denied(const std::string& user, const std::string& peer);
  void fill_memory(const DatabaseStatus& status, v1::MemorySection* section) const;

  CallEnvironment environment_;
  const ServerInfo info_;
  const std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
  std::atomic<bool> insecure_{false};
  RareLine denied_;
  SharedLimit streams_limit_;
};

}  // namespace kilokv::server
