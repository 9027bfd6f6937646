#include "app/options/planning_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include <charconv>

#include "app/cli/checks.h"
#include "framework/error.h"
#include "partition/planners/planner.h"
#include "pipeline/planning/planning.h"
#include "pipeline/schedule/policy.h"

namespace antichain {
namespace {

constexpr int most_devices = 1024, most_chunks = 64;
constexpr int64_t most_bytes = int64_t(1) << 50;

std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> parts(1);
  for (const char c : list) {
    if (c == ',')
      parts.emplace_back();
    else
      parts.back().push_back(c);
  }
  return parts;
}

[[noreturn]] void refuse_replicas(const std::string& given) {
  throw Error(
      fmt::format("--replicas takes off, auto, or a count for every stage such as 2,1,1, not '{}'", given),
      "", ExitCode::usage);
}

CLI::Option* in_group(CLI::Option* option, const char* type) {
  return option->type_name(type)->group("Planning");
}

void add_files(CLI::App& app, PlanningOptions& o) {
  in_group(app.add_option("--profile", o.profile_file,
                          "use this profile (of antichain profile --json, or PipeDream's graph.txt), and "
                          "measure nothing"),
           "FILE");
  CLI::Option* split = app.add_option("--backward-split", o.backward_split,
                                      "share of a backward time in PipeDream's graph.txt that counts as the "
                                      "weight half, at nodes with more than 10,000 bytes of parameters");
  in_group(check_number(split, 0, 1), "SHARE")->default_str(fmt::format("{}", default_weight_share));
  in_group(app.add_option("--plan", o.plan_file, "use this plan (of antichain plan --json, edited or not)"),
           "FILE");
}

void add_what_is_asked(CLI::App& app, PlanningOptions& o) {
  CLI::Option* stages = app.add_option("--stages", o.stages,
                                       "stages to cut the network into; with --replicas auto or several "
                                       "stages a rank, devices [one per device of the cluster, else one "
                                       "per rank]");
  in_group(check_whole(stages, 1, most_devices), "N");
  CLI::Option* chunks =
      app.add_option("--chunks", o.chunks,
                     fmt::format("stages a rank, where the schedule has several: {} for {}, "
                                 "{} for {} [2]",
                                 stages_a_rank(Placement::loop), policies_in_words(Placement::loop),
                                 stages_a_rank(Placement::vee), policies_in_words(Placement::vee)));
  in_group(check_whole(chunks, 1, most_chunks), "N");
  CLI::Option* in_flight = app.add_option(
      "--in-flight", o.in_flight,
      "with --schedule auto: the most micro-batches that a rank may have begun and not ended, one number or "
      "one for each rank, N,N,… [as many as there are ranks]");
  in_flight->check([](const std::string& text) { return parse_in_flight(text), std::string(); });
  in_group(in_flight, "LIST");
  CLI::Option* overlap = app.add_option(
      "--overlap-steps", o.overlap_steps,
      "whether a rank begins the next step once its own update is done: on; off: all ranks end "
      "a step first; auto: on unless something needs all ranks before an update");
  in_group(check_name(overlap, "answer", {"auto", "on", "off"}), "NAME")->capture_default_str();
  app.add_flag("--at-most", o.at_most, "allow fewer stages where that is better")->group("Planning");
  CLI::Option* method =
      app.add_option("--method", o.method, fmt::format("planner: {}", fmt::join(method_names(), ", ")));
  in_group(check_name(method, "planner", method_names()), "NAME")->capture_default_str();
  CLI::Option* objective = app.add_option("--objective", o.objective,
                                          "what to minimise: compute (the slowest stage), "
                                          "compute-or-transfer (or boundary), makespan (the simulated step), "
                                          "period (from a step to the next, where steps overlap)");
  in_group(check_name(objective, "objective", objective_names()), "NAME")->capture_default_str();
  CLI::Option* replicas =
      app.add_option("--replicas", o.replicas, "off, auto, or devices of every stage: r0,r1,…");
  replicas->check([](const std::string& text) { return parse_replicas(text), std::string(); });
  in_group(replicas, "LIST")->capture_default_str();
  CLI::Option* cuts = app.add_option("--cuts", o.cuts,
                                     "for handsplit: the last node of every stage but the last, a,b,…, or a "
                                     "cut file [those shipped for the model]");
  in_group(cuts, "LIST|FILE");
  CLI::Option* states = app.add_option("--max-states", o.max_states,
                                       "antichains to search; beyond, the plan comes with a proved gap");
  in_group(check_whole(states, 1, 100'000'000), "N")->capture_default_str();
  for (CLI::Option* of_the_search : {method, replicas, cuts, states}) of_the_search->excludes("--plan");
}

void add_hardware(CLI::App& app, PlanningOptions& o) {
  in_group(app.add_option("--cluster", o.cluster_file, "devices and links [equal devices, one link]"),
           "FILE");
  CLI::Option* memory =
      app.add_option("--memory-bytes", o.memory_bytes,
                     "a hard limit for each device, such as 64GiB; 0: none [the cluster's, else "
                     "none]");
  in_group(check_size(memory, most_bytes), "SIZE");
  CLI::Option* speed =
      app.add_option("--link-bytes-per-s", o.link_bytes_per_s,
                     "bandwidth between devices, such as 12GB; 0: infinite [the cluster's, else "
                     "the profile's]");
  in_group(check_rate(speed, 1e15), "SIZE");
  CLI::Option* latency =
      app.add_option("--link-latency-s", o.link_latency_s,
                     "latency between devices, such as 20us [the cluster's, else the profile's]");
  in_group(check_time(latency, 0, 1e6), "TIME");
}

}  // namespace

