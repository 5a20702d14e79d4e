// The pages over HTTP of this server: it connects their server, the pages, and the sources of the metrics.
//
// Thread safety: one thread opens, starts and destroys it.
#pragma once

#include <memory>
#include <string>

#include "engine/base/status.hpp"
#include "server/config.hpp"
#include "server/console/console.hpp"
#include "server/core/metrics.hpp"
#include "server/edge/listener.hpp"
#include "server/http/http_server.hpp"
#include "server/monitoring/pages.hpp"
#include "server/service/grpc_server.hpp"
#include "server/service/local_calls.hpp"
#include "server/service/service.hpp"

namespace kilokv::server {

class PageServer {
 public:
  // Listens on --http-listen. Null: there are no pages, because the setting says so, or because another program has the
  // port of the default; then the log says so. UNAVAILABLE: the address that is set cannot be used.
  // Requires: all that is passed outlives the server.
  static Result<std::unique_ptr<PageServer>> open(const ServerOptions& options, KiloKvService* service,
                                                  const GrpcServer* grpc, const LogMetrics* log);
  ~PageServer();

  // Ends the calls of the console: from here on, each is refused. The other pages go on. Called before the gRPC server
  // is shut down.
  void end_calls() {
    if (calls_ != nullptr) calls_->close();
  }
  // Begins to serve.
  void start() { http_->start(); }
  const std::string& endpoint() const { return http_->endpoint(); }
  bool is_public() const { return http_->is_public(); }  // other machines can connect

 private:
  PageServer(const ServerOptions& options, KiloKvService* service, const GrpcServer* grpc, const LogMetrics* log);
  void add_sources();
  void make_console(const Listener& listener);
  void make_server(Listener listener);

  const ServerOptions& options_;
  KiloKvService* const service_;
  const GrpcServer* const grpc_;
  const LogMetrics* const log_;
  Pages pages_;
  // Null: no console.
  std::unique_ptr<LocalCalls> calls_;
  std::unique_ptr<Console> console_;
  std::unique_ptr<HttpServer> http_;  // ends first: it uses the pages
};

}  // namespace kilokv::server
