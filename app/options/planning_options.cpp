#include "app/options/planning_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <sstream>

#include "app/cli/option_row.h"
#include "framework/error.h"
#include "framework/parse_number.h"
#include "partition/planners/planner.h"
#include "pipeline/schedule/policy.h"

namespace antichain {
namespace {

using enum OptionKind;

constexpr const char* group = "Planning";
constexpr int most_devices = 1024, most_chunks = 64;
constexpr int64_t most_bytes = int64_t(1) << 50;

// Other methods than the exact one search for a bound alone, which is of a step or a period, and of one stage
// a rank (pipeline/planning/planning.h).
bool searches_antichains(const PlanningOptions& o, const std::string& schedule) {
  const bool one_stage_a_rank =
      !is_training_policy(schedule) || default_chunks(policy(schedule).placement) == 1;
  return method(o.method) == Method::antichain || (of_a_step(objective(o.objective)) && one_stage_a_rank);
}

}  // namespace

std::vector<int> parse_in_flight(const std::string& text) {
  if (text.empty()) return {};
  const std::optional<std::vector<int>> limits = parse_numbers<int>(text);
  if (!limits || std::ranges::min(*limits) < 1)
    throw Error(fmt::format("--in-flight takes numbers from 1, such as 4 or 4,3,2,1, and not \"{}\"", text),
                "", ExitCode::usage);
  return *limits;
}

Steps parse_overlap(const std::string& text) { return text == "off" ? Steps::apart : Steps::overlapped; }

Replicas parse_replicas(const std::string& text) {
  if (text == "off") return {};
  if (text == "auto") return {.automatic = true};
  const std::optional<std::vector<int>> counts = parse_numbers<int>(text);
  if (!counts || std::ranges::min(*counts) < 1 || std::ranges::max(*counts) > most_devices)
    throw Error(
        fmt::format("--replicas takes off, auto, or a count for every stage such as 2,1,1, not '{}'", text),
        "", ExitCode::usage);
  return {.of_stage = *counts};
}

std::vector<std::string> parse_names(const std::string& text) {
  std::vector<std::string> names;
  std::istringstream list(text.empty() ? "" : text + ",");  // so that each name ends with a comma
  for (std::string name; std::getline(list, name, ',');) {
    if (name.empty())
      throw Error(fmt::format("--cuts takes node names with a comma between them, or a file, not '{}'", text),
                  "", ExitCode::usage);
    names.push_back(name);
  }
  return names;
}

void add_measuring_options(CLI::App& app, PlanningOptions& o, const std::string& seconds) {
  add_option(app, group, "--profile-cache FOLDER", o.profile_cache, {.names = {"auto", "none"}},
             "where measured profiles are kept, to be found again for the same network, device, ranks and "
             "versions: a folder; none: measure anew; auto: $ANTICHAIN_PROFILE_CACHE, else the user's cache",
             {speed});
  add_option(app, group, seconds + " X", o.measure_s, number_between(0.01, 1e4),
             "about how long to measure a profile, five steps at least; shorter ones are not kept "
             "[$ANTICHAIN_PROFILE_SECONDS, else 3, on GPUs 1.5]",
             {speed})
      ->envname("ANTICHAIN_PROFILE_SECONDS");
}

void add_planning_options(CLI::App& app, PlanningOptions& o) {
  const OptionGroup add(app, group);
  add("--profile FILE", o.profile_file, {},
      "use this profile (of antichain profile --json, or PipeDream's graph.txt), and measure nothing",
      {speed});
  add("--backward-split SHARE", o.backward_split, number_between(0, 1),
      fmt::format("share of a backward time in PipeDream's graph.txt that counts as the weight half, at "
                  "nodes with more than 10,000 bytes of parameters [{}]",
                  default_weight_share),
      {speed});
  add("--plan FILE", o.plan_file, {}, "use this plan (of antichain plan --json, edited or not)",
      {last_bits});  // by its replicas
  add("--stages N", o.stages, whole_between(1, most_devices),
      "stages to cut the network into; with --replicas auto or several stages a rank, devices [one per "
      "device of the cluster, else one per rank]",
      {speed});
  add("--chunks N", o.chunks, whole_between(1, most_chunks),
      fmt::format("stages a rank, where the schedule has several: {} for {}, {} for {} [2]",
                  stages_a_rank(Placement::loop), policies_in_words(Placement::loop),
                  stages_a_rank(Placement::vee), policies_in_words(Placement::vee)),
      {speed});
  add("--in-flight LIST", o.in_flight, checked_by([](const std::string& text) { parse_in_flight(text); }),
      "with --schedule auto: the most micro-batches that a rank may have begun and not ended, one number or "
      "one for each rank, N,N,… [as many as there are ranks]",
      {speed});
  add("--overlap-steps NAME", o.overlap_steps, one_of("answer", {"auto", "on", "off"}),
      "whether a rank begins the next step once its own update is done: on; off: all ranks end a step first; "
      "auto: on unless something needs all ranks before an update",
      {speed});
  add("--at-most", o.at_most, {}, "allow fewer stages where that is better", {speed});
  add("--method NAME", o.method, one_of("planner", method_names()),
      fmt::format("planner: {}", fmt::join(method_names(), ", ")), {last_bits});  // by its replicas
  add("--objective NAME", o.objective, one_of("objective", objective_names()),
      "what to minimise: compute (the slowest stage), compute-or-transfer (or boundary), load (of a stage: "
      "computing, then what it sends and receives), overlapped-load (the longer of the two), makespan (the "
      "simulated step), period (from a step to the next, where steps overlap)",
      {speed});
  add("--replicas LIST", o.replicas,
      checked_by([](const std::string& text) { parse_replicas(text); }, {"off", "auto"}),
      "off, auto, or devices of every stage: r0,r1,…", {last_bits});
  add("--shard-optimiser NAME", o.shard_optimiser, one_of("answer", {"auto", "on", "off"}),
      "whether each replica of a stage has and updates its part of the optimiser's state (ZeRO-1, on CPU "
      "ranks): on; off; auto: with --replicas auto and a limit of memory, where that fits or is no slower",
      {speed});
  add("--cuts LIST|FILE", o.cuts, {},
      "for handsplit: the last node of every stage but the last, a,b,…, or a cut file [those shipped for the "
      "model]",
      {speed});
  OptionVariable states = o.max_states;
  states.set = [set = states.set, &o](const std::string& text) {
    set(text);
    o.max_states_given = true;
  };
  add("--max-states N", states, whole_between(1, 100'000'000),
      "antichains to search; beyond, the plan comes with a proved gap", {speed});
  add("--cluster FILE", o.cluster_file, {},
      "devices, with a profile for each kind where it names them, and links [equal devices, one link]",
      {speed});
  add("--memory-bytes SIZE", o.memory_bytes, size_up_to(most_bytes),
      "a hard limit for each device, such as 64GiB; 0: none [the cluster's, else none]", {speed});
  add("--recompute NAME|FILE", o.recompute, {},
      "what stages compute again in the backward instead of keeping it: none; all; auto: what makes stages "
      "fit --memory-bytes in least time; or the nodes that a file names, one a line",
      {speed});
  add("--link-bytes-per-s SIZE", o.link_bytes_per_s, rate_up_to(1e15),
      "bandwidth between devices, such as 12GB; 0: infinite [the cluster's, else the profile's]", {speed});
  add("--link-latency-s TIME", o.link_latency_s, time_between(0, 1e6),
      "latency between devices, such as 20us [the cluster's, else the profile's]", {speed});
  for (const char* of_the_search :
       {"--method", "--replicas", "--shard-optimiser", "--cuts", "--max-states", "--recompute"})
    app.get_option(of_the_search)->excludes("--plan");
}

void check(const PlanningOptions& o, const std::string& schedule, bool all_methods, bool antichains) {
  if (objective(o.objective) == Objective::period && parse_overlap(o.overlap_steps) == Steps::apart)
    throw Error("--objective period is the period of steps that overlap, but --overlap-steps is off",
                "leave out one of them", ExitCode::usage);
  if (o.shard_optimiser == "on" && !all_methods && parse_replicas(o.replicas).off() &&
      method(o.method) != Method::data_parallel)
    throw Error("--shard-optimiser on shares the optimiser's state out among replicas, but there are none",
                "give --replicas, or leave it out", ExitCode::usage);
  if (o.shard_optimiser == "on" && is_training_policy(schedule) && policy(schedule).asynchronous())
    throw Error(fmt::format("--shard-optimiser on leaves each replica a part of the weights until all have "
                            "updated, but --schedule {} keeps older weights",
                            schedule),
                "leave out --shard-optimiser", ExitCode::usage);
  if (o.backward_split && o.profile_file.empty())
    throw Error(
        "--backward-split is for times in PipeDream's graph.txt, but a profile is to be measured here",
        "leave it out, or name the file with --profile", ExitCode::usage);
  if (o.max_states_given && !antichains && !all_methods && !searches_antichains(o, schedule))
    throw Error(fmt::format("--max-states limits a search of antichains, but the method {} makes none here",
                            o.method),
                "leave it out, or give --method antichain", ExitCode::usage);
  if (o.cuts.empty() || all_methods || method(o.method) == Method::handsplit) return;
  throw Error(fmt::format("--cuts are for the method handsplit, but the method is {}", o.method),
              "give --method handsplit, or leave out --cuts", ExitCode::usage);
}

}  // namespace antichain
