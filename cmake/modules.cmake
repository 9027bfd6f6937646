# The target antichain_modules builds what `--device cuda` loads at run time: the CUDA module, and the NCCL
# module where NCCL is found.
if(ANTICHAIN_HAVE_CUDA)
  add_custom_target(antichain_modules DEPENDS antichain_cuda)
  if(ANTICHAIN_HAVE_NCCL)
    add_dependencies(antichain_modules antichain_nccl)
  endif()
else()
  add_custom_target(antichain_modules
    COMMAND ${CMAKE_COMMAND} -E echo
      "There is no CUDA toolkit with cuDNN 9 in this build: install them and configure again (docs/gpu.md, Building)"
    COMMAND ${CMAKE_COMMAND} -E false VERBATIM)
endif()
