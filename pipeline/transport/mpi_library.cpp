#include "pipeline/transport/mpi_library.h"

#include <mpi.h>

namespace antichain {

std::string mpi_library() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  MPI_Get_library_version(text, &length);  // may be called before MPI is up
  const std::string all(text);
  return all.substr(0, all.find_first_of("\n,"));
}

}  // namespace antichain
