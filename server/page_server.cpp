// Role: see page_server.hpp.
#include "server/page_server.hpp"

#include <spdlog/spdlog.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>

#include "server/core/one_line.hpp"
#include "server/monitoring/sources.hpp"
#include "server/service/page_contexts.hpp"
#include "server/version.hpp"

namespace kilokv::server {
namespace {

// Storage and gRPC need descriptors, too.
std::uint32_t connections_max_of(const ServerOptions& options) {
  constexpr rlim_t kPart = 16;
  rlimit limit = {};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return options.http.http_connections_max;
  return static_cast<std::uint32_t>(std::min<rlim_t>(options.http.http_connections_max, limit.rlim_cur / kPart));
}

// A browser opens six connections, and its console does not load without them.
constexpr std::uint32_t kOfBrowser = 8;

HttpLimits limits_of(const ServerOptions& options) {
  const ServiceOptions& service = options.service;
  const std::uint32_t connections_max = connections_max_of(options);
  return {.connections_max = connections_max,
          .connections_per_address_max = std::min(
              {service.connections_per_address_max, connections_max, std::max(connections_max / 2, kOfBrowser)}),
          .opens_max = service.connection_opens_max,
          .head_us_max = service.handshake_us_max,
          .idle_us_max = service.connection_idle_us_max,
          .answer_us_max = service.answer_us_max};
}

void log_refused(std::uint64_t refused, std::uint64_t made_room, const std::string& address, const std::string& why) {
  spdlog::warn("kilokvd closed connections of HTTP refused={} replaced={} last_address={} reason=\"{}\"", refused,
               made_room, address, why);
}

}  // namespace

PageServer::PageServer(const ServerOptions& options, KiloKvService* service, const GrpcServer* grpc,
                       const LogMetrics* log)
    : options_(options), service_(service), grpc_(grpc), log_(log), pages_(service) {}

Result<std::unique_ptr<PageServer>> PageServer::open(const ServerOptions& options, KiloKvService* service,
                                                     const GrpcServer* grpc, const LogMetrics* log) {
  if (!options.http.enabled()) return std::unique_ptr<PageServer>();
  Result<Listener> listener = listen_on(options.http.http_listen, "--http-listen");
  if (!listener.ok()) {
    if (options.given.contains("http-listen")) return listener.status();
    spdlog::warn("kilokvd serves no pages over HTTP reason=\"{}\" action=\"give --http-listen another port, or off\"",
                 one_line(listener.status().message()));
    return std::unique_ptr<PageServer>();
  }
  std::unique_ptr<PageServer> server(new PageServer(options, service, grpc, log));
  server->add_sources();
  if (options.http.console) server->make_console(*listener);
  server->make_server(std::move(*listener));
  return server;
}

// Calls that are under way give pages to the server, so they end first.
PageServer::~PageServer() { end_calls(); }

void PageServer::make_console(const Listener& listener) {
  const std::string& listen = options_.http.http_listen;
  calls_ = std::make_unique<LocalCalls>(grpc_->server(), &service_->logins());
  console_ = std::make_unique<Console>(ConsoleOptions{.version = kVersion,
                                                      .listen_host = listen.substr(0, listen.rfind(':')),
                                                      .port = listener.port,
                                                      .has_tls = grpc_->tls_files() != nullptr,
                                                      .has_kill = options_.http.console_kill},
                                       &pages_, service_, calls_.get());
}

void PageServer::make_server(Listener listener) {
  const auto is_for_console = [this](const PageRequest& request) {
    return console_ != nullptr && Console::has(request);
  };
  HttpServer::Callbacks callbacks;
  callbacks.page = [this, is_for_console](const PageRequest& request) {
    return is_for_console(request) ? console_->page(request) : pages_.page(request);
  };
  callbacks.page_at_once = [this, is_for_console](const PageRequest& request) {
    return is_for_console(request) ? console_->page_at_once(request) : pages_.page_at_once(request);
  };
  if (console_ != nullptr) {
    callbacks.page_later = [this](const PageRequest& request, std::function<void(Page)> done) {
      return console_->page_later(request, std::move(done));
    };
    callbacks.refuse_body = [this](const PageRequest& request) { return console_->refuse_body(request); };
  }
  if (grpc_->tls_files() != nullptr) callbacks.new_context = PageContexts(grpc_->tls_files());
  callbacks.asks_for_certificates = !options_.service.tls.client_ca_file.empty();
  callbacks.on_refused = log_refused;
  callbacks.on_memory = [service = service_](std::uint64_t bytes) { service->environment()->http_bytes.store(bytes); };
  http_ = std::make_unique<HttpServer>(std::move(listener), limits_of(options_), std::move(callbacks));
}

// A part of the server that has metrics of its own adds its source here.
void PageServer::add_sources() {
  const ServerFacts facts{.version = kVersion,
                          .commit = kCommit,
                          .strategy = options_.engine.strategy,
                          .order = options_.engine.order,
                          .device = options_.engine.device,
                          .started = seconds_since_1970()};
  pages_.add_source([this, facts](const ServerReport& report, Families* families) {
    add_server(report, facts, *log_, families);
    add_calls(report, service_->environment()->metrics, families);
    add_connections(grpc_->connections(), options_.service, families);
    add_pages(http_->counts(), connections_max_of(options_), families);
    if (grpc_->tls_files() != nullptr) add_certificate(grpc_->tls_files()->current()->pair.valid_until, families);
  });
  pages_.add_source([this, facts](const ServerReport& report, Families* families) {
    const Database* const database = service_->environment()->gate.database();
    if (!report.has_database || database == nullptr) return;
    add_pipeline(report.database, database->metrics(), options_.database, facts, families);
    add_log(report.database, database->metrics(), *log_, options_.database, options_.storage.disk_reserve_bytes,
            families);
    add_backups(service_->environment()->backups, report.database.log.archive, *log_, options_.storage.archive_lag_max,
                families);
  });
  pages_.add_source([facts](const ServerReport& report, Families* families) {
    add_memory(report, families);
    add_process(report, facts, families);
  });
}

}  // namespace kilokv::server
