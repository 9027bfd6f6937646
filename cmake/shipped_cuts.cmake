# Writes the cut files of models/cuts into a source file, so that an installed program has them. It runs again
# when one is changed, added or removed.
file(GLOB cut_paths CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/../models/cuts/*.cuts)
list(SORT cut_paths)
set(cut_files "")
foreach(path IN LISTS cut_paths)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${path})
  cmake_path(GET path STEM LAST_ONLY model)
  file(READ ${path} text)
  string(APPEND cut_files "    {\"${model}\", R\"cuts(${text})cuts\"},\n")
endforeach()
set(shipped_cuts ${CMAKE_CURRENT_BINARY_DIR}/shipped_cuts.cpp)
configure_file(shipped_cuts.cpp.in ${shipped_cuts} @ONLY NEWLINE_STYLE LF)
