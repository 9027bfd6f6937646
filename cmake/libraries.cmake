# Installs the libraries that the program needs into a folder, but those of the C library, and those whose
# names match `left_out` with what only these need.
function(antichain_install_libraries folder left_out)  # antichain_install_libraries(lib ^libmpi COMPONENT …)
  install(CODE "
    file(GET_RUNTIME_DEPENDENCIES EXECUTABLES \"$<TARGET_FILE:antichain_program>\"
      RESOLVED_DEPENDENCIES_VAR libraries
      PRE_EXCLUDE_REGEXES \"^libantichain[.]so\" \"^lib(c|m|dl|rt|pthread|resolv)[.]so\" \"^ld-linux\" \"${left_out}\"
      LIBRARIES \"$<TARGET_FILE:antichain>\")
    foreach(library IN LISTS libraries)
      cmake_path(GET library FILENAME name)
      file(REAL_PATH \"\${library}\" file)
      file(INSTALL \"\${file}\" DESTINATION \"\${CMAKE_INSTALL_PREFIX}/${folder}\" RENAME \"\${name}\")
    endforeach()" ${ARGN})
endfunction()
