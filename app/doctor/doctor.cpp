// antichain doctor checks, before a run, that everything the run needs is there.
#include "app/doctor/doctor.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <filesystem>
#include <memory>

#include "app/cli/checks.h"
#include "app/cli/commands.h"
#include "app/cli/option_row.h"
#include "app/cli/output_file.h"
#include "app/obtain/data_options.h"
#include "app/obtain/plan_task.h"
#include "app/obtain/profile.h"
#include "app/obtain/schedule.h"
#include "app/options/options.h"
#include "data/obtain.h"
#include "framework/error.h"
#include "framework/files/checkpoint_folder.h"
#include "framework/json.h"
#include "pipeline/host/launch.h"
#include "pipeline/transport/agree.h"
#include "pipeline/transport/mpi_transport.h"
#include "pipeline/transport/shared_folder.h"

namespace antichain {
namespace {

struct DoctorOptions {
  MachineOptions machine;
  PlanningOptions planning;
  ScheduleOptions schedule;
  int microbatches = default_microbatches;
  std::string checkpoint_folder, data_dir, json_file;
};

// Reads the data as training would, so that it finds what is wrong with them, but downloads nothing.
void look_at_data(const std::string& data_dir, JobFacts& job) {
  const std::string path = published_folder(cifar10(), {.data_dir = data_dir});
  if (path.empty()) {
    job.data_missing = fmt::format("{} is not on this machine: train would download it, else generate images",
                                   cifar10().name);
    return;
  }
  try {
    const DataSplits data = read_data(path);
    job.data = fmt::format("{} in {}: {} images for training, {} for tests", data.train->name(), path,
                           data.train->size(), data.test->size());
  } catch (const Error& error) {
    job.data_problem = error.what();
  }
}

// Plans as the run would, for as many ranks, and adds up what a step takes.
void look_at_memory(const DoctorOptions& options, JobFacts& job) {
  const PlanningOptions& planning = options.planning;
  const std::string& asked = options.schedule.schedule;
  const GivenFiles given = read_given_files(planning, asked);
  const Profile profile = read_profile(given, planning);
  const int ranks = int(job.ranks.size());
  const PlanTask task = plan_task(planning, given, profile, options.schedule, options.microbatches, ranks);
  const Plan plan = obtain_plan(given, profile, task);
  check_ranks(plan, ranks);
  job.memory = memory_shares(obtain_schedule(given, task, profile, plan), plan, profile);
}

// Finds out whether a run could resume from what is saved there.
void look_at_checkpoints(const std::string& folder, JobFacts& job) {
  const std::vector<std::string> there = CheckpointFolder(folder).list();
  job.checkpoints = int(there.size());
  for (const std::string& checkpoint : there) try {
      verify_checkpoint(checkpoint);
      job.whole = checkpoint;
      return;
    } catch (const Damaged& damaged) {
      if (job.damaged.empty()) job.damaged = damaged.what();
    }
}

// Collective. Returns why the folder is not the same one for all ranks, or "".
std::string why_not_shared(const std::string& folder, Job& job) {
  if (folder.empty()) return "";
  try {
    check_shared_folder(folder, job);
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

// Training makes a missing folder. Then the place where it would be made counts.
std::string nearest_there(const std::string& folder) {
  if (folder.empty()) return "";
  std::filesystem::path path = folder;
  std::error_code ignored;
  while (!path.empty() && !std::filesystem::exists(path, ignored)) path = path.parent_path();
  return path.empty() ? "." : path.string();
}

void examine_job(const DoctorOptions& options, Rank& rank) {
  const std::string folder = on_rank_zero(rank.job, [&] { return nearest_there(options.checkpoint_folder); });
  JobFacts job = examine(rank, folder);
  job.not_shared = why_not_shared(folder, rank.job);
  job.threads_of_one_process = options.machine.local > 1;
  on_rank_zero(rank.job, [&]() -> std::string {
    if (!folder.empty()) look_at_checkpoints(options.checkpoint_folder, job);
    look_at_data(options.data_dir, job);
    if (!options.planning.profile_file.empty()) look_at_memory(options, job);
    const std::vector<Finding> findings = diagnose(job);
    begin_answer();
    fmt::print("{}{}", describe(findings), describe_memory(job));
    std::fflush(stdout);
    write_output(options.json_file, to_json(findings));
    if (worst(findings) == Health::problem) throw Error("there are problems", "follow the advice above");
    return "";
  });
}

void run(const DoctorOptions& options) {
  check(options.planning, options.schedule.schedule);
  check_writable({options.json_file});
  end_dry_run();
  if (options.machine.local == 0 && !launched_in_parallel()) check_launch(mpi_library(), 1);
  run_job(options.machine, [&](Rank& rank) { examine_job(options, rank); });
}

}  // namespace

void add_doctor(CLI::App& app) {
  auto options = std::make_shared<DoctorOptions>();
  CLI::App& command = add_command(app, "doctor", "examine all that a run needs, and advise",
                                  "mpirun -n 4 antichain doctor --checkpoint run1 --data-dir D");
  const OptionGroup add(command, "Examined");
  add("--checkpoint DIR", options->checkpoint_folder, {}, "examine this folder of checkpoints");
  add("--data-dir DIR|FILE", options->data_dir, {},
      "examine the data in this folder or file [what train takes: $CIFAR10_DIR, else the cache]");
  add_planning_options(command, options->planning);
  command.get_option("--profile")->description("plan for these prices, and add up the memory of a step");
  add_schedule_option(command, options->schedule);
  add_microbatches_option(command, options->microbatches, "Schedule");
  add_machine_options(command, options->machine);
  add_output_option(command, "--json", options->json_file, "write the findings");
  show_first(command, {"--checkpoint", "--data-dir", "--profile", "--plan", "--stages", "--schedule",
                       "--microbatches", "--memory-bytes", "--local", "--json"});
  command.callback([options] { run(*options); });
}

}  // namespace antichain
