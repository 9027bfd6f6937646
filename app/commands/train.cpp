// antichain train takes a model's name all the way to a trained network, on all ranks.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "app/cli/commands.h"
#include "app/cli/number_text.h"
#include "app/cli/output_file.h"
#include "app/cli/overwriting.h"
#include "app/cli/table.h"
#include "app/commands/rehearse.h"
#include "app/job/agreement.h"
#include "app/job/job.h"
#include "app/job/job_log.h"
#include "app/job/preflight.h"
#include "app/obtain/augment_options.h"
#include "app/obtain/data_options.h"
#include "app/obtain/given_files.h"
#include "app/obtain/lowered_network.h"
#include "app/obtain/plan_task.h"
#include "app/obtain/profile.h"
#include "app/obtain/schedule.h"
#include "app/report/citations.h"
#include "app/report/output_errors.h"
#include "app/report/plan_report.h"
#include "app/report/report.h"
#include "app/report/time_report.h"
#include "app/report/train_report.h"
#include "app/train/follow_recipe.h"
#include "app/train/rate_options.h"
#include "app/train/rebalance.h"
#include "app/train/resume.h"
#include "app/train/run_record.h"
#include "app/train/train_options.h"
#include "data/array_input.h"
#include "data/loader.h"
#include "data/mix.h"
#include "framework/error.h"
#include "framework/json.h"
#include "framework/loss_mean.h"
#include "framework/say.h"
#include "models/model.h"
#include "pipeline/host/launch.h"
#include "pipeline/host/stop_signals.h"
#include "pipeline/program/weight_versions.h"
#include "pipeline/schedule/lane.h"
#include "pipeline/simulate/message_order.h"
#include "pipeline/simulate/trace_events.h"
#include "pipeline/train/state_hash.h"
#include "pipeline/transport/agree.h"
#include "pipeline/transport/choose_transport.h"
#include "pipeline/transport/mpi_transport.h"

