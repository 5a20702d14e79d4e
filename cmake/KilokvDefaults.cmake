# Settings that every target shares. Included by the root and by the engine when it is built alone.
include_guard(GLOBAL)

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
# Assertions of the standard library's kind stay off in Release; KILOKV_CHECK is always on.
set(CMAKE_CXX_FLAGS_RELEASE "-O3 -g1 -DNDEBUG")

# gRPC and Protobuf ask for it. Everything gets it: a precompiled header is for one set of flags.
add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-pthread>)

# GCC looks for memory that it may use again whenever its heap has grown by some share. A source takes 0.4 GB anyway, so
# the first search at 0.5 GB saves up to a sixth of the time to compile it.
add_compile_options($<$<COMPILE_LANG_AND_ID:CXX,GNU>:--param=ggc-min-heapsize=524288>
                    $<$<COMPILE_LANG_AND_ID:CXX,GNU>:--param=ggc-min-expand=200>)

find_program(KILOKV_CCACHE ccache)
if(KILOKV_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # ccache takes no object from its cache that uses a precompiled header, unless it is told that no source depends on
  # the time of day (__TIME__), nor changes what the header sees by a #define before it.
  set(CMAKE_CXX_COMPILER_LAUNCHER env CCACHE_SLOPPINESS=pch_defines,time_macros ${KILOKV_CCACHE})
endif()
if(NOT CMAKE_CUDA_COMPILER_LAUNCHER)
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${CMAKE_CURRENT_LIST_DIR}/again_after_crash.sh)
  if(KILOKV_CCACHE)
    list(APPEND CMAKE_CUDA_COMPILER_LAUNCHER ${KILOKV_CCACHE})
  endif()
endif()

set(KILOKV_SANITIZE "" CACHE STRING "address;undefined or thread, comma-separated; empty: none")
if(KILOKV_SANITIZE)
  # What a sanitizer finds ends the program: a test fails by it.
  add_compile_options("$<$<NOT:$<COMPILE_LANGUAGE:CUDA>>:-fsanitize=${KILOKV_SANITIZE};-fno-sanitize-recover=all;-fno-omit-frame-pointer>")
  add_link_options(-fsanitize=${KILOKV_SANITIZE})
  # GCC 12 warns of values that are set, because it does not see through the code that a sanitizer adds.
  add_compile_options($<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-maybe-uninitialized>)
  if(KILOKV_SANITIZE MATCHES "undefined")
    # The shared library writes its reports to standard error alone, whatever UBSAN_OPTIONS say.
    add_link_options($<$<LINK_LANG_AND_ID:CXX,GNU>:-static-libubsan>)
  endif()
  if(KILOKV_SANITIZE MATCHES "thread")
    # TSan knows no fences, and GCC warns of each. engine/platform/host.hpp makes up for them.
    add_compile_options($<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-tsan>)
  endif()
endif()

# Warnings for our own targets; generated code gets none.
# -Wrestrict of gcc 12 warns of std::string concatenations that are fine (GCC bug 105651).
function(kilokv_warnings target)
  target_compile_options(${target} PRIVATE
    $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Wconversion -Wno-sign-conversion
    $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict> -Werror>)
endfunction()

get_filename_component(KILOKV_ROOT ${CMAKE_CURRENT_LIST_DIR}/.. ABSOLUTE)

include(KilokvEmbed)
include(KilokvPrecompiled)
include(KilokvInstall)

# kilokv_library(name SOURCES ... LINK ... HEADERS grpc): a static library of our own, included by its path from the root.
# HEADERS: the kind of headers that its sources find read (KilokvPrecompiled.cmake); default: the standard library's.
function(kilokv_library name)
  cmake_parse_arguments(ARG "" "HEADERS" "SOURCES;LINK" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_include_directories(${name} PUBLIC $<BUILD_INTERFACE:${KILOKV_ROOT}>)
  target_link_libraries(${name} PUBLIC ${ARG_LINK})
  kilokv_warnings(${name})
  kilokv_precompiled(${name} "${ARG_HEADERS}")
endfunction()

function(kilokv_program name)
  cmake_parse_arguments(ARG "" "HEADERS" "SOURCES;LINK" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_include_directories(${name} PRIVATE ${KILOKV_ROOT})
  target_link_libraries(${name} PRIVATE ${ARG_LINK})
  kilokv_warnings(${name})
  kilokv_precompiled(${name} "${ARG_HEADERS}")
endfunction()

# A program that is carried to machines that have no compiler, nor, maybe, its libraries.
function(kilokv_portable target)
  if(NOT KILOKV_SANITIZE)
    target_link_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-static-libstdc++;-static-libgcc>)
  endif()
endfunction()
