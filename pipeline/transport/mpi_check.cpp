#include "pipeline/transport/mpi_check.h"

#include <exception>

namespace antichain {

std::string mpi_error_text(int code) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  return text;
}

Communicator::Communicator() {
  ANTICHAIN_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &comm_));
  ANTICHAIN_MPI(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN));
  ANTICHAIN_MPI(MPI_Comm_rank(comm_, &rank_));
  ANTICHAIN_MPI(MPI_Comm_size(comm_, &size_));
}

Communicator::~Communicator() {
  if (std::uncaught_exceptions() == 0) MPI_Comm_free(&comm_);
}

}  // namespace antichain
