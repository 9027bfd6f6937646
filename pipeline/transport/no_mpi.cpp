// This file replaces the mpi_* files in a build without MPI (-DANTICHAIN_MPI=OFF). Such a build refuses to be
// one of several processes, and says how to get one that can.
#include <cstdlib>

#include "framework/error.h"
#include "pipeline/host/launch.h"
#include "pipeline/transport/mpi_transport.h"

namespace antichain {

std::string mpi_library() { return no_mpi_library; }

MpiSession::MpiSession(double) {
  throw Error("this build has no MPI, so it can't be one of several processes",
              "use --local N for ranks that are threads of one process; mpirun needs the native build "
              "(-DANTICHAIN_MPI=ON)",
              ExitCode::usage);
}

MpiSession::~MpiSession() = default;

// No session is ever made.
void MpiSession::end_job(const std::string&, int code) { std::_Exit(code); }
void MpiSession::end_together(const std::string&, int code) { std::_Exit(code); }

}  // namespace antichain
