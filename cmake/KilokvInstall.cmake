# What `cmake --install` installs, and what find_package(kilokv) finds there (docs/install.md). The components are
#   programs     kilokvd, its clients, and the benches
#   development  headers, static libraries, protocol files, and the files that find_package(kilokv) reads
include_guard(GLOBAL)
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# A bundle has the libraries that the programs need in a folder of its own (deploy/package/bundle.py). A program finds it
# by its own place. DT_RPATH, unlike DT_RUNPATH, also counts for what these libraries need. So they stay as Debian made
# them, and nothing has to be patched. Where the folder is missing, the system's libraries are used.
set(KILOKV_BUNDLED_LIBRARIES ${CMAKE_INSTALL_LIBDIR}/kilokv)

# kilokv_install_program(target): a program for users.
function(kilokv_install_program target)
  file(RELATIVE_PATH libraries /prefix/${CMAKE_INSTALL_BINDIR} /prefix/${KILOKV_BUNDLED_LIBRARIES})
  set_target_properties(${target} PROPERTIES BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "$ORIGIN/${libraries}")
  target_link_options(${target} PRIVATE LINKER:--disable-new-dtags)
  install(TARGETS ${target} RUNTIME COMPONENT programs)
  set_property(GLOBAL APPEND PROPERTY KILOKV_PROGRAMS ${target})
endfunction()

# kilokv_install_library(component target BASE folder HEADERS ... DESTINATION folder ALSO name:target ...): a library that
# other projects find as kilokv::component. Its public headers are included by their path from BASE. They are installed
# below include/DESTINATION. ALSO: libraries that it needs, which have no installed headers; they become kilokv::name.
function(kilokv_install_library component target)
  cmake_parse_arguments(ARG "" "BASE;DESTINATION" "HEADERS;ALSO" ${ARGN})
  add_library(kilokv::${component} ALIAS ${target})
  target_sources(${target} PUBLIC FILE_SET HEADERS BASE_DIRS ${ARG_BASE} FILES ${ARG_HEADERS})
  if(KILOKV_SANITIZE)  # such a library is of no use to others
    return()
  endif()
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${component})
  target_compile_features(${target} INTERFACE cxx_std_20)  # its headers need it
  set(targets ${target})
  foreach(also IN LISTS ARG_ALSO)
    string(REPLACE ":" ";" also ${also})
    list(GET also 0 name)
    list(GET also 1 library)
    set_target_properties(${library} PROPERTIES EXPORT_NAME ${name})
    list(APPEND targets ${library})
  endforeach()
  install(TARGETS ${targets} EXPORT kilokv-${component}
    ARCHIVE COMPONENT development
    FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/${ARG_DESTINATION} COMPONENT development)
  install(EXPORT kilokv-${component} NAMESPACE kilokv:: FILE kilokv-${component}.cmake
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/kilokv COMPONENT development)
endfunction()

# kilokv_install_package(component ...): the files that find_package(kilokv COMPONENTS ...) reads.
function(kilokv_install_package)
  if(KILOKV_SANITIZE)
    return()
  endif()
  set(KILOKV_COMPONENTS ${ARGN})
  set(package ${CMAKE_CURRENT_BINARY_DIR}/package)
  configure_package_config_file(${KILOKV_ROOT}/cmake/kilokv-config.cmake.in ${package}/kilokv-config.cmake
    INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/kilokv NO_SET_AND_CHECK_MACRO)
  # Before 1.0, a minor version may change the interface (docs/compatibility.md).
  write_basic_package_version_file(${package}/kilokv-config-version.cmake COMPATIBILITY SameMinorVersion)
  install(FILES ${package}/kilokv-config.cmake ${package}/kilokv-config-version.cmake
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/kilokv COMPONENT development)
endfunction()
