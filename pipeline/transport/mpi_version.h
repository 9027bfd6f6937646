// Which MPI this is, in a line: for records of what results were made with. Needs no MPI session.
#pragma once

#include <string>

namespace antichain {

std::string mpi_version();  // "Open MPI v4.1.4, package: …"

}  // namespace antichain
