# Texts in programs: the pages that people open in a browser, and uPlot, which draws the charts of the pages.
include_guard(GLOBAL)

set(KILOKV_EMBED_SCRIPT ${CMAKE_CURRENT_LIST_DIR}/embed_files.cmake)
get_filename_component(KILOKV_CONSOLE_FOLDER ${CMAKE_CURRENT_LIST_DIR}/../server/console ABSOLUTE)

# kilokv_uplot(variable): sets the variable to the folder of the npm package uplot. deploy/install-deps.sh puts the package
# beside the console, whose package.json names its version.
function(kilokv_uplot variable)
  set(folder ${KILOKV_CONSOLE_FOLDER}/node_modules/uplot)
  if(NOT EXISTS ${folder}/dist/uPlot.esm.js)
    message(FATAL_ERROR "The pages need the npm package uplot: run deploy/install-deps.sh build, or npm ci in server/console")
  endif()
  set(${variable} ${folder} PARENT_SCOPE)
endfunction()

# kilokv_embed(OUTPUT source HEADER header NAMESPACE namespace TYPE type FUNCTION function FILES file...): writes the
# source, which holds the files, in the build. embed_files.cmake says what the header declares.
function(kilokv_embed)
  cmake_parse_arguments(ARG "" "OUTPUT;HEADER;NAMESPACE;TYPE;FUNCTION" "FILES" ${ARGN})
  list(TRANSFORM ARG_FILES REPLACE ":[^/]+$" "" OUTPUT_VARIABLE paths)
  list(JOIN ARG_FILES "," listed)
  add_custom_command(OUTPUT ${ARG_OUTPUT}
    COMMAND ${CMAKE_COMMAND} -D OUTPUT=${ARG_OUTPUT} -D FILES=${listed} -D HEADER=${ARG_HEADER}
            -D NAMESPACE=${ARG_NAMESPACE} -D TYPE=${ARG_TYPE} -D FUNCTION=${ARG_FUNCTION} -P ${KILOKV_EMBED_SCRIPT}
    DEPENDS ${paths} ${KILOKV_EMBED_SCRIPT}
    VERBATIM)
endfunction()
