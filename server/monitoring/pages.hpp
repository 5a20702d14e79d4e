// The pages over HTTP:
//
//   /livez     200: the process runs. Needs no login
//   /readyz    200: new requests are accepted; 503, with the reason: they are not. Needs no login
//   /metrics   the metrics, for Prometheus
//   /status    the status as JSON: the fields of `kilokv --output json status`
//
// The last two need the metrics right on a server with logins, by a token (`authorization: Bearer TOKEN`) or by a
// client certificate. Where clients need a certificate, so do these two pages. Probes have none, so /livez and /readyz
// need none.
//
// The metrics come from sources, each of which adds some families. A part of the server that has metrics of its own
// adds a source.
//
// The last two look at all parts of the server, and so may wait for a lock, or for a disk that hangs. The probes look
// at a few atomic values only: they never wait.
//
// Thread safety: add_source() before the first page; one thread at a time calls page(); any thread page_at_once().
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "server/http/page.hpp"
#include "server/monitoring/families.hpp"
#include "server/service/service.hpp"

namespace kilokv::server {

class Pages {
 public:
  // `report`: the state at the time of the scrape, made once for all sources.
  using Source = std::function<void(const ServerReport& report, Families* families)>;

  // Requires: `service`, and what the sources use, outlive the pages.
  explicit Pages(KiloKvService* service) : service_(service) {}

  void add_source(Source source) { sources_.push_back(std::move(source)); }

  Page page(const PageRequest& request);
  // The metrics as JSON, without a look at rights (Families::json()).
  std::string metrics_json();
  static PageCaller caller_of(const PageRequest& request);
  // The same, if the page needs to wait for nothing. Nothing: it does.
  std::optional<Page> page_at_once(const PageRequest& request) const;

 private:
  Families families();
  Page live() const;
  Page ready() const;
  Page metrics();
  Page status();
  Status check(const PageRequest& request) const;

  KiloKvService* const service_;
  std::vector<Source> sources_;
};

}  // namespace kilokv::server