namespace antichain {
namespace {

// Returns the number of stages whose delays are emulated on one rank, else that of the job's ranks.
int ranks_to_plan_for(const TrainCommandOptions& options, const Job& job) {
  const int emulated = options.emulate_delays;
  if (emulated > 0 && job.size() > 1)
    throw Error(fmt::format("--emulate-delays {} is for one rank, but the job has {}", emulated, job.size()),
                "start it without mpirun, or leave it out", ExitCode::usage);
  if (asynchronous_policy(options)) check_older_weights(options, job.size());
  if (options.rebalance_given && options.rebalance == "auto" && job.size() == 1)
    throw Error("--rebalance auto moves nodes from rank to rank, but the job has one rank",
                "leave it out, or say --rebalance off", ExitCode::usage);
  return emulated > 0 ? emulated : job.size();
}

// Every rank gets work, however many devices the cluster's file lists.
PlanningOptions for_ranks(PlanningOptions planning, int ranks) {
  const bool given = !parse_replicas(planning.replicas).of_stage.empty();
  if (planning.stages == 0 && planning.plan_file.empty() && !given) planning.stages = ranks;
  return planning;
}

// Returns the plan's stages, of which there are as many as are emulated, all of them on one rank.
Plan on_one_rank(Plan plan, const Profile& profile, const PlanTask& task, int emulated) {
  if (int(plan.stages.size()) != emulated)
    throw Error(fmt::format("--emulate-delays {} is for a plan of {}, but this one has {}", emulated,
                            counted(emulated, "stage"), plan.stages.size()),
                "give the plan's number of stages, or leave out what says another one", ExitCode::usage);
  if (has_replicas(plan) || has_several_stages_a_rank(plan))
    throw Error("--emulate-delays is for a plan of one rank a stage and one stage a rank",
                "plan without replicas", ExitCode::usage);
  for (PlanStage& stage : plan.stages) stage.ranks = {0}, stage.devices.clear();
  PlanOptions options = task.options;
  options.cluster.devices.clear();
  return task.choice.judge(profile, plan, options);
}

// Returns rank 0's plan on all ranks.
Plan broadcast_plan(const GivenFiles& given, const Profile& profile, const PlanTask& task, int emulated,
                    Rank& rank) {
  const std::string text = on_rank_zero(rank.job, [&] {
    rank.job.activity().doing("planning");
    const Progress::Computing computing(rank.job.activity());
    const Plan plan = obtain_plan(given, profile, task);
    return to_json(emulated > 0 ? on_one_rank(plan, profile, task, emulated) : plan, profile);
  });
  const Plan plan = plan_from_json(text, "the plan of rank 0");
  check_replicas_have_one_stage(plan);
  check_ranks(plan, rank.job.size());
  agree(rank.job, "the plan", plan_hash(plan));
  return plan;
}

// Returns the step that the transport will take: some carry messages out in an order of their own.
Timeline predict(const Schedule& schedule, const Plan& plan, const Profile& profile,
                 const PlanOptions& options, const Transport& way) {
  const Cluster& cluster = options.cluster;
  if (!way.ordered()) return simulate(schedule, plan, profile, cluster, options.steps);
  const auto lane_of = [&](int, int, Flow flow) { return lane_of_flow(flow) % way.lanes(); };
  const Program program = compile(schedule, profile, plan);
  return simulate_in_order(program, plan, profile, cluster, message_order(program, plan, profile, cluster),
                           lane_of, options.steps);
}

// Images that the device augments are loaded as bytes.
int64_t bytes_of_an_image(const TrainCommandOptions& options, const DataSet& set, const Rank& rank) {
  const bool as_bytes = options.augment != "host" && !rank.context.backend().host_memory();
  return set.images() ? set.images()->image_shape().elements() * int64_t(as_bytes ? 1 : sizeof(float)) : 0;
}

// Says what it costs that all ranks agree before any of them updates.
std::string cost_of_votes(const Timeline& with, const std::string& why, const Timeline& without) {
  return hanging("Steps apart", 15,
                 fmt::format("with {} all ranks vote before an update, so steps do not overlap: that "
                             "costs {} ms a step",
                             why, milliseconds(std::max(0., with.period_s - without.period_s))));
}

void write_trace(const std::string& file, const TrainResult& result, const Profile& profile,
                 const std::string& title) {
  if (file.empty()) return;
  const Timeline measured{.events = result.events};
  write_output(file, to_chrome_trace(to_trace(measured, profile), title));
}

// Throws on every rank where everything is done and reported, but results could not be saved or the network
// has non-finite numbers.
void end_as_it_went(const TrainResult& result, const std::string& lost_weights,
                    const std::string& lost_metrics) {
  if (!result.bad_test.empty()) throw Error(result.bad_test, "use a smaller --lr", ExitCode::not_a_number);
  if (!result.unsaved.empty())
    throw Error(
        fmt::format("training is done, but its last checkpoint could not be saved: {}", result.unsaved));
  if (!lost_weights.empty())
    throw Error(fmt::format("training is done, but its weights could not be kept: {}", lost_weights));
  if (!lost_metrics.empty())
    throw Error(fmt::format("training is done, but its metrics are not complete: {}", lost_metrics));
  if (const std::string reason = why_print_is_lost(); !reason.empty())
    throw Error(fmt::format("training is done, but its log is not complete: {}", reason));
}

// Returns the run's last evaluation, even where an earlier start made it.
std::optional<EvaluationReport> last_evaluation(const TrainReporter& reporter, const TrainResult& result,
                                                const DataSet& train, const Graph& graph,
                                                const TrainCommandOptions& options) {
  const LastEvaluation& last = result.last;
  if (reporter.last_evaluation() || last.step == 0) return reporter.last_evaluation();
  const int64_t per_epoch = train.size() / options.network.batch;
  return EvaluationReport{.epoch = (last.step - 1) / per_epoch,
                          .step = last.step,
                          .ends_epoch = last.step % per_epoch == 0,
                          .test_loss = last.loss,
                          .test_accuracy = has_hits(graph) ? last.accuracy : NAN};
}

std::string please_cite(const Cited& cited) {
  std::vector<std::string> works = citations(cited);
  for (std::string& work : works) work = in_short(work);
  return hanging("Please cite", 15, fmt::format("{} (antichain citations)", fmt::join(works, "; ")));
}

void train_rank(const TrainCommandOptions& options, Rank& rank, SharedData& shared) {
  JobTransport& job = rank.job;
  check_same_settings(rank, options.settings);
  const Graph graph = lowered_network(options.network, rank);
  if (!options.data.dataset.starts_with("hdf5:"))
    for (const Node& node : graph)
      if (node.role() == Role::input)
        find_array({std::string(Loader::images_input), std::string(Loader::labels_input)}, node.name);
  check_same_kernels(rank, options.machine, graph);
  const std::shared_ptr<const Optimiser> optimiser =
      make_optimiser(options.optimiser, graph, options.rate.peak);
  const int ranks = ranks_to_plan_for(options, job);
  const PlanningOptions planning = for_ranks(options.planning, ranks);
  check_schedule(planning, options.schedule.schedule, options.network.microbatches, ranks);
  const JobStart start = job_start(rank);
  const RunRecord record(options.results, rank);
  std::vector<std::string> outputs = metrics_files(options), summaries = summary_files(options);
  outputs.insert(outputs.end(), summaries.begin(), summaries.end());
  outputs.push_back(options.trace_file);
  // 1. Read the given files and the data.
  const GivenFiles given = read_given_files(planning, options.schedule.schedule, outputs, job);
  if (options.emulate_delays == 0) check_ranks(planning, given, ranks);
  if (!planning.profile_file.empty()) given_profile(given, planning, graph);
  if (rank.prints()) fmt::print("{}{}\n", describe(start), describe_keeping(options));
  const DataSplits data = obtain_training_data(options.data, options.network.batch, rank, shared);
  for (const Node& node : graph)
    if (node.role() == Role::input) Loader::check_input(data.train, node.name, node.signature.y);
  if (rank.prints()) {
    fmt::print("{}\n", describe_recipe(options, data.train->size() / options.network.batch));
    if (data.train->images() && options.augmentation != AugmentOptions())
      fmt::print("{}\n", hanging("Images", 10, describe(options.augmentation)));
  }
  RunFacts facts = run_facts(options, data, rank);
  const Beginning beginning = find_beginning(options, facts, graph, rank);
  on_rank_zero(job, [&] {
    record.check_free(options, beginning.checkpoint);
    return "";
  });
  const InitOptions init = beginning.checkpoint.empty()
                               ? with_weights_of(options.network.graph.path, options.init, job)
                               : InitOptions();  // the checkpoint has all weights
  const Weights initial = read_initial(init, graph, job);
  // 2. Measure what the network's nodes cost here, over the link that tensors will take.
  MemoryRecord memory;
  const ChosenTransport tensors = choose_transport(rank.context, job, options.machine.transport);
  const Profile profile = obtain_profile(given, planning, options.network, graph, optimiser, rank, tensors);
  // 3. Make the plan: every rank holds the same one.
  PlanTask task = plan_task(planning, given, profile, options.schedule, options.network.microbatches, ranks);
  const bool votes = !why_ranks_agree(options).empty();
  if (votes) task.options.steps = Steps::apart;
  const Plan plan = broadcast_plan(given, profile, task, options.emulate_delays, rank);
  // 4. Make the schedule, and predict how long a step takes.
  const Schedule ordered =
      obtain_training_schedule(broadcast_order(given, task, profile, plan, job), task, profile, plan);
  if (has_delays(ordered)) check_older_weights(options, job.size());  // it may be a file's
  const Schedule schedule = votes && job.size() > 1 ? with_votes(ordered) : ordered;
  const Timeline predicted = predict(schedule, plan, profile, task.options, tensors.over(job));
  if (rank.prints()) {
    if (!tensors.sentence.empty()) fmt::print("{}\n", tensors.sentence);
    const std::string faster = describe_faster(plan, profile, task);
    fmt::print("{}\n{}{}{}\n", describe(plan, profile, task),
               describe(predicted, plan, profile, schedule, task), faster.empty() ? "" : "\n", faster);
    if (has_votes(schedule) && options.planning.overlap_steps == "auto")
      fmt::print("{}\n",
                 cost_of_votes(predicted, why_ranks_agree(options),
                               simulate(ordered, plan, profile, task.options.cluster, Steps::overlapped)));
    std::fflush(stdout);
  }
  warn_of_crowding(rank);
  const auto need_of = [&](const Plan& by, const Schedule& in) {
    return memory_need(graph, *optimiser, profile, by, in, job.rank(), data.train->size(),
                       bytes_of_an_image(options, *data.train, rank), !options.results.empty());
  };
  MemoryNeed need = need_of(plan, schedule);
  const DeviceMemory device = device_memory(rank.context);
  check_available_memory(job, MemoryOf::plan, need, device);
  memory.begin(need, device);
  on_rank_zero(job, [&] {
    const Progress::Disk disk(job.activity(), "writing the results folder");
    record.begin(options, start, beginning.checkpoint, profile, plan);
    return "";
  });
  // 5. Train, evaluating over the whole test set now and then.
  const Facts run_setting = facts.setting;
  add_plan(facts.setting, plan, profile, schedule);
  RankModel model(graph, nodes_of_rank(plan, job.rank()), rank.context, options.seed, optimiser,
                  shards_of(graph, *optimiser, profile, plan, schedule, job.rank()),
                  kept_versions(schedule, plan, job.rank()));
  if (beginning.checkpoint.empty())
    start_from(initial, init, model, rank);
  else
    go_on_from(beginning, facts, model, rank);
  const Measures measures = measures_of(graph);
  MetricsFile metrics(rank.prints() ? metrics_files(options) : std::vector<std::string>(), data.train->name(),
                      measures, beginning.step());
  const OutputErrors errors(graph);
  TrainReporter reporter(metrics, *data.train, measures, errors, start.hosts,
                         LossWatch(watched_run(options)));
  TrainOptions settings = train_options(options, data.train->size() / options.network.batch);
  settings.start = beginning.manifest.position;
  settings.output_sums = errors.sums();
  settings.checkpoint = checkpoint_options(options.checkpoint, facts, beginning);
  settings.deadline = deadline(options.checkpoint);
  settings.between_ranks = task.options.steps;
  const std::unique_ptr<Rebalancer> moves =
      make_rebalancer(options, {profile, task, votes && job.size() > 1, rank, run_setting}, plan, schedule,
                      predicted, [&](const RebalanceReport& report) { reporter.on_rebalance(report); });
  settings.moves = moves.get();
  settings.has_room = [&](const Plan& by, const Schedule& in) {
    return has_room_for(job, need_of(by, in), need);
  };
  settings.on_move = [&](const Plan& by, const Schedule& in) {
    need = need_of(by, in);
    memory.begin(need, device);
    if (rank.prints()) record.keep_plan(profile, by);
  };
  if (moves) fmt::print("{}\n", hanging("Rebalancing", 15, describe(RebalanceRule())));
  const TrainResult result =
      train(model, profile, plan, schedule, data, tensors.over(job), settings, reporter);
  // 6. Report the results, beside what was predicted.
  const StateHash state = state_hash(model, job);
  const std::string lost_weights = record.keep_weights(model, job);
  const std::vector<MemoryRow> processes = memory.compare(rank);
  if (!rank.prints()) return end_as_it_went(result, lost_weights, "");
  const Progress::Disk disk(job.activity(), "writing what came of it");
  reporter.finish();
  warn_of_starving(starved_rank(reporter.times(), start.hosts), job, rank.context);
  const TrainSummary summary{.model = graph.model(),
                             .precision = options.network.precision,
                             .data = data.train->name(),
                             .plan_hash = plan_hash(moves ? moves->now().plan : plan),
                             .state = state.all,
                             .test_images = data.test->size(),
                             .steps = result.steps,
                             .memory_bytes = result.memory_bytes,
                             .processes = processes,
                             .ranks = job.size(),
                             .predicted_step_s = moves ? moves->now().pace_s : predicted.period_s,
                             .measured_step_s = result.step_s,
                             .images_per_s = result.step_s > 0 ? options.network.batch / result.step_s : 0,
                             .loss = result.loss,
                             .accuracy = result.accuracy,
                             .times = reporter.times(),
                             .rebalances = reporter.rebalances(),
                             .evaluation = last_evaluation(reporter, result, *data.train, graph, options),
                             .means = reporter.means(),
                             .best = result.best,
                             .ended_early = result.ended_early,
                             .measures = measures,
                             .rate = compute_rate(profile, options.network.microbatches)};
  fmt::print("{}", describe(summary));
  const Cited cited{graph.model(),
                    plan.method,
                    options.schedule.schedule,
                    data.train->name(),
                    options.schedule.predict,
                    options.delay_correction};
  if (summary.evaluation) fmt::print("{}", please_cite(cited));  // a shorter run is a trial
  metrics.summary(to_json(summary, -1));
  for (const std::string& file : summaries) write_output(file, to_json(summary, 2) + "\n");
  write_trace(options.trace_file, result, profile, "measured: " + graph.model() + ", " + data.train->name());
  end_as_it_went(result, lost_weights, metrics.lost());
}

void rehearse_training(const TrainCommandOptions& o, const CLI::App& command) {
  const std::pair<const char*, const std::string&> kept[] = {{"--results", o.results},
                                                             {"--metrics", o.metrics_file},
                                                             {"--checkpoint", o.checkpoint.folder},
                                                             {"--resume", o.checkpoint.resume}};
  for (const auto& [option, value] : kept)
    if (!value.empty())
      throw Error(fmt::format("{} {} is given, but a rehearsal trains nothing", option, value),
                  "leave it out; --json and --trace keep what a rehearsal measures", ExitCode::usage);
  RehearseCommandOptions rehearsal = rehearsal_of(o.machine, o.planning, o.schedule, o.network.microbatches);
  check_no_output_is("the profile that is rehearsed", std::vector{rehearsal.planning.profile_file});
  const auto given = [&](const char* option) { return command.count(option) > 0; };
  if (given("--model") || given("--graph")) rehearsal.model = make_model(o.network.chosen()).model();
  if (given("--precision")) rehearsal.precision = o.network.precision;
  if (given("--batch")) rehearsal.batch = o.network.batch;
  rehearsal.json_file = o.json_file;
  rehearsal.trace_file = o.trace_file;
  rehearse(rehearsal);
}

void run(TrainCommandOptions& options, CLI::App& command) {
  if (is_rehearsal(options.machine.device)) return rehearse_training(options, command);
  check(options);
  if (options.augment == "device") options.machine.cpu_does = "computing, and making images,";
  if (options.data.names_arrays()) leave_out_augmentation(command, options.augmentation);
  if (mixes(options.augmentation)) options.network.soft_labels = true;
  check_results_are_kept(options);
  if (options.machine.local > 0) check_ranks(options.planning, {}, options.machine.local);
  end_dry_run();
  if (options.machine.local == 0 && !launched_in_parallel()) check_launch(mpi_library(), 1);
  const StopRequests signals(StopRequests::Life::process);
  SharedData shared;
  options.data.channels = options.network.chosen().traits.usual.channels;
  fit_network(options.network, options.data, shared);
  if (options.data.sequence > 0) leave_out_augmentation(command, options.augmentation);
  note_settings(options, command);
  run_job(options.machine, [&](Rank& rank) { train_rank(options, rank, shared); });
}

}  // namespace

void add_train(CLI::App& app) {
  auto options = std::make_shared<TrainCommandOptions>();
  CLI::App& command = add_command(
      app, "train", "profile, plan and train",
      "mpirun -n 4 antichain train --model resnet18 --data-dir D --batch 128 --microbatches 8 --epochs 2");
  add_train_options(command, *options);
  show_first(command,
             {"--model", "--graph", "--batch", "--microbatches", "--dataset", "--data-dir", "--epochs",
              "--lr", "--checkpoint", "--resume", "--schedule", "--local", "--device", "--results"});
  check_every_option_says_what_it_changes(command);
  options->rows = rows_of(command);
  command.callback([options, &command] {
    options->settings = settings_of(command);
    follow_recipe(command, *options);
    check_rate_options(command, options->rate);
    check_optimiser_options(command, options->optimiser);
    options->rebalance_given = command.count("--rebalance") > 0;
    run(*options, command);
  });
}

}  // namespace antichain
