// One line per MPI call: with MPI_ERRORS_RETURN set on every communicator, an error names the call and MPI's own words.
#pragma once

#include <mpi.h>

#include <string>

#include "framework/error.h"

namespace antichain {

inline std::string mpi_error_text(int status) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(status, text, &length);
  return text;
}

}  // namespace antichain

#define ANTICHAIN_MPI(call)                                                                              \
  do {                                                                                                   \
    if (const int mpi_code = (call); mpi_code != MPI_SUCCESS)                                            \
      throw ::antichain::Error(std::string(#call) + " failed: " + ::antichain::mpi_error_text(mpi_code), \
                               "check the network and the MPI installation of every node");              \
  } while (0)
