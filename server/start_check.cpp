// Role: see start_check.hpp.
#include "server/start_check.hpp"

#include <memory>

#include "server/core_dumps.hpp"
#include "server/edge/descriptor.hpp"
#include "server/edge/listener.hpp"
#include "server/service/bootstrap.hpp"
#include "server/service/tls_files.hpp"
#include "server/service/unix_time.hpp"

namespace kilokv::server {
namespace {

Status check_tls(const TlsOptions& options, const std::function<void(const std::string& what)>& warn) {
  if (!options.enabled()) return {};
  const auto log = [&warn](TlsFiles::Level level, const std::string& what, const std::string& detail) {
    if (level != TlsFiles::Level::info) warn(what + ": " + detail);
  };
  const auto unix_seconds_now = [] { return unix_us_now() / 1000000; };
  return TlsFiles::open(options, unix_seconds_now, log).status();
}

Status check_address(const ServerOptions& options, const std::string& setting, const std::string& listen) {
  const Result<bool> alone = is_for_this_machine(listen, setting);
  if (!alone.ok()) return alone.status();
  return *alone ? Status() : check_other_machines(options, setting, listen);
}

}  // namespace

std::string lacks_for_other_machines(const ServiceOptions& options) {
  const bool has_tls = options.tls.enabled();
  if (has_tls && options.login) return {};
  if (has_tls) return "no logins (--login on)";
  if (options.login) return "no TLS (--tls-cert, --tls-key)";
  return "neither TLS (--tls-cert, --tls-key) nor logins (--login on)";
}

Status check_other_machines(const ServerOptions& options, const std::string& setting, const std::string& listen) {
  const std::string lacks = lacks_for_other_machines(options.service);
  if (lacks.empty() || options.insecure) return {};
  return Status(StatusCode::failed_precondition, ErrorReason::failed,
                setting + " " + listen + " is for other machines, and there are " + lacks +
                    "; set them, or listen on 127.0.0.1, or give --insecure on if the network itself is safe");
}

Status check_start(const ServerOptions& options, const std::function<void(const std::string& what)>& warn) {
  Status status = set_core_dumps(options.core_dumps);
  if (status.ok()) status = raise_descriptor_limit(options.service.connections_max).status();
  if (status.ok()) status = check_tls(options.service.tls, warn);
  if (status.ok()) status = check_address(options, "--listen", options.listen);
  if (status.ok() && options.http.enabled()) {
    status = check_address(options, "--http-listen", options.http.http_listen);
  }
  if (status.ok() && options.service.login) status = check_bootstrap(options.bootstrap);
  return status;
}

}  // namespace kilokv::server
