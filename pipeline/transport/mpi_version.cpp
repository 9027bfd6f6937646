#include "pipeline/transport/mpi_version.h"

#include "pipeline/transport/mpi_check.h"

namespace antichain {

std::string mpi_version() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  MPI_Get_library_version(text, &length);
  const std::string all(text);
  return all.substr(0, all.find('\n'));
}

}  // namespace antichain
