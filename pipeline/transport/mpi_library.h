// Which MPI this program was linked to, asked of the library itself. It needs no MPI session.
#pragma once

#include <string>

namespace antichain {

// The library's name and version in one line: "Open MPI v4.1.4"; "no MPI" in a build without it.
std::string mpi_library();

}  // namespace antichain
