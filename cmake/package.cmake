# `cpack` in the build folder makes a Debian package of what `cmake --install` installs. The CUDA and NCCL
# modules are left out, because their libraries are in no Debian package.
#
# `cpack -G TGZ` makes an archive that runs where it is unpacked (cmake/archive.cmake). It has the modules,
# and the libraries that the program needs except the C library's and MPI's, which the machine has.
set(CPACK_GENERATOR DEB)
set(CPACK_PROJECT_CONFIG_FILE ${CMAKE_CURRENT_LIST_DIR}/archive.cmake)
set(CPACK_PACKAGE_CONTACT "the Antichain developers")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Profile, plan, simulate and train a neural network as a pipeline")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)  # dpkg-shlibdeps finds what it depends on
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "openmpi-bin")
set(CPACK_DEBIAN_COMPRESSION_TYPE gzip)  # a few seconds, instead of half a minute
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING ALL_COMPONENTS_IN_ONE)
set(CPACK_ARCHIVE_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL Unspecified)
antichain_install_libraries(${CMAKE_INSTALL_LIBDIR} "^libmpi(ch)?[.]" EXCLUDE_FROM_ALL COMPONENT libraries)
include(CPack)
