// This file reads from the environment how this process was started. That explains errors and chooses who
// prints. It never decides ranks, which come from MPI.
#pragma once

#include <atomic>
#include <string>
#include <thread>

namespace antichain {

// Returns this process's rank before MPI is initialised, according to its launcher (Open MPI, MVAPICH, PMI,
// PMIx, Slurm). Returns 0 when no launcher is known.
int rank_hint();
// Returns how many processes of this job a launcher started; 0 where there is none, or it does not say.
int launched_processes();
// Returns whether a launcher started more than one process of this job, or does not say how many.
bool launched_in_parallel();

// Returns whether mpirun of Open MPI or Slurm says that the processes of this job are on several hosts.
bool launched_on_several_hosts();

// Returns whether a process manager started this process, alone or with others.
bool has_launcher();

std::string host_name();

int available_cores();          // on which this process may run
int available_cores_on_host();  // online on this host

// The functions below take the MPI library of this program as pipeline/transport/mpi_transport.h names it.
inline constexpr const char* no_mpi_library = "no MPI";
// Throws an Error that explains processes which were started together but did not find each other: by the
// launcher of another MPI, by Slurm without PMIx, or by a launcher that knows nothing of MPI.
void check_launch(const std::string& library, int world_size);
// Checks, before MPI is initialised, what is certain by then. Open MPI would otherwise end the process with a
// message of its own.
void check_launch(const std::string& library);

// A single rank does not start MPI, so it is not notified when mpirun is killed. A LauncherWatch notices
// that: when the process that started this one ends during the watch's life, this process gets SIGTERM. So it
// stops with everything saved (pipeline/host/stop_signals.h) instead of running on unnoticed. Without a
// launcher nothing happens.
class LauncherWatch {
 public:
  LauncherWatch();
  ~LauncherWatch();
  LauncherWatch(const LauncherWatch&) = delete;

 private:
  std::atomic<bool> done_{false};
  std::thread thread_;
};

// Returns one sentence when ranks outnumber cores, else "".
std::string crowding_warning(int ranks_on_host, int threads_per_rank);

}  // namespace antichain
