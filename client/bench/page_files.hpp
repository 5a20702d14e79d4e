// The files of the page that --html writes. The build puts them into the program (embed_files.cmake). Thread safety:
// constants.
#pragma once

#include <span>
#include <string_view>

namespace kilokv::bench {

struct PageFile {
  std::string_view name, content;  // such as index.html
};

std::span<const PageFile> page_files();

}  // namespace kilokv::bench
