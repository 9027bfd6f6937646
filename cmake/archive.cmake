# CPack reads this before it makes a package. An archive lies anywhere, and brings its libraries along.
if(CPACK_GENERATOR STREQUAL "TGZ")
  set(CPACK_PACKAGING_INSTALL_PREFIX "/")
  set(CPACK_COMPONENT_INCLUDE_TOPLEVEL_DIRECTORY ON)
  list(APPEND CPACK_COMPONENTS_ALL libraries modules)
endif()
