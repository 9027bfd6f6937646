#include "app/options.h"

#include <fmt/format.h>

#include "framework/error.h"

namespace antichain {

int NetworkOptions::microbatch() const {
  if (batch % microbatches != 0) {
    throw Error(
        fmt::format("a batch of {} can't be cut into {} micro-batches of equal size", batch, microbatches),
        "choose --batch as a multiple of --microbatches", ExitCode::usage);
  }
  return batch / microbatches;
}

Link PlanningOptions::link(const Profile& profile) const {
  Link link = profile.link;
  if (link_bytes_per_s >= 0) link.bytes_per_s = link_bytes_per_s;
  if (link_latency_s >= 0) link.latency_s = link_latency_s;
  return link;
}

Plan PlanningOptions::plan(const Profile& profile, int wanted) const {
  return planner(method)(profile, {.stages = wanted, .link = link(profile), .objective = objective});
}

void add_network_options(CLI::App& app, NetworkOptions& o) {
  const std::string group = "Network";
  app.add_option("--model", o.model, "the network (`antichain info` lists them)")
      ->capture_default_str()
      ->group(group);
  app.add_option("--batch", o.batch, "samples per step")
      ->capture_default_str()
      ->check(CLI::PositiveNumber)
      ->group(group);
  app.add_option("--microbatches", o.microbatches,
                 "parts that a batch is cut into, each sent through the pipeline")
      ->capture_default_str()
      ->check(CLI::PositiveNumber)
      ->group(group);
}

void add_machine_options(CLI::App& app, MachineOptions& o) {
  const std::string group = "Machine";
  app.add_option("--local", o.local, "run N ranks as threads of this process, without mpirun")
      ->type_name("N")
      ->check(CLI::PositiveNumber)
      ->group(group);
  app.add_option("--device", o.device, "the backend that computes")->capture_default_str()->group(group);
  app.add_option("--threads", o.threads, "threads of each rank; results are reproducible for equal counts")
      ->capture_default_str()
      ->check(CLI::PositiveNumber)
      ->group(group);
  app.add_option("--watchdog", o.watchdog_s, "end the job when a rank makes no progress for so many seconds")
      ->type_name("SECONDS")
      ->capture_default_str()
      ->check(CLI::PositiveNumber)
      ->group(group);
}

void add_planning_options(CLI::App& app, PlanningOptions& o) {
  const std::string group = "Planning";
  app.add_option("--profile", o.profile_file,
                 "use this profile (`antichain profile --json`) instead of measuring")
      ->type_name("FILE")
      ->group(group);
  app.add_option("--plan", o.plan_file, "use this plan (`antichain plan --json`)")
      ->type_name("FILE")
      ->group(group);
  app.add_option("--stages", o.stages, "stages to cut the network into (default: one per rank)")
      ->type_name("S")
      ->check(CLI::PositiveNumber)
      ->group(group);
  app.add_option("--method", o.method, fmt::format("planner: {}", fmt::join(planner_names(), ", ")))
      ->capture_default_str()
      ->group(group);
  app.add_option("--objective", o.objective,
                 "what the slowest stage minimises: compute-or-transfer, or compute alone")
      ->capture_default_str()
      ->group(group);
  app.add_option("--link-bytes-per-s", o.link_bytes_per_s, "plan for this bandwidth between ranks (0: free)")
      ->type_name("NUMBER")
      ->check(CLI::NonNegativeNumber)
      ->group(group);
  app.add_option("--link-latency-s", o.link_latency_s, "plan for this latency between ranks")
      ->type_name("NUMBER")
      ->check(CLI::NonNegativeNumber)
      ->group(group);
}

void add_schedule_option(CLI::App& app, ScheduleOptions& o) {
  app.add_option("--schedule", o.schedule,
                 "1f1b, gpipe, or a schedule file (`antichain simulate --write-schedule`)")
      ->capture_default_str()
      ->group("Schedule");
}

void add_json_option(CLI::App& app, std::string& file) {
  app.add_option("--json", file, "write the result to this file as well")->type_name("FILE")->group("Output");
}

}  // namespace antichain
