#include "app/job/job.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <new>
#include <system_error>
#include <vector>

#include "app/cli/command_line.h"
#include "app/job/job_gpus.h"
#include "framework/backend.h"
#include "framework/error.h"
#include "framework/say.h"
#include "framework/version.h"
#include "pipeline/host/host_memory.h"
#include "pipeline/host/launch.h"
#include "pipeline/transport/agree.h"
#include "pipeline/transport/mpi_transport.h"
#include "pipeline/transport/thread_transport.h"

namespace antichain {
namespace {

// A rank that prints is not stuck.
struct Printing {
  explicit Printing(Progress& progress) {
    while_writing_waits([&progress] { progress.beat(); });
  }
  ~Printing() { while_writing_waits({}); }
};

Error out_of_memory(const Rank& rank, const std::string& what) {
  return Error(
      fmt::format("rank {} of {} on {}: {}", rank.job.rank(), rank.job.size(), rank.job.host(), what), "",
      ExitCode::out_of_memory);
}

void work_as(JobTransport& job, const MachineOptions& machine, const std::function<void(Rank&)>& work) {
  const Backend& device = backend(machine.device);
  Context context(device, machine.threads, job.local_rank());
  device.enter(context);
  Rank rank{job, context};
  const Printing printing(job.activity());
  try {
    work(rank);
  } catch (const std::bad_alloc&) {
    throw out_of_memory(rank,
                        "there is no memory left: use a smaller --batch, more --microbatches, or more ranks");
  } catch (const std::system_error& error) {
    throw beyond_limits(error);
  } catch (const Error& error) {
    if (error.code() != ExitCode::out_of_memory || rank.job.size() == 1) throw;
    throw out_of_memory(rank, error.what());
  }
}

std::string program() { return fmt::format("antichain {} (revision {})", version(), revision()); }

void check_same_command(Job& job, const std::string& command) {
  const std::vector<std::string> all = job.gather("antichain " + command);
  on_rank_zero(job, [&]() -> std::string {
    if (const std::string odd = describe_odd(all, "runs", "run"); !odd.empty())
      throw Error(odd, "start every rank with the same command", ExitCode::usage);
    return "";
  });
}

// A signal or --max-time ends all ranks after the same step.
bool stopped_together(ExitCode code) { return code == ExitCode::stopped || int(code) > 128; }

// Commands of a single process use few threads, so the limits are not checked for them.
void check_threads(const MachineOptions& machine, int ranks) {
  constexpr int beside_each = 2;  // a thread that reads ahead, and one that writes a checkpoint
  check_address_space(ranks * (machine.threads + beside_each));
}

void run_processes(const MachineOptions& machine, const std::function<void(Rank&)>& work) {
  check_launch(mpi_library());
  MpiSession session(machine.watchdog_s);
  try {
    check_launch(mpi_library(), session.transport().size());
    agree(session.transport(), "the program", program());
    check_same_command(session.transport(), machine.command);
    work_as(session.transport(), machine, work);
  } catch (const Error& error) {
    if (stopped_together(error.code())) session.end_together(error.what(), int(error.code()));
    session.end_job(error.what(), int(error.code()));
  } catch (const std::exception& error) {
    session.end_job(error.what(), int(ExitCode::failure));
  }
}

}  // namespace

void warn_of_crowding(const Rank& rank) {
  const std::string warning = crowding_warning(rank.job.local_size(), rank.context.threads());
  if (rank.prints() && !warning.empty()) note(warning);
  for (const std::string& sentence : warnings_of(job_gpus(rank))) warn(sentence);
}

void warn_of_starving(const std::string& how, const Job& job, const Context& context) {
  static std::atomic_flag said;
  if (job.rank() != 0 || how.empty() || !crowding_warning(job.local_size(), context.threads()).empty() ||
      said.test_and_set())
    return;
  warn(how + ": times are doubtful, measure again when nothing else runs there");
}

void run_job(const MachineOptions& machine, const std::function<void(Rank&)>& work) {
  end_dry_run();
  say_why_cpu(machine);
  check_threads(machine, std::max(machine.local, 1));
  if (launched_in_parallel()) {
    if (machine.local > 0) {
      throw Error("--local runs all ranks in one process, but several processes were started",
                  "leave out --local, or start without mpirun or srun", ExitCode::usage);
    }
    return run_processes(machine, work);
  }
  const LauncherWatch launcher;
  run_ranks(std::max(machine.local, 1), [&](JobTransport& job) { work_as(job, machine, work); },
            {.watchdog_s = machine.watchdog_s});
}

}  // namespace antichain
