// The KiloKV service. Each handler validates its message, calls the database, and maps the error. It does nothing else.
//
// For gRPC it is a generic service: gRPC then passes a call on when its headers are there, and not only when its
// message is. So the service knows all calls, and refuses a call without a login before its message is read. Every
// handler reads and writes raw bytes (message_buffer.hpp says why).
//
// Handlers run on gRPC's threads and never block. A unary RPC ends with its answer. It also ends when its client goes
// away, or when its deadline passes. Its transactions then end too, unless they are in a session or detached. Thread
// safety: all members. The database that is passed to serve() must outlive every RPC.
#pragma once

#include <grpcpp/generic/async_generic_service.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "kilokv/v1/kilokv.grpc.pb.h"
#include "server/service/backup_streamer.hpp"
#include "server/service/call_environment.hpp"
#include "server/service/health.hpp"
#include "server/service/options.hpp"
#include "server/service/rare_line.hpp"
#include "server/service/server_report.hpp"
#include "server/service/session_stream.hpp"
#include "server/service/watch_streamer.hpp"

namespace kilokv::server {

// What Status shows about the program, even when there is no database yet. The values are those of the flags with these
// names.
struct ServerInfo {
  std::string version;
  std::string strategy;
  std::uint32_t threads = 0;
  double shadow_rate = 0;
  bool read_only = false;
  std::uint64_t memory_limit = 0;                                      // the one that is in force
  std::uint64_t storage_bound = 0, http_bound = 0, process_bytes = 0;  // owners of memory that it does not know
  std::vector<std::pair<std::string, std::string>>
      settings;  // name and value of each setting that not all strategies have
};

class KiloKvService final : public grpc::CallbackGenericService {
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
  // Ends the calls of this peer whose messages are late. `bytes`: what they may hold of these.
  void end_late_calls(const std::string& peer, std::uint64_t bytes, bool is_again);
  // What the health check answers. Any thread.
  void set_serving(bool serving) { health_.set_serving(serving); }
  CallEnvironment* environment() { return &environment_; }
  const ServerInfo& info() const { return info_; }
  // The state of the server now. Any thread, and also after close().
  ServerReport report();
  // The same as the message of the call Status.
  v1::StatusResponse status();
  // Why the server accepts no new requests: UNAVAILABLE, with the reason RECOVERING, DRAINING, or FAILED, after which
  // the process ends. Ok: it does. It waits for nothing.
  kilokv::Status readiness() const;
  // Bytes of answers that clients have not taken yet, on all calls.
  std::uint64_t unsent_answer_bytes() const { return environment_.answers.unsent_bytes(); }

  // The calls of the health check and of reflection come here, too. Calls of methods that the server does not have are
  // refused, with the name of the method.
  grpc::ServerGenericBidiReactor* CreateReactor(CallContext* context) override;

 private:
  using Begin = grpc::ServerGenericBidiReactor* (KiloKvService::*)(CallContext* context);
  static const std::unordered_map<std::string_view, Begin>& methods();

  grpc::ServerGenericBidiReactor* Execute(CallContext* context);
  grpc::ServerGenericBidiReactor* UploadReadSet(CallContext* context);
  grpc::ServerGenericBidiReactor* ExecuteBatch(CallContext* context);
  grpc::ServerGenericBidiReactor* Session(CallContext* context);
  grpc::ServerGenericBidiReactor* OpenSession(CallContext* context);
  grpc::ServerGenericBidiReactor* KeepSessionAlive(CallContext* context);
  grpc::ServerGenericBidiReactor* CloseSession(CallContext* context);
  grpc::ServerGenericBidiReactor* AttachSession(CallContext* context);
  grpc::ServerGenericBidiReactor* Get(CallContext* context);
  grpc::ServerGenericBidiReactor* Scan(CallContext* context);
  grpc::ServerGenericBidiReactor* ListParked(CallContext* context);
  grpc::ServerGenericBidiReactor* Cancel(CallContext* context);
  grpc::ServerGenericBidiReactor* Status(CallContext* context);
  grpc::ServerGenericBidiReactor* ChangeAccess(CallContext* context);
  grpc::ServerGenericBidiReactor* ListAccess(CallContext* context);
  grpc::ServerGenericBidiReactor* ListHotKeys(CallContext* context);
  grpc::ServerGenericBidiReactor* ListSlow(CallContext* context);
  grpc::ServerGenericBidiReactor* ListSessions(CallContext* context);
  grpc::ServerGenericBidiReactor* ListConnections(CallContext* context);
  grpc::ServerGenericBidiReactor* SetLogLevel(CallContext* context);
  grpc::ServerGenericBidiReactor* Backup(CallContext* context);
  grpc::ServerGenericBidiReactor* Watch(CallContext* context);

  void end_without_login(const Database& database);
  kilokv::Status place_for(AnswerStream* stream);
  void note_attach(const Login* login, const std::string& peer, const HeldSession& session, BatchNumber batch);
  void note_attach_refused(const Login* login, const std::string& peer, const SessionId& session,
                           const kilokv::Status& status);
  std::vector<MemoryOwner> memory_owners(const DatabaseStatus& status) const;
  static void note_denied(RareLine* line, const char* what, const std::string& user, const std::string& peer);

  CallEnvironment environment_;
  Health health_;
  const ServerInfo info_;
  const std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
  std::atomic<bool> insecure_{false};
  static constexpr std::uint32_t kAttachLinesPerSecond = 100;
  RareLine denied_, level_denied_, late_calls_, attaches_refused_;
  FewLines attaches_{kAttachLinesPerSecond};
  SharedLimit streams_limit_;
  BackupStreamer backups_{&environment_};
  WatchStreamer watches_{&environment_};
};

}  // namespace kilokv::server
