# Writes docs/cli.md from docs/cli.md.in and the output of --help. The target cli_docs runs it. A test runs it
# into a separate file and compares.
#
#   cmake -DPROGRAM=build/antichain -DSOURCE=docs/cli.md.in -DTARGET=docs/cli.md -P cmake/cli_docs.cmake
foreach(command info profile plan simulate rehearse train doctor export evaluate gradients check)
  execute_process(COMMAND ${PROGRAM} ${command} --help OUTPUT_VARIABLE help_${command} COMMAND_ERROR_IS_FATAL ANY)
  string(STRIP "${help_${command}}" help_${command})
endforeach()
foreach(command pack show batches)
  execute_process(COMMAND ${PROGRAM} data ${command} --help OUTPUT_VARIABLE help_data_${command} COMMAND_ERROR_IS_FATAL ANY)
  string(STRIP "${help_data_${command}}" help_data_${command})
endforeach()
configure_file(${SOURCE} ${TARGET} @ONLY NEWLINE_STYLE LF)
if(EXPECTED)
  file(READ ${EXPECTED} expected)
  file(READ ${TARGET} made)
  if(NOT expected STREQUAL made)
    message(FATAL_ERROR "${EXPECTED} is stale: build the target cli_docs, which writes it again")
  endif()
endif()
