#include "server/service/grpc_server.hpp"

#include <grpcpp/resource_quota.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server_builder.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "server/core/one_line.hpp"
#include "server/edge/descriptor.hpp"
#include "server/edge/listener.hpp"
#include "server/edge/peer_name.hpp"
#include "server/service/channelz.hpp"
#include "server/service/status_map.hpp"
#include "server/service/tls_credentials.hpp"

namespace kilokv::server {

namespace {

int milliseconds_of(DurationUs us) { return static_cast<int>(us / 1000); }

// The bounds of a connection that gRPC itself keeps.
void bound_connections(const ServiceOptions& options, grpc::ServerBuilder* builder) {
  constexpr int kMetadataBytesMax = 8 << 10;
  constexpr int kKeepaliveMs = 60000, kKeepaliveTimeoutMs = 20000;
  constexpr int kPingIntervalMs = 5000;
  for (const auto& [name, value] : {
           std::pair{GRPC_ARG_MAX_CONCURRENT_STREAMS, kCallsPerConnectionMax},
           std::pair{GRPC_ARG_MAX_METADATA_SIZE, kMetadataBytesMax},
           // A connection that says nothing, or only the beginning of HTTP/2, is closed. So is one without calls.
           std::pair{GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, milliseconds_of(options.handshake_us_max)},
           std::pair{GRPC_ARG_MAX_CONNECTION_IDLE_MS, milliseconds_of(options.connection_idle_us_max)},
           // A peer that has vanished is noticed.
           std::pair{GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs},
           std::pair{GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMs},
           std::pair{GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1},
           // Usual clients send a ping every ten seconds or more. gRPC's own limit is five minutes, and would end their
           // connections.
           std::pair{GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, kPingIntervalMs},
           // gRPC would unpack a compressed message whole, before anybody can bound or refuse it: a MiB may become a
           // GiB.
           std::pair{GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0},
           std::pair{GRPC_COMPRESSION_CHANNEL_ENABLED_ALGORITHMS_BITSET, 1 << GRPC_COMPRESS_NONE},
       }) {
    builder->AddChannelArgument(name, value);
  }
  // gRPC lets a stream send ahead what its connection can carry, up to many MiB, also while nobody reads from the
  // stream. Where it has little memory, a few such streams would fill it.
  if (!options.windows_grow()) {
    builder->AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);
    builder->AddChannelArgument(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, static_cast<int>(options.ahead_bytes()));
  }
}

void log_connections(const Connections::Report& report) {
  if (report.refused + report.cut_off > 0) {
    spdlog::warn("kilokvd refused or cut off connections refused={} cut_off={} last_address={} reason=\"{}\"",
                 report.refused, report.cut_off, report.address, report.why);
  }
  if (report.crowds > 0) {
    spdlog::warn(
        "kilokvd reads the connections of an address in turns times={} last_address={} reason=\"many of them had "
        "sent calls, and connections of others waited\"",
        report.crowds, report.crowd);
  }
}

void log_end(const ConnectionEnd& end, const std::string& user) {
  spdlog::debug("kilokvd connection ended peer={}{} open_seconds={:.3f} received_bytes={} reason=\"{}\"", end.peer,
                user.empty() ? "" : " user=" + user, static_cast<double>(end.age_ms) * 1e-3, end.received_bytes,
                one_line(end.why));
}

void log_tls(TlsFiles::Level level, const std::string& what, const std::string& detail) {
  const auto of_log = level == TlsFiles::Level::error     ? spdlog::level::err
                      : level == TlsFiles::Level::warning ? spdlog::level::warn
                                                          : spdlog::level::info;
  spdlog::log(of_log, "{} detail=\"{}\"", what, one_line(detail));
}

std::int64_t unix_seconds_now() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::seconds>(now).count();
}

}  // namespace

Status GrpcServer::choose_credentials(const TlsOptions& options, KiloKvService* service) {
  if (!options.enabled()) {
    credentials_ = grpc::InsecureServerCredentials();
    return {};
  }
  Result<std::unique_ptr<TlsFiles>> files = TlsFiles::open(options, unix_seconds_now, log_tls);
  if (!files.ok()) return files.status();
  tls_files_ = std::move(*files);
  const auto certificates = std::make_shared<ClientCertificates>();
  tls_files_->start([certificates, service](const TlsContent& content) {
    if (content.clients == nullptr) return;
    service->end_without_certificate([&](ClientCertificate* shown) {
      return certificates->check_again(content.clients, shown, std::chrono::steady_clock::now());
    });
  });
  if (!options.client_ca_file.empty()) {
    service->logins().check_certificates_with([certificates, files = tls_files_](const grpc::AuthContext& peer) {
      return certificates->check(files->current()->clients, peer, std::chrono::steady_clock::now());
    });
    service->logins().check_page_certificates_with([certificates, files = tls_files_](const PageCaller& caller) {
      return certificates->check(files->current()->clients, caller.certificate, caller.issuers,
                                 std::chrono::steady_clock::now());
    });
  }
  credentials_ = tls_credentials(tls_files_);
  return {};
}

