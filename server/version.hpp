// The version of this build. version.cmake writes the definitions at build time.
#pragma once

namespace kilokv::server {

extern const char* const kVersion;  // of the project, such as 0.1.0
extern const char* const kCommit;  // of git, such as 1a2b3c4d5e6f; + is appended if files differ; "unknown" without git

}  // namespace kilokv::server
