#include "app/commands/rehearse.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "app/cli/commands.h"
#include "app/cli/number_text.h"
#include "app/cli/option_row.h"
#include "app/cli/output_file.h"
#include "app/cli/table.h"
#include "app/job/job.h"
#include "app/obtain/given_files.h"
#include "app/obtain/profile.h"
#include "app/obtain/schedule.h"
#include "app/report/measures.h"
#include "app/report/plan_figures.h"
#include "app/report/plan_report.h"
#include "app/report/report.h"
#include "framework/error.h"
#include "framework/json.h"
#include "pipeline/host/fault.h"
#include "pipeline/host/launch.h"
#include "pipeline/rehearse/rehearse.h"
#include "pipeline/simulate/trace_events.h"
#include "pipeline/transport/agree.h"

namespace antichain {
namespace {

constexpr std::string_view device_prefix = "rehearse:";
// So many runs of the schedule follow each other where steps overlap. One of several steps is long.
constexpr int runs_in_a_row = 6, long_runs_in_a_row = 2;

// A Task is what one rehearsal is of.
struct Task {
  Profile profile;
  PlanTask planned;
  Plan plan;
  Schedule schedule;
  double time_scale = 1;
};

// Throws a usage Error where `train` was given another network than the profile's.
void check_network(const RehearseCommandOptions& o, const Profile& profile) {
  const auto refuse = [&](const std::string& given, const std::string& has) {
    throw Error(fmt::format("{} is given, but {} is the profile of {}", given, o.planning.profile_file, has),
                "leave it out, or profile that network", ExitCode::usage);
  };
  const std::string precision(name_of(profile.precision));
  if (!o.model.empty() && o.model != profile.model) refuse("the model " + o.model, profile.model);
  if (!o.precision.empty() && o.precision != precision) refuse("--precision " + o.precision, precision);
  if (o.batch > 0 && profile.microbatch > 0 && o.batch != profile.microbatch * o.microbatches)
    refuse(fmt::format("a batch of {} in {} micro-batches", o.batch, o.microbatches),
           fmt::format("micro-batches of {}", profile.microbatch));
}

// Where there is a job, it is collective.
Task make_task(const RehearseCommandOptions& o, const GivenFiles& given, int ranks,
               const std::optional<Plan>& plan, Job* job = nullptr) {
  Task task{.profile = read_profile(given, o.planning)};
  check_network(o, task.profile);
  PlanningOptions planning = o.planning;
  if (planning.stages == 0 && planning.plan_file.empty() && planning.cluster_file.empty() &&
      planning.cuts.empty() && parse_replicas(planning.replicas).of_stage.empty())
    planning.stages = ranks;
  task.planned = plan_task(planning, given, task.profile, o.schedule, o.microbatches, ranks);
  task.plan = plan ? *plan : obtain_plan(given, task.profile, task.planned);
  check_replicas_have_one_stage(task.plan);
  task.schedule = obtain_training_schedule(
      job ? broadcast_order(given, task.planned, task.profile, task.plan, *job) : given, task.planned,
      task.profile, task.plan);
  task.time_scale = o.time_scale > 0
                        ? o.time_scale
                        : comfortable_time_scale(task.profile, task.plan, task.planned.options.cluster);
  return task;
}

// These are complete on rank 0.
struct RehearsedSteps {
  std::vector<Timeline> timelines;
  std::vector<double> period_s, wall_s;  // of each

