#include "app/network.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "app/checks.h"
#include "app/preflight.h"
#include "app/profile_cache.h"
#include "app/table.h"
#include "framework/backend.h"
#include "framework/error.h"
#include "framework/json.h"
#include "framework/say.h"
#include "models/model.h"
#include "partition/cut_file.h"
#include "partition/read_profile.h"
#include "pipeline/agree.h"
#include "pipeline/launch.h"
#include "pipeline/link_probe.h"
#include "pipeline/profiler.h"
#include "pipeline/starved_time.h"

namespace antichain {
namespace {

const std::vector<std::string> training_policies = {"1f1b", "gpipe"};

std::string read_schedule(const std::string& name) {
  if (is_policy(name)) return "";
  std::error_code ignored;
  if (!std::filesystem::exists(name, ignored)) {
    std::vector<std::string> known = training_policies;
    known.push_back("schedule files");
    refuse_name("schedule", name, known);
  }
  return read_file(name);
}

std::string read_if_given(const std::string& file) { return file.empty() ? "" : read_file(file); }

// Node names are taken for a file where there is one of that name.
std::string read_cuts(const std::string& cuts) {
  std::error_code ignored;
  if (cuts.empty() || !std::filesystem::exists(cuts, ignored)) return "";
  const std::string text = read_file(cuts);
  if (parse_cuts(text, cuts).empty()) throw Error(cuts + " has no cuts", "write lines such as \"2: node\"");
  return text;
}

void check_subject(const Profile& profile, const std::string& file, const Graph& lowered) {
  if (profile.ids_are_names) {
    throw Error(
        file +
            " has the prices of a network, but not its operators: it can be planned and simulated, not run",
        "use a profile of antichain profile --json");
  }
  if (profile.graph_hash == lowered.hash()) return;
  throw Error(
      fmt::format(
          "{} is the profile of {} in {} and micro-batches of {} on {} (graph {}), but this run is {} "
          "in {} and micro-batches of {} (graph {})",
          file, profile.model, name_of(profile.precision), profile.microbatch, profile.device,
          profile.graph_hash, lowered.model(), name_of(lowered.precision()), lowered.microbatch(),
          lowered.hash()),
      "profile this network on this machine");
}

// Its text, or nothing, on all ranks.
std::string kept_profile(const PlanningOptions& planning, const NetworkOptions& network, const Graph& lowered,
                         const Context& context, Transport& transport) {
  return on_rank_zero(transport, [&] {
    const ProfileCache cache(planning.profile_cache, context);
    const ProfileSubject subject =
        profile_subject(lowered, context, network.microbatches, transport.local_size());
    std::optional<Profile> kept;
    try {
      kept = cache.find(subject);
    } catch (const Error& error) {
      note(fmt::format("a kept profile is of no use: {}", error.what()));
    }
    if (!kept) return std::string();
    note(fmt::format("the profile was measured before and lies in {}; --profile-cache none measures again",
                     cache.file(subject)));
    return to_json(*kept);
  });
}

}  // namespace

bool is_policy(const std::string& schedule) {
  return std::ranges::find(training_policies, schedule) != training_policies.end();
}

Graph lowered_network(const NetworkOptions& network, const MachineOptions& machine) {
  const Backend& device = backend(machine.device);
  device.enter(Context(device, machine.threads));  // what an engine chooses may depend on its thread count
  return lower(make_model(network.model, {.form = network.form == "cifar" ? Form::cifar : Form::imagenet,
                                          .microbatch = network.microbatch(),
                                          .classes = network.classes,
                                          .image = network.image,
                                          .label_smoothing = float(network.label_smoothing),
                                          .dropout = network.dropout,
                                          .aux = network.aux}),
               device, parse_precision(network.precision));
}

GivenFiles read_given_files(const PlanningOptions& planning, const std::string& schedule) {
  return {.profile = read_if_given(planning.profile_file),
          .plan = read_if_given(planning.plan_file),
          .cluster = read_if_given(planning.cluster_file),
          .cuts = read_cuts(planning.cuts),
          .schedule = read_schedule(schedule)};
}

GivenFiles read_given_files(const PlanningOptions& planning, const std::string& schedule,
                            const std::vector<std::string>& outputs, Transport& transport) {
  GivenFiles mine;
  on_rank_zero(transport, [&] {
    check_writable(outputs);
    mine = read_given_files(planning, schedule);
    return "";
  });
  return {.profile = transport.broadcast(mine.profile),
          .plan = transport.broadcast(mine.plan),
          .cluster = transport.broadcast(mine.cluster),
          .cuts = transport.broadcast(mine.cuts),
          .schedule = transport.broadcast(mine.schedule)};
}

Profile given_profile(const GivenFiles& given, const PlanningOptions& planning, const Graph& lowered) {
  const Profile profile = read_profile(given.profile, planning.profile_file);
  check_subject(profile, planning.profile_file, lowered);
  return profile;
}

Profile measured_profile(const PlanningOptions& planning, const NetworkOptions& network, const Graph& lowered,
                         Context& context, Transport& transport, double seconds) {
  if (context.backend().host_memory())
    check_memory(transport, MemoryOf::profiling,
                 profiling_need(lowered, context.backend(), network.microbatches));
  MeasureOptions options{.microbatches = network.microbatches};
  if (!context.backend().host_memory()) options.budget_s = 1.5;  // its times hardly vary
  if (seconds > 0) options.budget_s = seconds;
  double starved_share = 0;
  options.starved_share = &starved_share;
  const Profile profile = measure(lowered, context, transport, options);
  if (transport.rank() != 0) return profile;
  if (starved_share > doubtful_starved_share &&
      crowding_warning(transport.local_size(), context.threads()).empty())
    note(
        fmt::format("while nodes were timed, a rank was ready to run but had no core for {} % of the time: "
                    "profile again when nothing else runs there",
                    percent(starved_share)));
  try {
    const ProfileCache cache(planning.profile_cache, context);
    cache.keep(profile_subject(lowered, context, network.microbatches, transport.local_size()), profile);
  } catch (const std::exception& error) {  // a run needs no kept profile
    note(fmt::format("the measured profile is not kept: {}", error.what()));
  }
  return profile;
}

Profile obtain_profile(const GivenFiles& given, const PlanningOptions& planning,
                       const NetworkOptions& network, const Graph& lowered, Context& context,
                       Transport& transport) {
  if (!planning.profile_file.empty()) return given_profile(given, planning, lowered);
  const std::string kept = kept_profile(planning, network, lowered, context, transport);
  if (kept.empty()) return measured_profile(planning, network, lowered, context, transport);
  Profile profile = profile_from_json(kept, "the kept profile of rank 0");
  profile.link = measure_link(transport);
  return profile;
}

Schedule obtain_schedule(const GivenFiles& given, const std::string& name, const Profile& profile,
                         const Plan& plan, int microbatches) {
  if (is_policy(name)) return make_schedule(profile, plan, policy(name), microbatches);
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
