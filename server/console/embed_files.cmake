# Writes a source that holds the files of the console: cmake -D OUTPUT=FILE -D FILES=A,B -P embed_files.cmake. A file may be
# given as PATH:NAME. All files are texts.
cmake_minimum_required(VERSION 3.22)

set(source [[
// Made by embed_files.cmake.
#include "server/console/files.hpp"

#include <array>

namespace kilokv::server {
namespace {

constexpr auto kFiles = std::to_array<ConsoleFile>({
]])
string(REPLACE "," ";" files "${FILES}")
foreach(file IN LISTS files)
  get_filename_component(name "${file}" NAME)
  if(file MATCHES "^(.+):([^/]+)$")
    set(file "${CMAKE_MATCH_1}")
    set(name "${CMAKE_MATCH_2}")
  endif()
  file(READ "${file}" content)
  string(APPEND source "    {\"${name}\", R\"kilokv_file(${content})kilokv_file\"},\n")
endforeach()
string(APPEND source [[
});

}  // namespace

std::span<const ConsoleFile> console_files() { return kFiles; }

}  // namespace kilokv::server
]])
file(WRITE "${OUTPUT}" "${source}")
