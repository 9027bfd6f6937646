// Which MPI this program was linked to, asked of the library itself.
#pragma once

#include <string>

namespace antichain {

std::string mpi_library();  // "Open MPI v4.1.4, …": one line

}  // namespace antichain
