# The NCCL module sends messages from GPU to GPU. It is built beside the CUDA module where NCCL is found.
set(staged "GPU tensors travel through host memory")
if(ANTICHAIN_NCCL STREQUAL "OFF")
  message(STATUS "NCCL: off (ANTICHAIN_NCCL=OFF); ${staged}")
  return()
endif()
if(NOT ANTICHAIN_HAVE_CUDA)
  antichain_do_without(ANTICHAIN_NCCL "NCCL" "there is no CUDA module" "not used")
endif()
find_path(NCCL_INCLUDE_DIR nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS} ENV NCCL_HOME PATH_SUFFIXES include)
find_library(NCCL_LIBRARY nccl HINTS ${CUDAToolkit_LIBRARY_DIR} ${CUDAToolkit_LIBRARY_ROOT} ENV NCCL_HOME
  PATH_SUFFIXES lib lib64)
if(NOT NCCL_INCLUDE_DIR OR NOT NCCL_LIBRARY)
  antichain_do_without(ANTICHAIN_NCCL "NCCL"
    "nccl.h or libnccl was not found; set NCCL_HOME, or NCCL_INCLUDE_DIR and NCCL_LIBRARY" ${staged})
endif()
antichain_version_in(nccl_version ${NCCL_INCLUDE_DIR}/nccl.h "NCCL_(MAJOR|MINOR|PATCH)")
if(nccl_version VERSION_LESS 2.17)  # a bound on the device's processors came with it
  antichain_do_without(ANTICHAIN_NCCL "NCCL" "${nccl_version} is older than 2.17" ${staged})
endif()
antichain_import(NCCL::nccl ${NCCL_LIBRARY} ${NCCL_INCLUDE_DIR})
message(STATUS "NCCL: ${nccl_version} (${NCCL_LIBRARY})")
set(ANTICHAIN_HAVE_NCCL ON)
