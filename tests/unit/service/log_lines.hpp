// Takes the lines of the usual log, without their time: LEVEL LINE. Thread safety: take() while nothing is being
// logged.
#pragma once

#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <sstream>
#include <string>
#include <utility>

namespace kilokv::server::test {

class LogLines {
 public:
  explicit LogLines(spdlog::level::level_enum level = spdlog::level::info) : before_(spdlog::default_logger()) {
    auto logger = std::make_shared<spdlog::logger>("test", sink_);
    logger->set_pattern("%l %v");
    logger->set_level(level);
    spdlog::set_default_logger(std::move(logger));
  }
  ~LogLines() { spdlog::set_default_logger(before_); }
  LogLines(const LogLines&) = delete;
  LogLines& operator=(const LogLines&) = delete;

  // The lines since the last call.
  std::string take() {
    std::string text = lines_.str();
    lines_.str("");
    return text;
  }

 private:
  const std::shared_ptr<spdlog::logger> before_;
  std::ostringstream lines_;
  std::shared_ptr<spdlog::sinks::ostream_sink_mt> sink_ = std::make_shared<spdlog::sinks::ostream_sink_mt>(lines_);
};

}  // namespace kilokv::server::test
