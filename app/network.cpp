#include "app/network.h"

#include <fmt/format.h>

#include <filesystem>

#include "framework/backend.h"
#include "framework/error.h"
#include "framework/json.h"
#include "models/model.h"
#include "pipeline/agree.h"
#include "pipeline/profiler.h"

namespace antichain {

Graph lowered_network(const NetworkOptions& network, const MachineOptions& machine, float label_smoothing) {
  return lower(
      make_model(network.model, {.microbatch = network.microbatch(), .label_smoothing = label_smoothing}),
      backend(machine.device));
}

Profile read_profile(const std::string& file) { return profile_from_json(read_file(file), file); }

Plan read_plan(const std::string& file, const Profile& profile) {
  Plan plan = plan_from_json(read_file(file), file);
  validate(plan, profile);
  return plan;
}

Profile obtain_profile(const PlanningOptions& planning, const NetworkOptions& network, const Graph& lowered,
                       Context& context, Transport& transport) {
  if (planning.profile_file.empty()) {
    return measure(lowered, context, transport, {.microbatches = network.microbatches});
  }
  const std::string& file = planning.profile_file;
  const Profile profile = profile_from_json(on_rank_zero(transport, [&] { return read_file(file); }), file);
  if (profile.graph_hash != lowered.hash()) {
    throw Error(
        fmt::format("{} is the profile of {} with micro-batches of {}, which is not the network of this run",
                    file, profile.model, profile.microbatch),
        fmt::format("this run is {} with micro-batches of {} on this machine's layouts: profile it again",
                    lowered.model(), lowered.microbatch()));
  }
  return profile;
}

Schedule obtain_schedule(const std::string& name_or_file, const Profile& profile, const Plan& plan,
                         int microbatches) {
  if (!std::filesystem::is_regular_file(name_or_file)) {
    return make_schedule(profile, plan, policy(name_or_file), microbatches);
  }
  const Schedule schedule = parse_schedule(read_file(name_or_file), name_or_file);
  if (schedule.microbatches != microbatches) {
    throw Error(fmt::format("{} is a schedule of {} micro-batches", name_or_file, schedule.microbatches),
                fmt::format("give --microbatches {}", schedule.microbatches), ExitCode::usage);
  }
  validate(schedule, profile, plan);
  return schedule;
}

}  // namespace antichain
