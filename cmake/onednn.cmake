# Finds oneDNN, 2.6 or later. What its versions do differently is in layers/cpu/dnnl_versions.h. Debian's
# dnnl-config.cmake asks for OpenCL's headers, which oneDNN's CPU engine does not need.
find_path(DNNL_INCLUDE_DIR dnnl.hpp REQUIRED)
find_library(DNNL_LIBRARY dnnl REQUIRED)
antichain_version_in(DNNL_VERSION ${DNNL_INCLUDE_DIR}/oneapi/dnnl/dnnl_version.h "DNNL_VERSION_(MAJOR|MINOR|PATCH)")
message(STATUS "oneDNN: ${DNNL_VERSION}, ${DNNL_INCLUDE_DIR} and ${DNNL_LIBRARY}")
if(DNNL_VERSION VERSION_LESS 2.6)
  message(FATAL_ERROR "oneDNN ${DNNL_VERSION} is older than 2.6: install a newer one and name its prefix by -DCMAKE_PREFIX_PATH")
endif()
# The headers may have come without their library, as in a wheel of their own, and the library from elsewhere.
file(REAL_PATH ${DNNL_LIBRARY} dnnl_file)
string(REGEX MATCH "^[0-9]+" dnnl_major ${DNNL_VERSION})
if(dnnl_file MATCHES "[.]so[.][0-9]" AND NOT dnnl_file MATCHES "[.]so[.]${dnnl_major}([.]|$)")
  message(FATAL_ERROR "oneDNN's headers in ${DNNL_INCLUDE_DIR} are of ${DNNL_VERSION}, but its library is ${dnnl_file}: "
    "install the library beside the headers, or set DNNL_INCLUDE_DIR and DNNL_LIBRARY")
endif()
antichain_import(DNNL::dnnl ${DNNL_LIBRARY} ${DNNL_INCLUDE_DIR})
