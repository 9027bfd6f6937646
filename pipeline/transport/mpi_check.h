// This file has a macro that checks one MPI call, and communicators that free themselves. MPI_ERRORS_RETURN
// is set on every communicator: otherwise MPI ends the process itself and no check ever fires.
#pragma once

#include <mpi.h>

#include <string>

#include "framework/error.h"

namespace antichain {

std::string mpi_error_text(int code);

// A Communicator is a duplicate of the world: messages of one never meet those of another.
class Communicator {
 public:
  Communicator();
  // Frees it, except while an exception is under way, because freeing waits for ranks that may be gone.
  ~Communicator();
  Communicator(const Communicator&) = delete;

  operator MPI_Comm() const { return comm_; }
  int rank() const { return rank_; }
  int size() const { return size_; }

 private:
  MPI_Comm comm_ = MPI_COMM_NULL;
  int rank_ = 0, size_ = 1;
};

}  // namespace antichain

// Its error has the call and MPI's own words.
#define ANTICHAIN_MPI(call)                                                                              \
  do {                                                                                                   \
    if (const int mpi_code = (call); mpi_code != MPI_SUCCESS)                                            \
      throw ::antichain::Error(std::string(#call) + " failed: " + ::antichain::mpi_error_text(mpi_code), \
                               "check the network and the MPI installation of every node");              \
  } while (0)
