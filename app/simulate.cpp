// antichain simulate: what a step of a plan under a schedule will look like, and how long it takes.
//
//   antichain simulate --profile profile.json --plan plan.json --microbatches 8 --schedule gpipe
#include <fmt/format.h>

#include <memory>

#include "app/commands.h"
#include "app/network.h"
#include "app/report.h"
#include "framework/error.h"
#include "framework/json.h"

namespace antichain {
namespace {

struct SimulateOptions {
  PlanningOptions planning;
  ScheduleOptions schedule;
  int microbatches = 8, width = 100;
  std::string json_file, trace_file, schedule_file;
};

void run(const SimulateOptions& options) {
  // 1. The network's prices, and where it is cut.
  const Profile profile = read_profile(options.planning.profile_file);
  if (options.planning.plan_file.empty() && options.planning.stages == 0) {
    throw Error("simulate needs a plan", "give --plan FILE or --stages S", ExitCode::usage);
  }
  const Plan plan = options.planning.plan_file.empty()
                        ? options.planning.plan(profile, options.planning.stages)
                        : read_plan(options.planning.plan_file, profile);
  // 2. Who does what when.
  const Schedule schedule = obtain_schedule(options.schedule.schedule, profile, plan, options.microbatches);
  // 3. How long that takes.
  const Timeline timeline = simulate(schedule, plan, profile, options.planning.link(profile));
  fmt::print("{}\n{}\n{}", describe(plan, profile), draw(timeline, plan.ranks(), options.width),
             describe(timeline, plan, profile, schedule));
  // 4. Files.
  if (!options.json_file.empty())
    write_file(options.json_file, simulation_json(timeline, plan, profile, schedule));
  if (!options.schedule_file.empty()) write_file(options.schedule_file, print(schedule));
  if (!options.trace_file.empty()) {
    write_file(options.trace_file, to_chrome_trace(to_trace(timeline), "predicted: " + profile.model));
  }
}

}  // namespace

void add_simulate(CLI::App& app) {
  auto options = std::make_shared<SimulateOptions>();
  CLI::App& command =
      add_command(app, "simulate", "predict a training step from a profile, a plan and a schedule",
                  "antichain simulate --profile profile.json --stages 4 --microbatches 8 --trace trace.json");
  add_planning_options(command, options->planning);
  command.get_option("--profile")->required();
  add_schedule_option(command, options->schedule);
  command.add_option("--microbatches", options->microbatches, "micro-batches of a step")
      ->capture_default_str()
      ->check(CLI::PositiveNumber)
      ->group("Schedule");
  command.add_option("--width", options->width, "of the drawn grid, in characters")
      ->capture_default_str()
      ->check(CLI::Range(40, 1000))
      ->group("Output");
  add_json_option(command, options->json_file);
  command
      .add_option("--trace", options->trace_file, "write a timeline for ui.perfetto.dev or chrome://tracing")
      ->type_name("FILE")
      ->group("Output");
  command
      .add_option("--write-schedule", options->schedule_file,
                  "write the schedule as text, for --schedule FILE")
      ->type_name("FILE")
      ->group("Output");
  command.callback([options] { run(*options); });
}

}  // namespace antichain
