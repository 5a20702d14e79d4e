# Writes OUTPUT, a source with the files that make the page of `compare`: PAGE, and LIBRARY, which may be missing.
cmake_minimum_required(VERSION 3.25)
file(READ ${PAGE} page)
set(library "")
if(LIBRARY)
  file(READ ${LIBRARY} library)
endif()
file(WRITE ${OUTPUT} "#include \"engine/bench/compare_page.hpp\"

namespace kilokv::engine::bench {
const std::string_view kPageTemplate = R\"kilokv_file(${page})kilokv_file\";
const std::string_view kChartLibrary = R\"kilokv_file(${library})kilokv_file\";
}  // namespace kilokv::engine::bench
")
