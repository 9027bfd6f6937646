# `cmake --install build --prefix P` installs the program, the library with its headers and its CMake package,
# the documents, a page for man, the completion of bash, the Python package, the Slurm scripts, the examples,
# and the CUDA and NCCL modules where they were built. Every part finds the others relative to itself, so P
# can be moved.
include(cmake/libraries.cmake)
if(SKBUILD)
  include(cmake/wheel.cmake)
  return()
endif()
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(include_folder ${CMAKE_INSTALL_INCLUDEDIR}/antichain)  # #include "layers/conv2d.h"
set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/antichain)

# Installs the headers, without those that need what only some folders see: oneDNN, MPI, CUDA, CLI11, HDF5.
file(GLOB headers CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/layers/*.h ${CMAKE_SOURCE_DIR}/models/*.h)
file(GLOB_RECURSE headers_of_rooms CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/framework/*.h
  ${CMAKE_SOURCE_DIR}/partition/*.h ${CMAKE_SOURCE_DIR}/data/*.h ${CMAKE_SOURCE_DIR}/pipeline/*.h)
list(APPEND headers ${headers_of_rooms})
list(FILTER headers EXCLUDE REGEX "/cuda/")
list(FILTER headers EXCLUDE REGEX "/mpi_[^/]*$")
list(FILTER headers EXCLUDE REGEX "/hdf5_(objects|session)[.]h$")
list(APPEND headers ${CMAKE_SOURCE_DIR}/layers/cpu/backend.h ${CMAKE_SOURCE_DIR}/layers/elementwise_table.inc
  ${CMAKE_SOURCE_DIR}/app/run.h)
# What they include has to be there, too.
foreach(header ${headers})
  file(STRINGS ${header} lines REGEX "^#include \"")
  foreach(line ${lines})
    string(REGEX REPLACE "^#include \"([^\"]*)\".*" "${CMAKE_SOURCE_DIR}/\\1" included "${line}")
    if(NOT included IN_LIST headers)
      message(FATAL_ERROR
        "${header} is installed and includes ${included}, which is not: add it in cmake/install.cmake")
    endif()
  endforeach()
endforeach()
target_sources(antichain PUBLIC FILE_SET HEADERS BASE_DIRS ${CMAKE_SOURCE_DIR} FILES ${headers})
target_compile_features(antichain PUBLIC cxx_std_20)

# Other libraries (MPI, oneDNN) are searched where they were at build time.
cmake_path(RELATIVE_PATH CMAKE_INSTALL_FULL_LIBDIR BASE_DIRECTORY ${CMAKE_INSTALL_FULL_BINDIR}
  OUTPUT_VARIABLE bin_to_lib)
set_target_properties(antichain PROPERTIES INSTALL_RPATH "$ORIGIN" INSTALL_RPATH_USE_LINK_PATH ON)
set_target_properties(antichain_program PROPERTIES INSTALL_RPATH "$ORIGIN/${bin_to_lib}")
# A DT_RPATH of the program is searched for what libraries need, too, and a DT_RUNPATH only for what the
# program itself needs.
target_link_options(antichain_program PRIVATE -Wl,--disable-new-dtags)
foreach(module antichain_cuda antichain_nccl)
  if(TARGET ${module})
    set_target_properties(${module} PROPERTIES INSTALL_RPATH "$ORIGIN" INSTALL_RPATH_USE_LINK_PATH ON)
    # A build of only the program (run.sh without a GPU) has no modules.
    install(TARGETS ${module} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} OPTIONAL COMPONENT modules)
  endif()
endforeach()

install(TARGETS antichain_program)
install(TARGETS antichain EXPORT antichainTargets FILE_SET HEADERS DESTINATION ${include_folder})
install(EXPORT antichainTargets NAMESPACE antichain:: DESTINATION ${package_folder})
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/antichainConfig.cmake.in
  ${CMAKE_BINARY_DIR}/antichainConfig.cmake INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/antichainConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/antichainConfig.cmake ${CMAKE_BINARY_DIR}/antichainConfigVersion.cmake
  DESTINATION ${package_folder})

# share/doc/antichain has files to read, and share/antichain has files that a user copies and edits.
install(FILES README.md CHANGELOG.md LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR})
# A build of only the program has none of these (app/CMakeLists.txt).
install(FILES ${CMAKE_BINARY_DIR}/reference/cli.md DESTINATION ${CMAKE_INSTALL_DOCDIR}/docs OPTIONAL)
install(FILES ${CMAKE_BINARY_DIR}/reference/antichain.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 OPTIONAL)
install(FILES ${CMAKE_BINARY_DIR}/reference/antichain OPTIONAL
  DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
# Debian's Python looks there for packages; another prefix is named by PYTHONPATH.
install(DIRECTORY app/python/antichain DESTINATION lib/python3/dist-packages PATTERN __pycache__ EXCLUDE)
install(DIRECTORY slurm examples DESTINATION ${CMAKE_INSTALL_DATADIR}/antichain USE_SOURCE_PERMISSIONS)
include(cmake/package.cmake)
