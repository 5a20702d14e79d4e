// Takes the lines of the audit log, without their time and level. Thread safety: take() in one thread.
#pragma once

#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <sstream>
#include <string>
#include <utility>

#include "server/service/audit_log.hpp"

namespace kilokv::server::test {

class AuditLines {
 public:
  AuditLines() {
    spdlog::drop(kAuditLogger);
    auto logger = std::make_shared<spdlog::logger>(kAuditLogger, sink_);
    logger->set_pattern("%v");
    spdlog::register_logger(std::move(logger));
  }
  ~AuditLines() { spdlog::drop(kAuditLogger); }
  AuditLines(const AuditLines&) = delete;
  AuditLines& operator=(const AuditLines&) = delete;

  // The lines since the last call. Requires: nothing is being logged.
  std::string take() {
    std::string text = lines_.str();
    lines_.str("");
    return text;
  }

 private:
  std::ostringstream lines_;
  std::shared_ptr<spdlog::sinks::ostream_sink_mt> sink_ = std::make_shared<spdlog::sinks::ostream_sink_mt>(lines_);
};

}  // namespace kilokv::server::test
