# Writes OUTPUT with VERSION and the commit of SOURCE_DIR. Does not touch it if nothing has changed. Run with cmake -P.
cmake_minimum_required(VERSION 3.25)
execute_process(
  COMMAND git -C ${SOURCE_DIR} describe --always --dirty=+ --abbrev=12 --exclude=*
  OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
if(failed)
  set(commit unknown)
endif()
file(CONFIGURE OUTPUT ${OUTPUT} @ONLY CONTENT
"#include \"server/version.hpp\"

namespace kilokv::server {
const char* const kVersion = \"@VERSION@\";
const char* const kCommit = \"@commit@\";
}  // namespace kilokv::server
")
