# Writes app/report/timeline_page.html into a source file, so that an installed program has it. It runs again
# when the file changes.
set(html ${CMAKE_CURRENT_SOURCE_DIR}/timeline_page.html)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${html})
file(READ ${html} timeline_page)
set(timeline_page_text ${CMAKE_CURRENT_BINARY_DIR}/timeline_page_text.cpp)
configure_file(timeline_page_text.cpp.in ${timeline_page_text} @ONLY NEWLINE_STYLE LF)
