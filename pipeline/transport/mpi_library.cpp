#include "pipeline/transport/mpi_library.h"

#include <mpi.h>

#include <algorithm>
#include <string_view>

namespace antichain {

std::string mpi_library() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  MPI_Get_library_version(text, &length);  // may be called before MPI is up
  std::string line(text);
  line.resize(std::min(line.size(), line.find_first_of("\n,")));
  // Open MPI begins with "Open MPI v4.1.4, package", and MPICH with "MPICH Version:" and a tab.
  constexpr std::string_view word = " Version:";
  const size_t at = line.find(word);
  if (at == std::string::npos) return line;
  return line.replace(at, line.find_first_not_of(" \t", at + word.size()) - at, " ");
}

}  // namespace antichain
