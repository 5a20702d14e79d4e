# Precompiled headers. Most of the time of a clean build is the reading of the headers of libraries, again for each
# source. So the headers that most sources of one kind of target include are read once for each kind.
#
# Only headers of libraries are in these lists, and what protoc generates: an edit of one of our own headers must not
# compile everything.
#
# Every source includes what it needs, and compiles without precompiled headers, too. clang-tidy cannot read those of GCC.
# So `deploy/test.sh --tidy` sees that it is so. `.ci/run` sees it for the groups of sources that deploy/tidy.py makes.
# With GCC: cmake --preset release -B build/plain -DKILOKV_PRECOMPILED_HEADERS=OFF
include_guard(GLOBAL)

option(KILOKV_PRECOMPILED_HEADERS "Read the headers of libraries once for each kind of target" ON)

# The kinds. Each is a list of headers, and the libraries that have them.
set(KILOKV_HEADERS_std
  <algorithm> <array> <atomic> <bit> <charconv> <chrono> <cmath> <condition_variable> <cstddef> <cstdint> <cstdio>
  <cstdlib> <cstring> <deque> <fstream> <functional> <future> <iostream> <limits> <map> <memory> <memory_resource>
  <mutex> <numeric> <optional> <random> <set> <span> <sstream> <string> <string_view> <system_error> <thread> <tuple>
  <type_traits> <unordered_map> <utility> <variant> <vector>)
set(KILOKV_HEADERS_gtest ${KILOKV_HEADERS_std} <gtest/gtest.h>)
set(KILOKV_HEADERS_gtest_LINK GTest::gtest)
set(KILOKV_HEADERS_grpc ${KILOKV_HEADERS_std} <grpcpp/grpcpp.h> <kilokv/v1/kilokv.grpc.pb.h>)
set(KILOKV_HEADERS_grpc_LINK kilokv_proto)
set(KILOKV_HEADERS_grpc_gtest ${KILOKV_HEADERS_grpc} <gtest/gtest.h>)
set(KILOKV_HEADERS_grpc_gtest_LINK kilokv_proto GTest::gtest)

# kilokv_precompiled(target kind): the sources of the target find the headers of this kind read; "": std. GCC takes a
# precompiled header only if it was made with the flags of the source. Libraries are compiled with -fPIC and programs with
# -fPIE, and the tests are not optimized. Therefore each kind is made once for libraries and once for programs, where it is
# used, and again in a folder that sets KILOKV_HEADERS_OWNER, because its flags are others.
function(kilokv_precompiled target kind)
  if(NOT KILOKV_PRECOMPILED_HEADERS)
    return()
  endif()
  if(NOT kind)
    set(kind std)
  endif()
  if(NOT DEFINED KILOKV_HEADERS_${kind})
    message(FATAL_ERROR "${target}: there is no kind of headers ${kind}; cmake/KilokvPrecompiled.cmake has the list")
  endif()
  get_target_property(type ${target} TYPE)
  if(type STREQUAL "EXECUTABLE")
    set(owner kilokv_headers_${kind}_of_${KILOKV_HEADERS_OWNER}programs)
  else()
    set(owner kilokv_headers_${kind}_of_${KILOKV_HEADERS_OWNER}libraries)
  endif()
  if(NOT TARGET ${owner})
    add_library(${owner} OBJECT ${KILOKV_ROOT}/cmake/precompiled.cpp)
    target_link_libraries(${owner} PRIVATE ${KILOKV_HEADERS_${kind}_LINK})
    if(type STREQUAL "EXECUTABLE")
      set_target_properties(${owner} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
      target_compile_options(${owner} PRIVATE ${CMAKE_CXX_COMPILE_OPTIONS_PIE})
    endif()
    kilokv_warnings(${owner})
    target_precompile_headers(${owner} PRIVATE ${KILOKV_HEADERS_${kind}})
  endif()
  target_precompile_headers(${target} REUSE_FROM ${owner})
endfunction()

# kilokv_no_false_warnings(target): with a precompiled header, GCC 12 warns of more concatenations of std::string that are
# fine, such as "key" + std::to_string(1) (GCC bugs 105329 and 105651). The tests are full of them, and so are messages.
# A build without precompiled headers compiles everything with these warnings.
function(kilokv_no_false_warnings target)
  if(KILOKV_PRECOMPILED_HEADERS)
    target_compile_options(${target} PRIVATE
      $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-stringop-overflow -Wno-stringop-overread -Wno-array-bounds>)
  endif()
endfunction()
