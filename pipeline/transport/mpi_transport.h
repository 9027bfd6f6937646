// Here ranks are MPI processes. Sends are MPI_Isend, or MPI_Issend when ANTICHAIN_SYNCHRONOUS_SENDS is set,
// which proves that nothing relies on MPI's buffering. Waits poll, so that sends progress meanwhile and the
// watchdog's thread can enter MPI.
#pragma once

#include <memory>
#include <string>

#include "pipeline/host/watchdog.h"
#include "pipeline/transport/job_transport.h"

namespace antichain {

// An MpiSession starts MPI and its watchdog, and ends both with its scope. An exception that leaves the scope
// skips everything collective; the program then ends the job with end_job().
class MpiSession {
 public:
  // Asks for MPI_THREAD_MULTIPLE, because the watchdog sends messages, too. Throws Error when MPI lacks it.
  explicit MpiSession(double watchdog_s);
  ~MpiSession();
  MpiSession(const MpiSession&) = delete;

  JobTransport& transport() { return *transport_; }

  // Prints the sentence once for the whole job, however many ranks fail, and ends all of them with `code`.
  [[noreturn]] void end_job(const std::string& sentence, int code);
  // Every rank calls this, all with the same words: the job ends with `code`, and no rank takes others down.
  [[noreturn]] void end_together(const std::string& sentence, int code);

 private:
  void close();

  std::unique_ptr<JobTransport> transport_;
  std::unique_ptr<Watchdog> watchdog_;
};

// Returns the MPI library's name and version in one line: "Open MPI v4.1.4"; "no MPI" in a build without
// it. This needs no MPI session.
std::string mpi_library();

}  // namespace antichain
