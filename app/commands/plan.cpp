// antichain plan cuts a network into stages. It needs only a profile; without one it measures first.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "app/cli/checks.h"
#include "app/cli/commands.h"
#include "app/cli/number_text.h"
#include "app/cli/option_row.h"
#include "app/cli/output_file.h"
#include "app/job/agreement.h"
#include "app/job/job.h"
#include "app/obtain/given_files.h"
#include "app/obtain/lowered_network.h"
#include "app/obtain/profile.h"
#include "app/options/options.h"
#include "app/report/compare.h"
#include "app/report/explanation.h"
#include "app/report/memory_curve.h"
#include "app/report/plan_report.h"
#include "app/report/report.h"
#include "app/train/optimiser_options.h"
#include "framework/error.h"
#include "framework/json.h"
#include "framework/known_names.h"
#include "models/model.h"
#include "partition/plan/runtime_format.h"
#include "partition/search/dot.h"
#include "pipeline/host/launch.h"
#include "pipeline/schedule/policy.h"

namespace antichain {
namespace {

constexpr int drawn_antichains = 1000;  // Graphviz takes minutes for more, and nobody reads them

struct PlanCommandOptions {
  NetworkOptions network;
  MachineOptions machine;
  OptimiserOptions optimiser;
  PlanningOptions planning;
  ScheduleOptions schedule;
  bool compare = false, memory_curve = false, explain = false;
  std::string json_file, dot_file, antichains_file;
  std::string runtime, runtime_file;

