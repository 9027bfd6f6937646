# cmake/cuda.cmake and cmake/nccl.cmake share this: a part of the program that AUTO builds where its library
# is found, OFF omits, and ON requires.

# Ends the file that calls it. Where OPTION is ON this is an error, else a line that says what is used
# instead.
macro(antichain_do_without option part why otherwise)
  if(${option} STREQUAL "ON")
    message(FATAL_ERROR "${part}: ${option}=ON, but ${why}")
  endif()
  message(STATUS "${part}: ${why} (${option}=ON makes that an error); ${otherwise}")
  return()
endmacro()

# Reads "9.19.0" from three lines such as `#define CUDNN_MAJOR 9`.
function(antichain_version_in result header pattern)
  file(STRINGS ${header} version REGEX "#define ${pattern} ")
  string(REGEX REPLACE "[^0-9;]" "" version "${version}")
  list(JOIN version "." version)
  set(${result} ${version} PARENT_SCOPE)
endfunction()

function(antichain_import target library include_dir)
  add_library(${target} UNKNOWN IMPORTED GLOBAL)
  set_target_properties(${target} PROPERTIES
    IMPORTED_LOCATION ${library} INTERFACE_INCLUDE_DIRECTORIES ${include_dir})
endfunction()
