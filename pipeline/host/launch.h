// What the environment says about how this process was started: used to explain and to choose who prints,
// never to decide ranks (that is MPI's word).
#pragma once

#include <string>

namespace antichain {

// This process's rank as its launcher (Open MPI, PMIx, MPICH's Hydra, Slurm) says before MPI is up; 0 when
// nobody says.
int rank_hint();
// Whether a launcher started more than one process of this job.
bool launched_in_parallel();

// Whether a process manager started this one, alone or not.
bool has_launcher();

std::string host_name();

int available_cores();          // that this process may run on
int available_cores_on_host();  // online on this host

// Error that explains a Slurm job whose ranks did not find each other.
void check_launch(int world_size);
// The same before MPI begins, where no process manager is in sight: Open MPI would end the process with a
// text of its own.
void check_launch();

// One sentence when ranks outnumber cores, else "".
std::string crowding_warning(int ranks_on_host, int threads_per_rank);

}  // namespace antichain