  bool writes_plan() const { return !(json_file + dot_file + runtime).empty(); }
  std::vector<std::string> outputs() const { return {json_file, dot_file, antichains_file, runtime_file}; }
};

void check(const PlanCommandOptions& o) {
  check(o.schedule);
  check(o.planning, o.schedule.schedule, o.compare, !o.antichains_file.empty());
  if (o.compare && !o.planning.plan_file.empty())
    throw Error("--compare makes a plan by every method, but --plan gives one", "leave out one of them",
                ExitCode::usage);
  if (o.explain && (o.compare || o.memory_curve))
    throw Error("--explain is about one plan, but --compare and --memory-curve make many",
                "leave out one of them", ExitCode::usage);
  if (o.memory_curve &&
      (o.compare || !o.planning.plan_file.empty() || o.writes_plan() || o.planning.memory_bytes >= 0 ||
       o.planning.recompute != "none" || method(o.planning.method) != Method::antichain))
    throw Error(
        "--memory-curve plans by the method antichain for twelve limits of memory and prints the steps, so "
        "it takes no other method, no plan, no limit and no --recompute, and writes no plan",
        "give it without these, or plan with --memory-bytes and --recompute auto", ExitCode::usage);
  if (o.runtime.empty() && !o.runtime_file.empty())
    throw Error("--out is the file of a plan for another runtime, but none is named", "give --for, too",
                ExitCode::usage);
  std::error_code ignored;
  if (o.schedule.schedule == planned_order) return;
  if (!is_training_policy(o.schedule.schedule) && std::filesystem::exists(o.schedule.schedule, ignored))
    throw Error(fmt::format("{} is a schedule of one plan, but plan compares many: it takes {}",
                            o.schedule.schedule, training_policies_in_words()),
                "give the file to antichain simulate", ExitCode::usage);
  if (!is_training_policy(o.schedule.schedule))
    refuse_name("schedule", o.schedule.schedule, schedule_names());
}

std::string draw_antichains(const Profile& profile, int64_t max_states) {
  const CutGraph graph = cut_graph(profile);
  std::optional<AntichainDag> dag;
  if (auto cover = chain_cover(graph)) dag = AntichainDag::build(graph, std::move(*cover), max_states);
  if (!dag)
    throw Error(
        fmt::format("{} has more antichains than the {} that --max-states allows, so they can't be drawn",
                    profile.model, grouped(max_states)),
        "raise --max-states or leave out --dot-antichains");
  return to_dot(*dag, profile, drawn_antichains);
}

void write_plan(const PlanCommandOptions& options, const Plan& plan, const Profile& profile) {
  write_output(options.json_file, to_json(plan, profile));
  if (!options.dot_file.empty()) write_output(options.dot_file, to_dot(plan, profile));
  if (!options.runtime.empty()) write_output(options.runtime_file, plan_for(options.runtime, plan, profile));
}

void compare(const PlanCommandOptions& options, const Profile& profile, const PlanTask& task) {
  const Comparison comparison(profile, task);
  fmt::print("{}", comparison.str());
  if (options.writes_plan()) write_plan(options, comparison.plan(task.method), profile);
}

// Returns whether the runtime can read the plan that the task makes.
bool can_be_written(const std::string& runtime, const Profile& profile, const PlanTask& task) {
  try {
    plan_for(runtime, plan_here(profile, task), profile);
    return true;
  } catch (const Error&) {
    return false;
  }
}

// Has the network cut only where the runtime can cut it.
void keep_layers_whole(const std::string& runtime, const Profile& profile, PlanTask& task) {
  PlanOptions& options = task.options;
  Layers layers = layers_for(runtime, profile);
  const int stages = options.stages * options.chunks, most = int(layers.size());
  if (options.replicas.off() && !options.at_most && most < stages)
    throw Error(fmt::format("{} stages are asked for, but {} can be cut into {} at most for {}", stages,
                            profile.model, most, runtime),
                "plan for fewer stages, or with --at-most");
  options.together = layers_for(runtime, profile, SplitCuts::one_by_one);
  if (int(options.together.size()) > most && task.method == Method::antichain &&
      !can_be_written(runtime, profile, task))
    options.together = std::move(layers);
}

void answer(const PlanCommandOptions& options, const GivenFiles& given, const Profile& profile, int ranks) {
  begin_answer();
  PlanTask task =
      plan_task(options.planning, given, profile, options.schedule, options.network.microbatches, ranks);
  if (!options.runtime.empty() && options.planning.plan_file.empty())
    keep_layers_whole(options.runtime, profile, task);
  if (!options.antichains_file.empty())
    write_output(options.antichains_file, draw_antichains(profile, options.planning.max_states));
  if (options.compare) return compare(options, profile, task);
  if (options.memory_curve) {
    fmt::print("{}", describe(memory_curve(profile, task), profile, task, grid_width(0)));
    return;
  }
  const Plan plan = obtain_plan(given, profile, task);
  const Schedule schedule = task.choice.schedule(profile, plan, task.options);
  fmt::print("{}{}{}\n{}", describe(plan, profile, task), describe_step(plan, profile, task),
             describe_faster(plan, profile, task), describe_memory(plan, profile, schedule));
  if (options.explain) fmt::print("{}", explain(plan, profile, task));
  write_plan(options, plan, profile);
}

// This needs no device, and no ranks but the one that prints.
void plan_a_profile(const PlanCommandOptions& options) {
  check_writable(options.outputs());
  if (rank_hint() > 0) return;  // under mpirun rank 0 plans
  const GivenFiles given = read_given_files(options.planning, options.schedule.schedule);
  const int ranks = options.machine.local > 0 ? options.machine.local : std::max(1, launched_processes());
  answer(options, given, read_profile(given, options.planning), ranks);
}

void run(const PlanCommandOptions& options) {
  check(options);
  end_dry_run();
  if (!options.planning.profile_file.empty()) return plan_a_profile(options);
  run_job(options.machine, [&](Rank& rank) {
    check_schedule(options.planning, options.schedule.schedule, options.network.microbatches,
                   rank.job.size());
    const Graph graph = lowered_network(options.network, rank);
    check_same_kernels(rank, options.machine, graph);
    // 1. Read the given files.
    const GivenFiles given =
        read_given_files(options.planning, options.schedule.schedule, options.outputs(), rank.job);
    // 2. Measure what the nodes cost here.
    warn_of_crowding(rank);
    const ChosenTransport tensors = choose_transport(rank.context, rank.job, options.machine.transport);
    const Profile profile = obtain_profile(given, options.planning, options.network, graph,
                                           make_optimiser(options.optimiser), rank, tensors);
    // 3. Make the plan.
    const Progress::Computing computing(rank.job.activity());
    if (rank.prints()) answer(options, given, profile, rank.job.size());
  });
}

}  // namespace

void add_plan(CLI::App& app) {
  auto options = std::make_shared<PlanCommandOptions>();
  CLI::App& command = add_command(app, "plan", "cut a network into stages",
                                  "antichain plan --profile profile.json --stages 4 --json plan.json");
  add_planning_options(command, options->planning);
  add_measuring_options(command, options->planning);
  add_option(command, "Planning", "--compare", options->compare, {},
             "plan by every method and print them side by side; files get the plan of --method");
  add_option(command, "Planning", "--memory-curve", options->memory_curve, {},
             "print and draw the step over the memory of a device, with plans that recompute what they must");
  add_option(command, "Planning", "--explain", options->explain, {},
             "print what the step is made of, which of it binds, and what more hardware would give");
  add_schedule_option(command, options->schedule)
      ->description("what a step is predicted for: " + training_policies_in_words())
      ->type_name("NAME");
  add_network_options(command, options->network);
  add_measured_optimiser_options(command, options->optimiser);
  add_machine_options(command, options->machine);
  add_transport_option(command, options->machine);
  for (const char* option :  // a profile has the bytes and times of one network, optimiser and machine
       {"--device",
        "--cpu-isa",
        "--weight-gradients",
        "--threads",
        "--transport",
        "--model",
        "--graph",
        "--form",
        "--aux",
        "--dropout",
        "--stochastic-depth",
        "--batch",
        "--label-smoothing",
        "--soft-labels",
        "--precision",
        "--image",
        "--classes",
        "--sequence",
        "--vocabulary",
        "--freeze",
        "--optimiser",
        "--ema"})
    command.get_option(option)->excludes("--profile");
  add_output_option(command, "--json", options->json_file, "write the plan, for --plan");
  add_output_option(command, "--dot", options->dot_file, "draw the network coloured by stage, for Graphviz");
  add_output_option(command, "--dot-antichains", options->antichains_file,
                    fmt::format("draw the antichain DAG, its first {} states", grouped(drawn_antichains)));
  std::vector<std::string> runtimes;
  for (const RuntimeFormat& runtime : runtime_formats())
    runtimes.push_back(fmt::format("{} ({})", runtime.name, runtime.file));
  add_option(command, "Output", "--for NAME", options->runtime, one_of("runtime", runtime_names()),
             fmt::format("write the plan for another runtime: {}", fmt::join(runtimes, ", ")));
  add_output_option(command, "--out", options->runtime_file, "the file for --for [standard output]");
  show_first(command,
             {"--profile", "--plan", "--stages", "--method", "--replicas", "--cluster", "--memory-bytes",
              "--compare", "--schedule", "--model", "--graph", "--batch", "--microbatches", "--json"});
  command.callback([options, &command] {
    if (options->compare && command.count("--method") > 0 && !options->writes_plan())
      throw Error(
          "--compare plans by every method, and --method says whose plan a file gets, but none is named",
          "leave out --method, or name a file with --json or --dot", ExitCode::usage);
    settle_batch(options->network);
    settle_optimiser(command, recipe_of(options->network.chosen()), options->optimiser);
    if (!options->runtime.empty() && options->runtime_file.empty())
      keep_standard_output("--out", options->runtime_file = "-");
    run(*options);
  });
}

}  // namespace antichain
