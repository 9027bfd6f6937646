# Finds cuDNN and NCCL: beside the toolkit, in CUDNN_HOME and NCCL_HOME, in the system's folders, or as
# Python's packages, which have folders of their own and no links without a version.
execute_process(COMMAND python3 -c "import glob, site
print(*(f for p in site.getsitepackages() for f in glob.glob(p + '/nvidia/*')), sep=';', end='')"
  OUTPUT_VARIABLE wheels ERROR_QUIET)
find_path(CUDNN_INCLUDE_DIR cudnn_graph.h HINTS ${CUDAToolkit_INCLUDE_DIRS} ENV CUDNN_HOME PATHS ${wheels} PATH_SUFFIXES include)
find_library(CUDNN_LIBRARY NAMES cudnn libcudnn.so.9 HINTS ${CUDAToolkit_LIBRARY_DIR} ENV CUDNN_HOME
  PATHS ${wheels} PATH_SUFFIXES lib lib64)
find_path(NCCL_INCLUDE_DIR nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS} ENV NCCL_HOME PATHS ${wheels} PATH_SUFFIXES include)
find_library(NCCL_LIBRARY NAMES nccl libnccl.so.2 HINTS ${CUDAToolkit_LIBRARY_DIR} ${CUDAToolkit_LIBRARY_ROOT} ENV NCCL_HOME
  PATHS ${wheels} PATH_SUFFIXES lib lib64)
