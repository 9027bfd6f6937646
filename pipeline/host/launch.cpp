#include "pipeline/host/launch.h"

#include <fmt/format.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string_view>

#include "framework/error.h"
#include "framework/say.h"

namespace antichain {
namespace {

int number(const char* variable, int otherwise) {
  const char* text = std::getenv(variable);
  return text && *text ? std::atoi(text) : otherwise;
}

// A Launcher tells every process its rank and how many it started by these variables. They are its own only
// where `sign` is set, too.
struct Launcher {
  const char *name, *rank, *size, *sign;
  bool as_srun = false;  // Slurm's srun sets them as well
};

constexpr Launcher launchers[] = {
    {"the mpirun of Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", ""},
    {"the mpirun of MVAPICH", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", ""},
    {"the mpiexec of MPICH, Intel MPI or another MPI with PMI", "PMI_RANK", "PMI_SIZE", "", true},
    {"a launcher with PMIx", "PMIX_RANK", "", "", true},
    {"Slurm", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_ID", true},
    {"torchrun", "", "WORLD_SIZE", "TORCHELASTIC_RUN_ID"}};

bool is_set(const char* variable) { return *variable && std::getenv(variable); }

bool is_there(const Launcher& launcher) {
  return (!*launcher.sign || is_set(launcher.sign)) && (is_set(launcher.rank) || is_set(launcher.size));
}

int size_of(const Launcher& launcher) { return is_there(launcher) ? number(launcher.size, 0) : 0; }
int rank_of(const Launcher& launcher) { return is_there(launcher) ? number(launcher.rank, -1) : -1; }

bool is_open_mpi(const std::string& library) { return library.starts_with("Open MPI"); }

// Says how ranks of this MPI are started.
std::string start_right(const std::string& library, int ranks) {
  if (library == no_mpi_library) return fmt::format("this build has no MPI: use --local {}", ranks);
  return fmt::format("start it with: srun --mpi={1} -n {0} antichain … (or mpirun -n {0} antichain …)", ranks,
                     is_open_mpi(library) ? "pmix" : "pmi2");
}

}  // namespace

int rank_hint() {
  for (const Launcher& launcher : launchers)
    if (const int rank = rank_of(launcher); rank >= 0) return rank;
  return 0;
}

int launched_processes() { return size_of(std::ranges::max(launchers, {}, size_of)); }

bool launched_in_parallel() {
  const int most = launched_processes();
  return most > 1 || (most == 0 && std::ranges::any_of(launchers, is_there));  // MPI knows their number
}

bool launched_on_several_hosts() {
  const int here = number("OMPI_COMM_WORLD_LOCAL_SIZE", 0);
  return (here > 0 && here < number("OMPI_COMM_WORLD_SIZE", 0)) || number("SLURM_STEP_NUM_NODES", 0) > 1;
}

bool has_launcher() {
  for (char** variable = environ; *variable; ++variable)
    for (const std::string_view manager : {"OMPI_", "PMIX_", "PMI_", "PALS_", "MV2_COMM_"})
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

void check_launch(const std::string& library) {
  if (!has_launcher()) check_launch(library, 1);
  const int tasks = number("SLURM_STEP_NUM_TASKS", 1);
  if (is_open_mpi(library) && is_set("SLURM_STEP_ID") && number("PMI_SIZE", 0) == tasks && tasks > 1 &&
      !is_set("PMIX_RANK") && rank_hint() == 0)
    note(fmt::format("Slurm started {} tasks with PMI, which {} may not know. If it can't begin, {}", tasks,
                     library, start_right(library, tasks)));
}

void check_launch(const std::string& library, int world_size) {
  if (world_size > 1) return;
  const bool step = is_set("SLURM_STEP_ID");
  const int tasks = number(step ? "SLURM_STEP_NUM_TASKS" : "SLURM_NTASKS", 1);
  bool alone = false;  // by a launcher that started one process
  for (const Launcher& launcher : launchers) {
    if (!is_there(launcher)) continue;
    const int processes = std::max(size_of(launcher), rank_of(launcher) + 1);
    if (step && launcher.as_srun && processes <= tasks) continue;
    if (processes > 1)
      throw Error(
          fmt::format("{} started {} processes, but each of them sees an MPI world of 1 rank: this "
                      "program was built with {}",
                      launcher.name, size_of(launcher) > 1 ? std::to_string(processes) : "several", library),
          library == no_mpi_library
              ? start_right(library, processes)
              : fmt::format("start it with that MPI's own mpirun -n {} antichain … (which -a mpirun "
                            "lists those that are installed)",
                            processes),
          ExitCode::usage);
    alone = true;
  }
  if (alone || tasks <= 1) return;
  throw Error(
      step ? fmt::format("Slurm started {} tasks, but each of them sees an MPI world of 1 rank", tasks)
           : fmt::format("this Slurm job has {} tasks, but the program was started once, outside of them",
                         tasks),
      start_right(library, tasks), ExitCode::usage);
}

LauncherWatch::LauncherWatch() {
  if (!has_launcher()) return;
  thread_ = std::thread([this, launcher = ::getppid()] {
    while (!done_ && ::getppid() == launcher) std::this_thread::sleep_for(std::chrono::milliseconds(100));
    if (done_) return;
    note("the launcher that started this rank has gone: it stops as by SIGTERM");
    ::kill(::getpid(), SIGTERM);
  });
}

LauncherWatch::~LauncherWatch() {
  done_ = true;
  if (thread_.joinable()) thread_.join();
}

std::string crowding_warning(int ranks_on_host, int threads_per_rank) {
  const int cores = available_cores_on_host();
  if (ranks_on_host * threads_per_rank <= cores) return "";
  return fmt::format(
      "{} ranks of {} thread(s) share {} core(s) of this host: results are the same, speed is not",
      ranks_on_host, threads_per_rank, cores);
}

}  // namespace antichain
