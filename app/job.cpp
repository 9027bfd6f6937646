#include "app/job.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <deque>

#include "framework/backend.h"
#include "framework/error.h"
#include "pipeline/launch.h"
#include "pipeline/mpi_transport.h"
#include "pipeline/thread_transport.h"
#include "pipeline/watchdog.h"

namespace antichain {
namespace {

void warn_of_crowding(const Transport& transport, const MachineOptions& machine) {
  const std::string warning = crowding_warning(transport.local_size(), machine.threads);
  if (transport.rank() == 0 && !warning.empty()) fmt::print(stderr, "antichain: {}\n", warning);
}

void work_as(Transport& transport, Progress& progress, const MachineOptions& machine,
             const std::function<void(Rank&)>& work) {
  struct Finish {  // a rank that left, well or not, is not stuck
    Progress& progress;
    ~Finish() { progress.finish(); }
  } finish{progress};
  const Backend& device = backend(machine.device);
  Context context(device, machine.threads);
  device.enter(context);
  warn_of_crowding(transport, machine);
  Rank rank{transport, progress, context};
  work(rank);
}

[[noreturn]] void end_stuck_threads(const Verdict& verdict) {
  fmt::print(stderr, "antichain: {}\n", verdict.message);
  std::fflush(nullptr);
  _exit(int(ExitCode::watchdog));  // a thread is stuck: no destructor could wait for it
}

void run_threads(int ranks, const MachineOptions& machine, const std::function<void(Rank&)>& work) {
  std::deque<Progress> progress(static_cast<size_t>(ranks));
  std::vector<const Progress*> watched;
  for (Progress& p : progress) {
    p.limit(machine.watchdog_s);
    watched.push_back(&p);
  }
  const Watchdog watchdog(states_of_threads(watched), end_stuck_threads);
  run_ranks(ranks, [&](Transport& transport) {
    work_as(transport, progress[size_t(transport.rank())], machine, work);
  });
}

void run_processes(const MachineOptions& machine, const std::function<void(Rank&)>& work) {
  MpiSession session;
  try {
    check_launch(session.transport().size());
    Progress progress;
    progress.limit(machine.watchdog_s);
    const Watchdog watchdog(session.make_states(progress), [&](const Verdict& verdict) {
      session.end_job(verdict.message, int(ExitCode::watchdog));
    });
    work_as(session.transport(), progress, machine, work);
  } catch (const Error& error) {
    session.end_job(error.what(), int(error.code()));
  } catch (const std::exception& error) {
    session.end_job(error.what(), int(ExitCode::failure));
  }
}

}  // namespace

void run_job(const MachineOptions& machine, const std::function<void(Rank&)>& work) {
  if (launched_in_parallel()) {
    if (machine.local > 0) {
      throw Error("--local runs all ranks in one process, but several processes were started",
                  "leave out --local, or start without mpirun or srun", ExitCode::usage);
    }
    return run_processes(machine, work);
  }
  run_threads(std::max(machine.local, 1), machine, work);
}

}  // namespace antichain
