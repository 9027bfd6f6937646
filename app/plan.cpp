// antichain plan: cut a network into stages.
//
//   antichain plan --profile profile.json --stages 4 --json plan.json
//   antichain plan --model vgg16 --stages 4      profiles first
#include <fmt/format.h>

#include <memory>

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

void plan_and_print(const PlanCommandOptions& options, const Profile& profile, int ranks) {
  const PlanningOptions& planning = options.planning;
  const Plan plan = planning.plan_file.empty()
                        ? planning.plan(profile, planning.stages > 0 ? planning.stages : ranks)
                        : read_plan(planning.plan_file, profile);
  validate(plan, profile);
  fmt::print("{}", describe(plan, profile));
  if (!options.json_file.empty()) write_file(options.json_file, to_json(plan, profile));
}

void run(const PlanCommandOptions& options) {
  // A profile is all a plan needs: no device, no ranks.
  if (!options.planning.profile_file.empty()) {
    return plan_and_print(options, read_profile(options.planning.profile_file), 1);
  }
  const Graph graph = lowered_network(options.network, options.machine);
  run_job(options.machine, [&](Rank& rank) {
    const Profile profile = obtain_profile({}, options.network, graph, rank.context, rank.transport);
    if (rank.prints()) plan_and_print(options, profile, rank.transport.size());
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
  add_json_option(command, options->json_file);
  command.callback([options] { run(*options); });
}

}  // namespace antichain
