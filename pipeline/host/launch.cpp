#include "pipeline/host/launch.h"

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>

#include "framework/error.h"

namespace antichain {
namespace {

int number(const char* variable, int otherwise) {
  const char* text = std::getenv(variable);
  return text && *text ? std::atoi(text) : otherwise;
}

}  // namespace

int rank_hint() {
  for (const char* variable : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"})
    if (const int rank = number(variable, -1); rank >= 0) return rank;
  return 0;
}

bool launched_in_parallel() {
  return number("OMPI_COMM_WORLD_SIZE", 1) > 1 || number("PMI_SIZE", 1) > 1 ||
         (std::getenv("SLURM_STEP_ID") && number("SLURM_STEP_NUM_TASKS", 1) > 1);
}

bool has_launcher() {
  for (char** variable = environ; *variable; ++variable)
    for (const std::string_view manager : {"OMPI_", "PMIX_", "PMI_", "PALS_"})
      if (std::string_view(*variable).starts_with(manager) &&
          !std::string_view(*variable).starts_with("OMPI_MCA_") &&
          !std::string_view(*variable).starts_with("OMPI_ALLOW_"))
        return true;
  return false;
}

std::string host_name() {
  char name[256] = "";
  ::gethostname(name, sizeof name - 1);
  return name;
}

int available_cores() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  if (::sched_getaffinity(0, sizeof cores, &cores) != 0) return available_cores_on_host();
  return CPU_COUNT(&cores);
}

int available_cores_on_host() { return int(::sysconf(_SC_NPROCESSORS_ONLN)); }

void check_launch() {
  if (!has_launcher()) check_launch(1);
}

void check_launch(int world_size) {
  const bool step = std::getenv("SLURM_STEP_ID") != nullptr;
  if (world_size > 1 || std::getenv("OMPI_COMM_WORLD_SIZE") || (!step && std::getenv("PMI_SIZE"))) return;
  const int tasks = number(step ? "SLURM_STEP_NUM_TASKS" : "SLURM_NTASKS", 1);
  if (tasks <= 1) return;
  throw Error(
      step ? fmt::format("Slurm started {} tasks, but each of them sees an MPI world of 1 rank", tasks)
           : fmt::format("this Slurm job has {} tasks, but the program was started once, outside of them",
                         tasks),
      fmt::format("start it with: srun --mpi=pmix -n {0} antichain … (or mpirun -n {0} antichain …)", tasks),
      ExitCode::usage);
}

std::string crowding_warning(int ranks_on_host, int threads_per_rank) {
  const int cores = available_cores_on_host();
  if (ranks_on_host * threads_per_rank <= cores) return "";
  return fmt::format(
      "{} ranks of {} thread(s) share {} core(s) of this host: results are the same, speed is not",
      ranks_on_host, threads_per_rank, cores);
}

}  // namespace antichain
