# Writes OUTPUT, a header with VERSION, the commit of SOURCE, and BUILD_TYPE. Does not touch it if nothing changed.
cmake_minimum_required(VERSION 3.25)
execute_process(
  COMMAND git -C ${SOURCE} describe --always --abbrev=12 --dirty --exclude=*
  OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
if(failed)
  set(commit unknown)
endif()
file(CONFIGURE OUTPUT ${OUTPUT} @ONLY CONTENT
"#pragma once

namespace kilokv::engine::bench {
inline constexpr const char* kVersion = \"@VERSION@\";
inline constexpr const char* kCommit = \"@commit@\";
inline constexpr const char* kBuildType = \"@BUILD_TYPE@\";
}  // namespace kilokv::engine::bench
")
