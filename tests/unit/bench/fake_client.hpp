// A client over a map, for code that only scans. It refuses every other call. Thread safety: none.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "client/measure/steady_scan.hpp"
#include "kilokv/client.hpp"

namespace kilokv::bench {

class FakeClient : public client::Client {
 public:
  std::map<std::string, std::variant<std::int64_t, std::string>> state;
  int scans_that_break = 0;  // each breaks after its first pair
  int scans = 0;

  client::Expected<client::ScanPosition> scan(std::string_view from, std::string_view to,
                                              const std::function<bool(const client::Pair&)>& visit,
                                              const client::ScanOptions&) override {
    ++scans;
    for (const auto& [key, value] : state) {
      if (key < from || (!to.empty() && key >= to)) continue;
      if (!visit({key, value, 1})) break;
      if (scans <= scans_that_break) return make_error(client::ErrorCode::aborted, "snapshot too old");
    }
    return client::ScanPosition{42, 7, 0};
  }

  client::Expected<std::unique_ptr<client::Session>> open_session(const client::SessionOptions&) override {
    return refusal();
  }
  client::Expected<client::AttachedSession> attach_session(std::string_view, const client::AttachOptions&) override {
    return refusal();
  }
  client::Expected<client::Results> execute(const client::Batch&, const client::CallOptions&) override {
    return refusal();
  }
  client::Expected<client::Results> get(const std::vector<std::string>&, const client::CallOptions&) override {
    return refusal();
  }
  client::Expected<std::vector<client::ParkedTransaction>> list_parked(const client::CallOptions&) override {
    return refusal();
  }
  client::Expected<std::uint64_t> cancel_parked(const client::ParkedFilter&, const client::CallOptions&) override {
    return refusal();
  }
  client::Expected<std::uint64_t> cancel_parked(std::uint64_t, const client::CallOptions&) override {
    return refusal();
  }
  client::Expected<std::uint64_t> cancel(std::string_view, std::uint64_t, std::optional<std::uint32_t>,
                                         const client::CallOptions&, std::uint64_t) override {
    return refusal();
  }
  client::Expected<client::ServerStatus> status(const client::CallOptions&) override { return refusal(); }
  client::Expected<std::string> log_level(const client::CallOptions&) override { return refusal(); }
  client::Expected<std::string> set_log_level(const std::string&, const client::CallOptions&) override {
    return refusal();
  }
  const client::ClientOptions& options() const override { return options_; }

 private:
  static client::Error refusal() { return make_error(client::ErrorCode::unimplemented, "only scans"); }
  client::ClientOptions options_;
};

}  // namespace kilokv::bench
