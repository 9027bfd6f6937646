# In a build for a wheel (pyproject.toml), `cmake --install` puts the program into bin/ and libantichain with
# the libraries that it needs into lib/, all within the Python package.
#
# The libraries find each other by the program's RPATH. It is a DT_RPATH, because that is searched for what
# libraries need, too, and a DT_RUNPATH only for what the program itself needs. What belongs to the C library
# stays the system's.
set_target_properties(antichain PROPERTIES VERSION ${PROJECT_VERSION_MAJOR})  # a wheel has no symbolic links
target_link_options(antichain PRIVATE -Wl,--disable-new-dtags)
target_link_options(antichain_program PRIVATE -Wl,--disable-new-dtags)
set_target_properties(antichain PROPERTIES INSTALL_RPATH "$ORIGIN")
set_target_properties(antichain_program PROPERTIES INSTALL_RPATH "$ORIGIN/../lib")
install(TARGETS antichain_program RUNTIME DESTINATION bin)
install(TARGETS antichain LIBRARY DESTINATION lib NAMELINK_SKIP)
antichain_install_libraries(lib "^$")
