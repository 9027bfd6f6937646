# Writes app/experiment/published_table1.csv into a source file, so that an installed program has it. It runs
# again when the file changes.
set(csv ${CMAKE_CURRENT_SOURCE_DIR}/published_table1.csv)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${csv})
file(READ ${csv} published_table1)
set(published_table1_text ${CMAKE_CURRENT_BINARY_DIR}/published_table1_text.cpp)
configure_file(published_table1_text.cpp.in ${published_table1_text} @ONLY NEWLINE_STYLE LF)
