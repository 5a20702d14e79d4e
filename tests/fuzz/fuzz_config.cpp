// The configuration: the TOML file, and the values (server/config.cpp, config_file.cpp, config_value.cpp). A file that
// is accepted names only settings that --help lists. A value that is written is read back as the same.
#include "server/config.hpp"
#include "server/config_file.hpp"
#include "server/config_value.hpp"
#include "server/core/unit_text.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace kilokv::fuzz {
namespace {

void check_value(std::string_view text) {
  using namespace kilokv::server;
  parse_count(text);
  if (const auto size = parse_size(text)) KILOKV_CHECK(parse_size(format_size(*size)) == size);
  if (const auto time = parse_duration(text)) KILOKV_CHECK(parse_duration(format_duration(*time)) == time);
  if (const auto share = parse_share(text)) {
    KILOKV_CHECK(*share >= 0);
    KILOKV_CHECK(parse_share(format_share(*share)) == share);
  }
}

// To make the command line takes milliseconds, so it is made only for a file that can be read.
void check_file(const std::string& path) {
  using namespace kilokv::server;
  static const std::string help = help_text();
  const Result<std::vector<FileValue>> values = read_config_file(path);
  Status status = values.status();
  if (values.ok() && !values->empty()) {
    const char* const arguments[] = {"kilokvd", "--config", path.c_str()};
    const Result<CommandLine> line = parse_command_line(3, arguments, [](const char*) { return nullptr; });
    status = line.status();
    if (line.ok()) KILOKV_CHECK(line->options.validate().ok());
  }
  if (!status.ok()) {
    KILOKV_CHECK(status.code() == StatusCode::invalid_argument);
    KILOKV_CHECK(status.message().find('\n') == std::string::npos);
    return;
  }
  for (const FileValue& value : *values) {
    KILOKV_CHECK(help.find("--" + value.name + " ") != std::string::npos);
    check_value(value.text);
  }
}

}  // namespace
}  // namespace kilokv::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace kilokv;
  static const fuzz::Folder folder;
  const std::string_view text = fuzz::text_of(data, size);
  if (text.size() <= 40) fuzz::check_value(text);
  fuzz::check_file(folder.write("kilokvd.toml", text));
  return 0;
}
