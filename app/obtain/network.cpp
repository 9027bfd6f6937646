#include "app/obtain/network.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "app/cli/checks.h"
#include "app/cli/table.h"
#include "framework/backend.h"
#include "framework/error.h"
#include "framework/json.h"
#include "models/model.h"
#include "partition/plan/cut_file.h"
#include "pipeline/host/computing_beats.h"
#include "pipeline/schedule/policy.h"
#include "pipeline/transport/agree.h"

namespace antichain {
namespace {

std::string read_schedule(const std::string& name) {
  if (is_training_policy(name)) return "";
  std::error_code ignored;
  if (!std::filesystem::exists(name, ignored)) {
    std::vector<std::string> known = training_policies();
    known.push_back("schedule files");
    refuse_name("schedule", name, known);
  }
  return read_file(name);
}

Graph named_model(const NetworkOptions& network) {
  return make_model(network.model, {.form = network.form == "cifar" ? Form::cifar : Form::imagenet,
                                    .microbatch = network.microbatch(),
                                    .classes = network.classes,
                                    .image = network.image,
                                    .label_smoothing = float(network.label_smoothing),
                                    .dropout = network.dropout,
                                    .aux = network.aux});
}

std::string read_if_given(const std::string& file) { return file.empty() ? "" : read_file(file); }

// If a file of that name exists, its content is read; otherwise the text is node names.
std::string read_cuts(const std::string& cuts) {
  std::error_code ignored;
  if (cuts.empty() || !std::filesystem::exists(cuts, ignored)) return "";
  const std::string text = read_file(cuts);
  if (parse_cuts(text, cuts).empty()) throw Error(cuts + " has no cuts", "write lines such as \"2: node\"");
  return text;
}

}  // namespace

Graph lowered_network(const NetworkOptions& network, Rank& rank) {
  rank.job.activity().doing("choosing the kernels of the network");
  const ComputingBeats beats(rank.job.activity());  // engines may have to be compiled
  return lower(named_model(network), rank.context.backend(), parse_precision(network.precision));
}

Graph lowered_network(const NetworkOptions& network, const MachineOptions& machine) {
  const Backend& device = backend(machine.device);
  const Context context(device, machine.threads);
  device.enter(context);  // an engine's choice may depend on the thread count
  return lower(named_model(network), device, parse_precision(network.precision));
}

GivenFiles read_given_files(const PlanningOptions& planning, const std::string& schedule) {
  return {.profile = read_if_given(planning.profile_file),
          .plan = read_if_given(planning.plan_file),
          .cluster = read_if_given(planning.cluster_file),
          .cuts = read_cuts(planning.cuts),
          .schedule = read_schedule(schedule)};
}

GivenFiles read_given_files(const PlanningOptions& planning, const std::string& schedule,
                            const std::vector<std::string>& outputs, Job& job) {
  GivenFiles mine;
  on_rank_zero(job, [&] {
    check_writable(outputs);
    mine = read_given_files(planning, schedule);
    return "";
  });
  return {.profile = job.broadcast(mine.profile),
          .plan = job.broadcast(mine.plan),
          .cluster = job.broadcast(mine.cluster),
          .cuts = job.broadcast(mine.cuts),
          .schedule = job.broadcast(mine.schedule)};
}

Schedule obtain_schedule(const GivenFiles& given, const std::string& name, const Profile& profile,
                         const Plan& plan, int microbatches) {
  if (is_training_policy(name)) return make_schedule(profile, plan, policy(name), microbatches);
  const Schedule schedule = parse_schedule(given.schedule, name);
  if (schedule.microbatches != microbatches) {
    throw Error(fmt::format("{} is a schedule of {}", name,
                            counted(schedule.microbatches, "micro-batch", "micro-batches")),
                fmt::format("give --microbatches {}", schedule.microbatches), ExitCode::usage);
  }
  if (int(schedule.ranks.size()) != plan.ranks()) {
    throw Error(fmt::format("{} is a schedule of {}, but the plan has {}", name,
                            counted(int64_t(schedule.ranks.size()), "rank"), plan.ranks()),
                "write it again by antichain simulate --write-schedule", ExitCode::usage);
  }
  validate(schedule, profile, plan);
  return schedule;
}

Schedule obtain_training_schedule(const GivenFiles& given, const std::string& name, const Profile& profile,
                                  const Plan& plan, int microbatches) {
  const Schedule schedule = obtain_schedule(given, name, profile, plan, microbatches);
  if (!learns(schedule))
    throw Error(fmt::format("{} has no backward: it evaluates, and trains nothing", name),
                "write a schedule to train with by antichain simulate --write-schedule");
  return schedule;
}

}  // namespace antichain
