// This file reads from the environment how this process was started. That explains errors and chooses who
// prints. It never decides ranks, which come from MPI.
#pragma once

#include <string>

namespace antichain {

// Returns this process's rank before MPI is initialised, according to its launcher (Open MPI, PMIx, MPICH's
// Hydra, Slurm). Returns 0 when no launcher is known.
int rank_hint();
// Returns whether a launcher started more than one process of this job.
bool launched_in_parallel();

// Returns whether a process manager started this process, alone or with others.
bool has_launcher();

std::string host_name();

int available_cores();          // on which this process may run
int available_cores_on_host();  // online on this host

// Throws an Error that explains a Slurm job whose ranks did not find each other.
void check_launch(int world_size);
// Checks the same before MPI is initialised, where there is no process manager. Open MPI would otherwise end
// the process with a message of its own.
void check_launch();

// Returns one sentence when ranks outnumber cores, else "".
std::string crowding_warning(int ranks_on_host, int threads_per_rank);

}  // namespace antichain