Result<std::unique_ptr<GrpcServer>> GrpcServer::start(const std::string& listen, KiloKvService* service,
                                                      const ServiceOptions& options) {
  const Result<std::uint32_t> connections_max = raise_descriptor_limit(options.connections_max);
  if (!connections_max.ok()) return connections_max.status();
  if (*connections_max < options.connections_max) {
    spdlog::warn(
        "kilokvd takes fewer connections than --connections-max, because its limit of open files is low "
        "connections={} connections_max={} files_needed={} action=\"raise the limit (ulimit -n, or LimitNOFILE in "
        "the unit of systemd), or lower --connections-max\"",
        *connections_max, options.connections_max, std::uint64_t{options.connections_max} * 4);
  }
  std::unique_ptr<GrpcServer> started(new GrpcServer());
  if (Status status = started->choose_credentials(options.tls, service); !status.ok()) return status;
  Result<Listener> listener = listen_on(listen);
  if (!listener.ok()) return listener.status();
  grpc::ServerBuilder builder;
  using AcceptorType = grpc::ServerBuilder::experimental_type::ExternalConnectionType;
  const std::shared_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor =
      builder.experimental().AddExternalConnectionAcceptor(AcceptorType::FROM_FD, started->credentials_);
  builder.RegisterCallbackGenericService(service);
  builder.SetMaxReceiveMessageSize(static_cast<int>(options.message_bytes_max * kMessageSlack));
  builder.SetMaxSendMessageSize(-1);
  grpc::ResourceQuota quota("kilokvd");
  quota.Resize(options.grpc_memory_max);
  builder.SetResourceQuota(quota);
  bound_connections(options, &builder);
  started->server_ = builder.BuildAndStart();
  if (started->server_ == nullptr) return Status(StatusCode::internal, "gRPC does not start");
  started->port_ = listener->port;
  started->endpoint_ = listener->endpoint;
  started->public_ = !listener->loopback_only;
  const ConnectionLimits limits{.connections_max = *connections_max,
                                .connections_per_address_max = options.connections_per_address_max,
                                .message_bytes_max = options.message_bytes_max,
                                .messages_more = kMessageSlack,  // a message that is too long is refused by name
                                .unread_bytes_max = options.unread_bytes_max(),
                                .refused_calls_max = options.refused_calls_max(),
                                .calls_max = kCallsPerConnectionMax,
                                .cancels_max = options.connection_cancels_max,
                                .opens_max = options.connection_opens_max};
  Connections::Callbacks callbacks;
  callbacks.hand_over = [acceptor](int socket, Descriptor connection) {
    grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters parameters;
    parameters.listener_fd = socket;
    parameters.fd = connection.release();
    acceptor->HandleNewConnection(&parameters);
  };
  Logins* const logins = &service->logins();
  callbacks.inspect = [channelz = std::make_shared<Channelz>()](const std::string& peer) {
    return channelz->counts_of(peer);
  };
  static_assert(PeerUse::kLateMs == AwaitedMessages::kLateMs && PeerUse::kNever == AwaitedMessages::kNever);
  callbacks.use_of = [logins](const std::string& peer) {
    const ConnectionUse use = logins->use_of(peer);
    return PeerUse{.accounted_bytes = use.accounted_bytes,
                   .message_bytes = use.message_bytes,
                   .forgiven_bytes = use.forgiven_bytes,
                   .refused_calls = use.refused_calls,
                   .calls_without_login = use.calls_without_login,
                   .late_since_ms = use.late_since_ms};
  };
  callbacks.end_late_calls = [service](const Connections::Late& late) {
    service->end_late_calls(late.peer, late.bytes, late.is_again);
  };
  callbacks.take_calls_without_login = [logins] {
    std::vector<Connections::AddressCalls> calls;
    for (const auto& [name, count] : logins->take_calls_without_login()) {
      calls.push_back({limited_address(name), count});
    }
    return calls;
  };
  callbacks.take_ended = [logins] { return logins->take_lost_connections(); };
  callbacks.on_open = [](const std::string& peer) { spdlog::debug("kilokvd accepted a connection peer={}", peer); };
  callbacks.on_end = [logins](const ConnectionEnd& end) {
    if (spdlog::default_logger_raw()->should_log(spdlog::level::debug)) log_end(end, logins->user_of(end.peer));
    logins->forget_connection(end.peer);
  };
  callbacks.on_count = [environment = service->environment()](std::uint32_t open) {
    environment->open_connections.store(open, std::memory_order_relaxed);
  };
  callbacks.on_report = log_connections;
  started->connections_ = std::make_unique<Connections>(std::move(*listener), limits, std::move(callbacks));
  service->environment()->connections = [open = started->connections_.get()] { return open->list(); };
  return started;
}

void GrpcServer::accept() { connections_->start(); }

GrpcServer::~GrpcServer() {
  shut_down(std::chrono::milliseconds(0));
  if (tls_files_ != nullptr) tls_files_->stop();  // its thread uses the service, and gRPC may hold the files for longer
}

void GrpcServer::shut_down(std::chrono::milliseconds grace) {
  if (server_ == nullptr) return;  // it never started
  if (connections_ != nullptr) connections_->stop();
  server_->Shutdown(std::chrono::system_clock::now() + grace);
  server_->Wait();
}

}  // namespace kilokv::server
