// The files of the console's page. The build puts them into the program (embed_files.cmake). Thread safety: constants.
#pragma once

#include <span>
#include <string_view>

namespace kilokv::server {

struct ConsoleFile {
  std::string_view name, content;  // such as app.js
};

std::span<const ConsoleFile> console_files();

}  // namespace kilokv::server
