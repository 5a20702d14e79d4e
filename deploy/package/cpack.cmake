# CPack reads this for each kind of package that it makes.
if(CPACK_GENERATOR STREQUAL "DEB")
  # Two packages: programs and what a system needs to run them, and what other programs are compiled with.
  set(CPACK_COMPONENTS_ALL programs system development system_development)
  set(CPACK_COMPONENTS_GROUPING ONE_PER_GROUP)
  set(CPACK_DEB_COMPONENT_INSTALL ON)
  set(CPACK_PACKAGE_DESCRIPTION_SUMMARY)  # each description begins with its own
  set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
else()
  # One archive with one folder, which runs where it is unpacked.
  set(CPACK_COMPONENTS_ALL programs bundle)
  set(CPACK_COMPONENTS_GROUPING ALL_COMPONENTS_IN_ONE)
  set(CPACK_ARCHIVE_COMPONENT_INSTALL ON)
  set(CPACK_COMPONENT_INCLUDE_TOPLEVEL_DIRECTORY ON)
endif()
