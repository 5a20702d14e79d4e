# Writes a source that holds texts: cmake -D OUTPUT=FILE -D FILES=A,B -D HEADER=H -D NAMESPACE=N -D TYPE=T -D FUNCTION=F
# -P embed_files.cmake. A file may be given as PATH:NAME. The header H declares the type N::T, which is {name, content} of
# std::string_view, and the function N::F, which returns a std::span<const T>. kilokv_embed() runs this in the build.
cmake_minimum_required(VERSION 3.22)

string(REPLACE "," ";" files "${FILES}")
set(entries "")
foreach(file IN LISTS files)
  get_filename_component(name "${file}" NAME)
  if(file MATCHES "^(.+):([^/]+)$")
    set(file "${CMAKE_MATCH_1}")
    set(name "${CMAKE_MATCH_2}")
  endif()
  file(READ "${file}" content)
  string(APPEND entries "    {\"${name}\", R\"kilokv_file(${content})kilokv_file\"},\n")
endforeach()
set(source "// Made by embed_files.cmake.
#include \"${HEADER}\"

#include <array>

namespace ${NAMESPACE} {
namespace {

constexpr auto kFiles = std::to_array<${TYPE}>({
")
string(APPEND source "${entries}")
string(APPEND source "});

}  // namespace

std::span<const ${TYPE}> ${FUNCTION}() { return kFiles; }

}  // namespace ${NAMESPACE}
")
file(WRITE "${OUTPUT}" "${source}")
