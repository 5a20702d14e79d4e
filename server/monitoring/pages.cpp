// Role: see pages.hpp.
#include "server/monitoring/pages.hpp"

#include <utility>

#include "server/service/status_json.hpp"

namespace kilokv::server {
namespace {

constexpr char kMetricsType[] = "text/plain; version=0.0.4; charset=utf-8";

Page refusal(const Status& status) {
  switch (status.code()) {
    case StatusCode::unauthenticated: {
      Page page = refusal_page(401, status.message());
      page.headers = {{"WWW-Authenticate", "Bearer"}};
      return page;
    }
    case StatusCode::permission_denied: return refusal_page(403, status.message());
    default: return refusal_page(503, status.message());
  }
}

}  // namespace

std::optional<Page> Pages::page_at_once(const PageRequest& request) const {
  const bool is_probe = request.path == "/livez" || request.path == "/readyz";
  if (!is_probe && request.path != "/metrics" && request.path != "/status") {
    return refusal_page(
        404, "there is no such page; the pages are /livez, /readyz, /metrics, /status and /console/ (--console)");
  }
  if (request.method != "GET" && request.method != "HEAD") {
    Page page = refusal_page(405, "this page takes GET and HEAD");
    page.headers = {{"Allow", "GET, HEAD"}};
    return page;
  }
  if (!is_probe) return std::nullopt;
  return request.path == "/livez" ? live() : ready();
}

Page Pages::page(const PageRequest& request) {
  if (std::optional<Page> page = page_at_once(request)) return std::move(*page);
  if (const Status status = check(request); !status.ok()) return refusal(status);
  return request.path == "/metrics" ? metrics() : status();
}

// The page could be made, so the process runs.
Page Pages::live() const {
  Page page;
  page.body = "ok\n";
  return page;
}

Page Pages::ready() const {
  if (const Status status = service_->readiness(); !status.ok()) return refusal_page(503, status.message());
  Page page;
  page.body = "ready\n";
  return page;
}

Families Pages::families() {
  const ServerReport report = service_->report();
  Families families;
  for (const Source& source : sources_) source(report, &families);
  return families;
}

Page Pages::metrics() {
  Page page;
  page.content_type = kMetricsType;
  page.body = families().text();
  return page;
}

std::string Pages::metrics_json() { return families().json(); }

Page Pages::status() {
  Page page;
  page.content_type = "application/json";
  page.body = status_json(service_->status());
  return page;
}

PageCaller Pages::caller_of(const PageRequest& request) {
  PageCaller caller;
  caller.peer = request.peer;
  if (request.authorization) caller.authorization = *request.authorization;
  if (request.certificate != nullptr) {
    caller.certificate = request.certificate->own;
    caller.issuers = request.certificate->issuers;
    caller.alternative_names.assign(request.certificate->alternative_names.begin(),
                                    request.certificate->alternative_names.end());
    caller.common_names.assign(request.certificate->common_names.begin(), request.certificate->common_names.end());
  }
  return caller;
}

Status Pages::check(const PageRequest& request) const {
  return service_->logins().check_page(caller_of(request), request.path);
}

}  // namespace kilokv::server
