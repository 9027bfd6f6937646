// antichain simulate shows what a step of a plan under a schedule will look like, and how long it takes.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <memory>

#include "app/cli/checks.h"
#include "app/cli/commands.h"
#include "app/cli/number_text.h"
#include "app/cli/option_row.h"
#include "app/cli/output_file.h"
#include "app/obtain/given_files.h"
#include "app/obtain/profile.h"
#include "app/obtain/schedule.h"
#include "app/options/options.h"
#include "app/report/plan_figures.h"
#include "app/report/plan_report.h"
#include "app/report/report.h"
#include "app/report/schedule_comparison.h"
#include "app/report/timeline_page.h"
#include "framework/error.h"
#include "framework/json.h"
#include "pipeline/host/launch.h"
#include "pipeline/host/seconds.h"
#include "pipeline/program/program.h"
#include "pipeline/simulate/trace_events.h"

namespace antichain {
namespace {

struct SimulateOptions {
  PlanningOptions planning;
  ScheduleOptions schedule;
  int microbatches = default_microbatches, width = 0;  // 0: the terminal's
  bool compare = false, program = false;
  std::string json_file, trace_file, plan_file, schedule_file, html_file;
};

void write_results(const SimulateOptions& options, const Profile& profile, const Plan& plan,
                   const Schedule& schedule, const Timeline& timeline) {
  if (!options.plan_file.empty()) write_output(options.plan_file, to_json(plan, profile));
  if (!options.schedule_file.empty())
    write_output(options.schedule_file, schedule_text(schedule, options.schedule_file));
  if (!options.trace_file.empty())
    write_output(options.trace_file,
                 to_chrome_trace(to_trace(timeline, profile), "predicted: " + profile.model));
}

// Returns how many of the steps in a row a picture shows: as many as let each rank reach its steady state.
int steps_to_draw(const Schedule& schedule) {
  const int most = 3 * int(schedule.ranks.size()), of_step = schedule.microbatches_of_step();
  return std::max(2, (most + of_step - 1) / of_step);
}

bool says_how_many_stages(const PlanningOptions& o) {
  return !o.plan_file.empty() || o.stages > 0 || !o.cluster_file.empty() || !o.cuts.empty() ||
         !parse_replicas(o.replicas).of_stage.empty();
}

void check_comparison(const SimulateOptions& o) {
  if (!o.json_file.empty() || !o.trace_file.empty() || !o.plan_file.empty() || !o.schedule_file.empty())
    throw Error("--compare-schedules prints a table, and has no one schedule to write to a file",
                "write the files without it, one --schedule at a time", ExitCode::usage);
}

void write_page(const SimulateOptions& options, const Profile& profile, const std::string& link,
                const std::vector<std::string>& notes, const std::vector<ShownSchedule>& schedules) {
  if (options.html_file.empty()) return;
  const PageTexts texts{.title = fmt::format("{} on {}, {}", subject(profile),
                                             counted(schedules.front().plan.ranks(), "device"),
                                             counted(options.microbatches, "micro-batch", "micro-batches")),
                        .about = fmt::format("Simulated, not measured. Link {}.", link),
                        .notes = notes};
  write_output(options.html_file, timeline_page(profile, texts, schedules));
}

void compare(const SimulateOptions& options, const GivenFiles& given, const Profile& profile) {
  begin_answer();
  const ScheduleComparison comparison =
      compare_schedules(options.planning, given, profile, options.microbatches, 1);
  fmt::print("{}", comparison.table);
  write_page(options, profile, comparison.link, comparison.notes, comparison.schedules);
}

void run(const SimulateOptions& options) {
  const PlanningOptions& planning = options.planning;
  check(planning, options.schedule.schedule);
  if (!says_how_many_stages(planning))
    throw Error("simulate needs a plan", "give --plan FILE, --stages N or --cluster FILE", ExitCode::usage);
  if (options.compare) check_comparison(options);
  check_writable(
      {options.json_file, options.trace_file, options.plan_file, options.schedule_file, options.html_file});
  if (rank_hint() > 0) return;  // under mpirun rank 0 simulates
  // 1. Get the network's costs and the plan.
  const GivenFiles given = read_given_files(planning, options.schedule.schedule);
  const auto start = std::chrono::steady_clock::now();
  const Profile profile = read_profile(given, planning);
  const double reading_s = seconds_since(start);
  if (options.compare) return compare(options, given, profile);
  const PlanTask task = plan_task(planning, given, profile, options.schedule, options.microbatches, 1);
  const Plan plan = obtain_plan(given, profile, task);
  // 2. Get the schedule.
  const Schedule schedule = obtain_schedule(given, task, profile, plan);
  // 3. Simulate it.
  const Timeline timeline = simulate(schedule, plan, profile, task.options.cluster, task.options.steps);
  begin_answer();
  const std::string faster = describe_faster(plan, profile, task);
  fmt::print("{}\n{}\n{}{}{}", describe(plan, profile, task),
             draw(timeline.steps > 1 ? simulate(first_steps(schedule, steps_to_draw(schedule)), plan, profile,
                                                task.options.cluster)
                                     : timeline,
                  plan.ranks(), grid_width(options.width)),
             describe(timeline, plan, profile, schedule, task), faster.empty() ? "" : "\n", faster);
  if (options.program) fmt::print("\n{}", print(compile(schedule, profile, plan), step_network(profile)));
  // 4. Write the files.
  if (!options.json_file.empty())
    write_output(options.json_file, simulation_json(timeline, plan, profile, schedule,
                                                    figures(plan, profile, task.options), reading_s));
  write_results(options, profile, plan, schedule, timeline);
  write_page(options, profile, task.link, {}, {shown(task, plan, schedule, timeline, profile)});
}

}  // namespace

void add_simulate(CLI::App& app) {
  auto options = std::make_shared<SimulateOptions>();
  CLI::App& command =
      add_command(app, "simulate", "predict a training step from a profile, a plan and a schedule",
                  "antichain simulate --profile profile.json --stages 4 --microbatches 8 --trace trace.json");
  add_planning_options(command, options->planning);
  command.get_option("--profile")
      ->required()
      ->description("the prices (of antichain profile --json, or graph.txt)");
  add_schedule_option(command, options->schedule);
  add_microbatches_option(command, options->microbatches, "Schedule");
  add_option(
      command, "Schedule", "--compare-schedules", options->compare, {},
      "plan and simulate every schedule, and print them side by side; with --plan, those that the plan fits")
      ->excludes("--schedule");
  add_option(command, "Schedule", "--print-program", options->program, {},
             "print which tensors each action reads and writes")
      ->excludes("--compare-schedules");
  add_width_option(command, options->width)->excludes("--compare-schedules");
  add_output_option(command, "--json", options->json_file, "write the prediction");
  add_output_option(command, "--trace", options->trace_file,
                    "write the predicted step for ui.perfetto.dev or chrome://tracing");
  add_output_option(command, "--html", options->html_file,
                    "write the timeline, or all that are compared, as a page for a browser");
  add_output_option(command, "--write-plan", options->plan_file, "write the plan, for --plan");
  add_output_option(command, "--write-schedule", options->schedule_file,
                    "write the schedule, for --schedule: as text, or as FILE.csv in the compute-only form of "
                    "PyTorch's torch.distributed.pipelining");
  show_first(command,
             {"--profile", "--plan", "--stages", "--method", "--replicas", "--cluster", "--memory-bytes",
              "--schedule", "--microbatches", "--compare-schedules", "--trace", "--html", "--json"});
  command.callback([options] { run(*options); });
}

}  // namespace antichain