  const Timeline& median() const {
    std::vector<double> sorted = period_s;
    const auto middle = sorted.begin() + int64_t(sorted.size() - 1) / 2;
    std::ranges::nth_element(sorted, middle);
    return *std::ranges::find(timelines, *middle, &Timeline::period_s);
  }
};

double samples_per_s(const Task& task, double step_s) {
  return double(task.profile.microbatch) * task.schedule.microbatches_of_step() / step_s;
}

double difference(double predicted, double rehearsed) {
  return predicted > 0 ? rehearsed / predicted - 1 : 0;
}

std::string table(const Task& task, const Timeline& predicted, const Timeline& rehearsed) {
  using enum Table::Align;
  Table table({{"", left}, {"predicted"}, {"rehearsed"}, {"difference\n%"}});
  const auto row = [&](const std::string& what, double p, double r, int digits) {
    table.add({what, fmt::format("{:.{}f}", p, digits), fmt::format("{:.{}f}", r, digits),
               fmt::format("{:+.1f}", difference(p, r) * 100)});
  };
  const PlanOptions& options = task.planned.options;
  row("step, ms", predicted.step_s * 1e3, rehearsed.step_s * 1e3, 2);
  if (options.steps == Steps::overlapped)
    row("period, ms", predicted.period_s * 1e3, rehearsed.period_s * 1e3, 2);
  if (task.profile.microbatch > 0)
    row(fmt::format("{}/s", samples_of(task.profile)), samples_per_s(task, predicted.period_s),
        samples_per_s(task, rehearsed.period_s), 1);
  row("speedup", speedup(predicted.period_s, task.profile, options),
      speedup(rehearsed.period_s, task.profile, options), 2);
  row("bubble, %", predicted.bubble_fraction() * 100, rehearsed.bubble_fraction() * 100, 1);
  return table.str();
}

std::string json_of(const Task& task, const RehearseCommandOptions& o, const Timeline& predicted,
                    const Timeline& rehearsed, const RehearsedSteps& all) {
  const nlohmann::ordered_json json = {{"mode", "rehearsed"},
                                       {"model", task.profile.model},
                                       {"microbatch", task.profile.microbatch},
                                       {"microbatches", task.schedule.microbatches_of_step()},
                                       {"ranks", task.plan.ranks()},
                                       {"plan_hash", plan_hash(task.plan)},
                                       {"time_scale", task.time_scale},
                                       {"payload", o.payload},
                                       {"predicted_step_s", predicted.step_s},
                                       {"rehearsed_step_s", rehearsed.step_s},
                                       {"predicted_period_s", predicted.period_s},
                                       {"rehearsed_period_s", rehearsed.period_s},
                                       {"predicted_bubble_share", predicted.bubble_fraction()},
                                       {"rehearsed_bubble_share", rehearsed.bubble_fraction()},
                                       {"rehearsed_busy_s", rehearsed.busy_s},
                                       {"rehearsed_steps_s", all.period_s},
                                       {"wall_steps_s", all.wall_s}};
  return json.dump(2) + "\n";
}

// The first step has cold memory and connections, and does not count.
RehearsedSteps rehearse_steps(const Task& task, const RehearseCommandOptions& o, Transport& transport) {
  Rehearsal rehearsal(task.profile, task.plan, task.schedule, task.planned.options.cluster, transport,
                      {.time_scale = task.time_scale, .true_payload = o.payload == "true"});
  RehearsedSteps steps;
  const int runs = task.schedule.steps > 1 ? long_runs_in_a_row : runs_in_a_row;
  for (int step = 0; step <= o.steps; ++step) {
    fault_point(transport.rank(), step);
    Timeline timeline = task.planned.options.steps == Steps::overlapped && step > 0
                            ? rehearsal.overlapping_steps(runs)
                            : rehearsal.step();
    if (step == 0) continue;
    steps.period_s.push_back(timeline.period_s);
    steps.wall_s.push_back(rehearsal.wall_s());
    steps.timelines.push_back(std::move(timeline));
  }
  return steps;
}

void rehearse_rank(const RehearseCommandOptions& o, const std::optional<Plan>& plan, Rank& rank) {
  JobTransport& job = rank.job;
  // 1. Read the given files, and get rank 0's plan on all ranks.
  const GivenFiles given =
      read_given_files(o.planning, o.schedule.schedule, {o.json_file, o.trace_file}, job);
  std::optional<Plan> shared = plan;
  if (!shared) {
    const std::string text = on_rank_zero(job, [&] {
      const Progress::Computing computing(job.activity());
      const Task mine = make_task(o, given, job.size(), {});
      return to_json(mine.plan, mine.profile);
    });
    shared = plan_from_json(text, "the plan of rank 0", read_profile(given, o.planning));
  }
  const Task task = make_task(o, given, job.size(), shared, &job);
  const Timeline predicted = simulate(task.schedule, task.plan, task.profile, task.planned.options.cluster,
                                      task.planned.options.steps);
  if (rank.prints()) {
    fmt::print(
        "{}\nREHEARSED on {}: ranks wait for profiled times, nothing is computed ({}; time scale {:.3g})\n",
        describe(task.plan, task.profile, task.planned), counted(task.plan.ranks(), "rank"),
        o.payload == "true" ? "messages of true size" : "tokens for messages above 64 KiB", task.time_scale);
    std::fflush(stdout);
  }
  // 2. Rehearse the steps.
  const RehearsedSteps steps = rehearse_steps(task, o, job);
  if (!rank.prints()) return;
  // 3. Compare predicted and rehearsed times.
  const Timeline& rehearsed = steps.median();
  begin_answer();
  fmt::print("\n{}\n{}", draw(rehearsed, task.plan.ranks(), grid_width(o.width)),
             table(task, predicted, rehearsed));
  if (!o.json_file.empty()) write_output(o.json_file, json_of(task, o, predicted, rehearsed, steps));
  if (!o.trace_file.empty())
    write_output(o.trace_file,
                 to_chrome_trace(to_trace(rehearsed, task.profile), "rehearsed: " + task.profile.model));
}

}  // namespace

void rehearse(const RehearseCommandOptions& options) {
  check(options.planning, options.schedule.schedule);
  end_dry_run();
  if (const std::string& transport = options.machine.transport; transport != "auto" && transport != "mpi")
    throw Error(
        fmt::format("--transport {} moves tensors of GPUs, but a rehearsal's are in host memory", transport),
        "leave out --transport", ExitCode::usage);
  MachineOptions machine = options.machine;
  machine.device = "cpu";  // the ranks wait there
  std::optional<Plan> plan;
  if (machine.local == 0 && !launched_in_parallel()) {  // as many threads as the plan has ranks
    const GivenFiles given = read_given_files(options.planning, options.schedule.schedule);
    plan = make_task(options, given, 1, {}).plan;
    machine.local = plan->ranks();
  }
  run_job(machine, [&](Rank& rank) { rehearse_rank(options, plan, rank); });
}

bool is_rehearsal(const std::string& device) { return device.starts_with(device_prefix); }

RehearseCommandOptions rehearsal_of(const MachineOptions& machine, const PlanningOptions& planning,
                                    const ScheduleOptions& schedule, int microbatches) {
  RehearseCommandOptions options{.planning = planning, .schedule = schedule, .machine = machine};
  const std::string file = machine.device.substr(device_prefix.size());
  if (file.empty())
    throw Error("--device rehearse: names no profile", "give --device rehearse:PROFILE", ExitCode::usage);
  if (!planning.profile_file.empty() && planning.profile_file != file)
    throw Error("--profile and --device rehearse: name different profiles", "leave out --profile",
                ExitCode::usage);
  options.planning.profile_file = file;
  options.microbatches = microbatches;
  return options;
}

void add_rehearse(CLI::App& app) {
  auto options = std::make_shared<RehearseCommandOptions>();
  CLI::App& command = add_command(
      app, "rehearse", "run a step on real ranks that wait for profiled times instead of computing",
      "antichain rehearse --profile profile.json --stages 4 --microbatches 8");
  add_planning_options(command, options->planning);
  command.get_option("--profile")
      ->required()
      ->description("the times to wait for (of antichain profile --json, or graph.txt)");
  add_schedule_option(command, options->schedule);
  add_microbatches_option(command, options->microbatches, "Schedule");
  const OptionGroup add(command, "Rehearsal");
  add("--time-scale X", options->time_scale, number_between(1e-3, 1e6),
      "stretch every time by so much [so that the shortest stage takes 10 ms]");
  add("--payload NAME", options->payload, one_of("payload", {"token", "true"}),
      "true: messages of the true size; token: a token above 64 KiB");
  add("--steps N", options->steps, whole_between(1, 1'000'000),
      "steps after a first one (where steps overlap, 6 steps in a row; asynchronous, two rows); the median "
      "counts");
  add_rank_options(command, options->machine);
  add_transport_option(command, options->machine);
  add_output_option(command, "--json", options->json_file, "write predicted and rehearsed figures");
  add_output_option(command, "--trace", options->trace_file,
                    "write the rehearsed step for ui.perfetto.dev or chrome://tracing");
  add_width_option(command, options->width);
  show_first(command, {"--profile", "--plan", "--stages", "--method", "--replicas", "--cluster", "--schedule",
                       "--microbatches", "--time-scale", "--steps", "--local", "--trace", "--json"});
  command.callback([options] { rehearse(*options); });
}

}  // namespace antichain
