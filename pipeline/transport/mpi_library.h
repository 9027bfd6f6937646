// Asks the MPI library that this program was linked to what it is. This needs no MPI session.
#pragma once

#include <string>

namespace antichain {

// Returns the library's name and version in one line: "Open MPI v4.1.4"; "no MPI" in a build without it.
std::string mpi_library();

}  // namespace antichain
