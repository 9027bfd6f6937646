# Compiles the CUDA files of a target several at a time, because most of the time for each goes into the
# headers that all of them include. Within a group of that size, their anonymous namespaces must not have the
# same names. The suffix says for what they are compiled: cu for devices, cpp for the host. CMake itself has
# unity builds of CUDA since 3.31.
function(antichain_together target suffix size)  # antichain_together(antichain_cuda cu 6)
  get_target_property(kernels ${target} SOURCES)
  list(FILTER kernels INCLUDE REGEX "[.]cu$")
  set_source_files_properties(${kernels} PROPERTIES HEADER_FILE_ONLY ON)
  set(number 0)
  foreach(kernel IN LISTS kernels)
    cmake_path(ABSOLUTE_PATH kernel)
    math(EXPR group "${number} / ${size}")
    math(EXPR number "${number} + 1")
    string(APPEND includes_${group} "#include \"${kernel}\"\n")
  endforeach()
  foreach(part RANGE ${group})
    set(together ${CMAKE_CURRENT_BINARY_DIR}/${target}_${part}.${suffix})
    file(CONFIGURE OUTPUT ${together} CONTENT "${includes_${part}}" @ONLY)
    set_source_files_properties(${together} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    target_sources(${target} PRIVATE ${together})
  endforeach()
endfunction()
