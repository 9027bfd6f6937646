// antichain plan: cut a network into stages. A profile is all it needs; without one it measures first.
#include <fmt/format.h>

#include <memory>

#include "app/checks.h"
#include "app/commands.h"
#include "app/job.h"
#include "app/network.h"
#include "app/report.h"
#include "framework/json.h"

namespace antichain {
namespace {

struct PlanCommandOptions {
  NetworkOptions network;
  MachineOptions machine;
  PlanningOptions planning;
  std::string json_file;
};

void plan_and_print(const PlanCommandOptions& options, const GivenFiles& given, const Profile& profile,
                    int ranks) {
  const int stages = options.planning.stages > 0 ? options.planning.stages : ranks;
  const Plan plan = obtain_plan(given, options.planning, profile, stages);
  fmt::print("{}", describe(plan, profile));
  if (!options.json_file.empty()) write_file(options.json_file, to_json(plan, profile));
}

// No device, and no ranks but the one that prints.
void plan_a_profile(const PlanCommandOptions& options) {
  check_writable({options.json_file});
  const GivenFiles given = read_given_files(options.planning, ScheduleOptions().schedule);
  plan_and_print(options, given, profile_from_json(given.profile, options.planning.profile_file), 1);
}

void run(const PlanCommandOptions& options) {
  if (!options.planning.profile_file.empty()) return plan_a_profile(options);
  const Graph graph = lowered_network(options.network, options.machine);
  run_job(options.machine, [&](Rank& rank) {
    // 1. What was given.
    const GivenFiles given =
        read_given_files(options.planning, ScheduleOptions().schedule, {options.json_file}, rank.transport);
    // 2. What the nodes cost here.
    warn_of_crowding(rank);
    const Profile profile =
        obtain_profile(given, options.planning, options.network, graph, rank.context, rank.transport);
    // 3. The plan.
    if (rank.prints()) plan_and_print(options, given, profile, rank.transport.size());
  });
}

}  // namespace

void add_plan(CLI::App& app) {
  auto options = std::make_shared<PlanCommandOptions>();
  CLI::App& command = add_command(app, "plan", "cut a network into stages",
                                  "antichain plan --profile profile.json --stages 4 --json plan.json");
  add_network_options(command, options->network);
  add_machine_options(command, options->machine);
  add_planning_options(command, options->planning);
  add_output_option(command, "--json", options->json_file, "write the plan, for --plan");
  command.callback([options] { run(*options); });
}

}  // namespace antichain