std::vector<int> parse_in_flight(const std::string& text) {
  std::vector<int> limits;
  for (const std::string& part : text.empty() ? std::vector<std::string>() : split(text)) {
    int limit = 0;
    const auto [end, code] = std::from_chars(part.data(), part.data() + part.size(), limit);
    if (code != std::errc() || end != part.data() + part.size() || limit < 1)
      throw Error(fmt::format("--in-flight takes numbers from 1, such as 4 or 4,3,2,1, and not \"{}\"", text),
                  "", ExitCode::usage);
    limits.push_back(limit);
  }
  return limits;
}

Steps parse_overlap(const std::string& text) { return text == "off" ? Steps::apart : Steps::overlapped; }

Replicas parse_replicas(const std::string& text) {
  if (text == "off") return {};
  if (text == "auto") return {.automatic = true};
  Replicas replicas;
  for (const std::string& part : split(text)) {
    int count = 0;
    const auto [stop, failed] = std::from_chars(part.data(), part.data() + part.size(), count);
    if (failed != std::errc() || stop != part.data() + part.size() || count < 1 || count > most_devices)
      refuse_replicas(text);
    replicas.of_stage.push_back(count);
  }
  return replicas;
}

std::vector<std::string> parse_names(const std::string& text) {
  if (text.empty()) return {};
  const std::vector<std::string> names = split(text);
  for (const std::string& name : names)
    if (name.empty())
      throw Error(fmt::format("--cuts takes node names with a comma between them, or a file, not '{}'", text),
                  "", ExitCode::usage);
  return names;
}

void add_measuring_options(CLI::App& app, PlanningOptions& o, const std::string& seconds) {
  in_group(app.add_option(
               "--profile-cache", o.profile_cache,
               "where measured profiles are kept, to be found again for the same network, device, ranks "
               "and versions: a folder; none: measure anew; auto: $ANTICHAIN_PROFILE_CACHE, else the "
               "user's cache"),
           "FOLDER")
      ->capture_default_str();
  CLI::Option* duration =
      app.add_option(seconds, o.measure_s,
                     "about how long to measure a profile, five steps at least; shorter ones are not kept "
                     "[$ANTICHAIN_PROFILE_SECONDS, else 3, on GPUs 1.5]");
  in_group(check_number(duration, 0.01, 1e4), "X")->envname("ANTICHAIN_PROFILE_SECONDS");
}

void add_planning_options(CLI::App& app, PlanningOptions& o) {
  add_files(app, o);
  add_what_is_asked(app, o);
  add_hardware(app, o);
}

void check(const PlanningOptions& o, bool all_methods) {
  if (objective(o.objective) == Objective::period && parse_overlap(o.overlap_steps) == Steps::apart)
    throw Error("--objective period is the period of steps that overlap, but --overlap-steps is off",
                "leave out one of them", ExitCode::usage);
  if (o.backward_split && o.profile_file.empty())
    throw Error(
        "--backward-split is for times in PipeDream's graph.txt, but a profile is to be measured here",
        "leave it out, or name the file with --profile", ExitCode::usage);
  if (o.cuts.empty() || all_methods || method(o.method) == Method::handsplit) return;
  throw Error(fmt::format("--cuts are for the method handsplit, but the method is {}", o.method),
              "give --method handsplit, or leave out --cuts", ExitCode::usage);
}

}  // namespace antichain
