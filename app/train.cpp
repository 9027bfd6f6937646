// antichain train: the whole way from a model's name to a trained network, on all ranks.
//
//   mpirun -n 4 antichain train --model resnet18 --dataset cifar10 --data-dir D --batch 128 --microbatches 8 --epochs 2
//   antichain train --local 2                                      ranks as threads
//   antichain train --local 2 --profile profile.json --plan plan.json
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <mutex>

#include "app/commands.h"
#include "app/job.h"
#include "app/metrics.h"
#include "app/network.h"
#include "app/progress_bar.h"
#include "app/report.h"
#include "data/cifar10.h"
#include "data/obtain.h"
#include "framework/error.h"
#include "framework/json.h"
#include "framework/learning_rate.h"
#include "pipeline/agree.h"
#include "pipeline/state_hash.h"
#include "pipeline/trainer.h"

namespace antichain {
namespace {

struct TrainCommandOptions {
  NetworkOptions network;
  MachineOptions machine;
  PlanningOptions planning;
  ScheduleOptions schedule;
  std::string dataset = "cifar10", data_dir;
  int epochs = 1;
  int64_t steps = 0;
  uint64_t seed = 0;
  LearningRateOptions rate{.peak = 0.3};
  double warmup_epochs = 0;
  SgdOptions sgd;
  bool no_nesterov = false;
  double label_smoothing = 0;
  std::string metrics_file, trace_file;
};

// One data set for all ranks of the process: threads share the bytes.
class SharedData {
 public:
  DataSplits get(const std::string& directory) {
    const std::lock_guard lock(mutex_);
    if (!splits_.train) splits_ = read_cifar10(directory);
    return splits_;
  }

 private:
  std::mutex mutex_;
  DataSplits splits_;
};

class Reporter : public TrainObserver {
 public:
  Reporter(MetricsFile& metrics) : metrics_(metrics), bar_(stdout) {}
  void on_step(const StepReport& r) override {
    metrics_.step(r);
    bar_.show({.done = r.step + 1,
               .total = r.total_steps,
               .epoch = r.epoch,
               .loss = r.loss,
               .accuracy = r.accuracy,
               .images_per_s = r.images_per_s});
  }
  void on_epoch(const EpochReport& r) override {
    metrics_.epoch(r);
    bar_.say(fmt::format(
        "epoch {}: train loss {:.4f}, accuracy {:.2f} % in {}; test loss {:.4f}, accuracy {:.2f} % in {}",
        r.epoch + 1, r.train_loss, r.train_accuracy * 100, duration(r.train_s), r.test_loss,
        r.test_accuracy * 100, duration(r.test_s)));
    test_accuracy = r.test_accuracy;
  }
  void finish() { bar_.finish(); }
  double test_accuracy = -1;

 private:
  MetricsFile& metrics_;
  ProgressBar bar_;
};

// Rank 0 finds (fetches, generates) the data; the others read what it names.
DataSplits obtain_data(const TrainCommandOptions& options, Rank& rank, SharedData& shared) {
  const std::string directory = on_rank_zero(rank.transport, [&] {
    const Obtained got =
        options.dataset == "synthetic" ? obtain_synthetic() : obtain_cifar10({.data_dir = options.data_dir});
    if (!got.note.empty()) fmt::print("{}\n", got.note);
    return got.directory;
  });
  return shared.get(directory);
}

Plan obtain_plan(const TrainCommandOptions& options, const Profile& profile, Rank& rank) {
  const PlanningOptions& planning = options.planning;
  const int ranks = rank.transport.size();
  const Plan plan = plan_from_json(
      on_rank_zero(rank.transport,
                   [&] {
                     const Plan made =
                         planning.plan_file.empty()
                             ? planning.plan(profile, planning.stages > 0 ? planning.stages : ranks)
                             : read_plan(planning.plan_file, profile);
                     return to_json(made, profile);
                   }),
      planning.plan_file.empty() ? "the plan of rank 0" : planning.plan_file);
  validate(plan, profile);
  if (plan.ranks() != ranks) {
    throw Error(fmt::format("the plan is for {} ranks, but the job has {}", plan.ranks(), ranks),
                fmt::format("run it with mpirun -n {0} or --local {0}, or make a plan of {1} stages",
                            plan.ranks(), ranks),
                ExitCode::usage);
  }
  agree(rank.transport, "the plan", plan_hash(plan));
  return plan;
}

const std::vector<int>& nodes_of(const Plan& plan, int rank) {
  for (const PlanStage& stage : plan.stages) {
    if (std::ranges::find(stage.ranks, rank) != stage.ranks.end()) return stage.nodes;
  }
  throw Error(fmt::format("the plan has no stage for rank {}", rank), "", ExitCode::failure);
}

TrainOptions train_options(const TrainCommandOptions& o, int64_t batches_per_epoch) {
  LearningRateOptions rate = o.rate;
  if (o.warmup_epochs > 0) rate.warmup_steps = int64_t(o.warmup_epochs * double(batches_per_epoch));
  const LearningRate schedule(rate);
  return {.batch = o.network.batch,
          .epochs = o.steps > 0 && o.epochs == 0 ? 0 : o.epochs,
          .steps = o.steps,
          .seed = o.seed,
          .sgd = o.sgd,
          .rate = [schedule](int64_t step, int64_t total) { return float(schedule.rate(step, total)); },
          .trace = !o.trace_file.empty()};
}

void train_rank(const TrainCommandOptions& options, Rank& rank, SharedData& shared) {
  Transport& transport = rank.transport;
  // 1. The data.
  const DataSplits data = obtain_data(options, rank, shared);
  if (rank.prints()) {
    fmt::print("Data: {}, {} training and {} test images\n", data.train->name(), data.train->size(),
               data.test->size());
  }
  // 2. The network and what its nodes cost here.
  const Graph graph = lowered_network(options.network, options.machine, float(options.label_smoothing));
  const Profile profile = obtain_profile(options.planning, options.network, graph, rank.context, transport);
  // 3. Where it is cut: every rank holds the same plan.
  const Plan plan = obtain_plan(options, profile, rank);
  // 4. Who does what when, and how long that should take.
  const Schedule schedule =
      obtain_schedule(options.schedule.schedule, profile, plan, options.network.microbatches);
  const Timeline predicted = simulate(schedule, plan, profile, options.planning.link(profile));
  if (rank.prints()) {
    fmt::print("{}{}\n", describe(plan, profile), describe(predicted, plan, profile, schedule));
  }
  // 5. Train, evaluating over the whole test set after each epoch.
  Stage stage(graph, nodes_of(plan, transport.rank()), rank.context, options.seed);
  MetricsFile metrics(rank.prints() ? options.metrics_file : "", data.train->name());
  Reporter reporter(metrics);
  const TrainOptions settings = train_options(options, data.train->size() / options.network.batch);
  const TrainResult result = train(stage, profile, plan, schedule, data, transport, settings, reporter);
  // 6. What came of it, beside what was predicted.
  const StateHash state = state_hash(stage, transport);
  if (!rank.prints()) return;
  reporter.finish();
  metrics.summary(predicted.step_s, result.step_s, result.steps, state.all);
  if (reporter.test_accuracy >= 0) {
    fmt::print("Test accuracy {:.2f} % on {} ({} images)\n", reporter.test_accuracy * 100, data.test->name(),
               data.test->size());
  }
  fmt::print(
      "Step time: predicted {:.1f} ms, measured {:.1f} ms (median of {} steps), {:+.1f} %\nWeights and "
      "statistics: {}\n",
      predicted.step_s * 1e3, result.step_s * 1e3, result.steps, (result.step_s / predicted.step_s - 1) * 100,
      state.all);
  if (!options.trace_file.empty()) {
    const Timeline measured{.events = result.events};
    write_file(options.trace_file,
               to_chrome_trace(to_trace(measured), "measured: " + graph.model() + ", " + data.train->name()));
  }
}

void run(TrainCommandOptions options) {
  if (options.dataset != "cifar10" && options.dataset != "synthetic") {
    throw Error(fmt::format("there is no data set '{}'", options.dataset), "there are cifar10, synthetic",
                ExitCode::usage);
  }
  options.sgd.nesterov = !options.no_nesterov;
  const LearningRate checked(options.rate);  // before anything is measured
  options.network.microbatch();
  SharedData shared;
  run_job(options.machine, [&](Rank& rank) { train_rank(options, rank, shared); });
}

void add_training_options(CLI::App& command, TrainCommandOptions& o) {
  std::string group = "Data";
  command.add_option("--dataset", o.dataset, "cifar10, or synthetic (generated images)")
      ->capture_default_str()
      ->group(group);
  command
      .add_option(
          "--data-dir", o.data_dir,
          "folder of CIFAR-10's binary files (default: $CIFAR10_DIR, else the cache, else the network)")
      ->type_name("DIR")
      ->group(group);
  group = "Training";
  command.add_option("--epochs", o.epochs, "passes over the training set")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber)
      ->group(group);
  command.add_option("--steps", o.steps, "stop after so many steps")
      ->type_name("N")
      ->check(CLI::NonNegativeNumber)
      ->group(group);
  command.add_option("--seed", o.seed, "of weights, order, augmentation and dropout")
      ->capture_default_str()
      ->group(group);
  command.add_option("--lr", o.rate.peak, "peak learning rate")->capture_default_str()->group(group);
  command
      .add_option("--lr-schedule", o.rate.schedule, fmt::format("{}", fmt::join(learning_rate_names(), ", ")))
      ->capture_default_str()
      ->group(group);
  CLI::Option* steps = command.add_option("--warmup-steps", o.rate.warmup_steps, "linear warm-up")
                           ->type_name("N")
                           ->group(group);
  command.add_option("--warmup-epochs", o.warmup_epochs, "linear warm-up")
      ->type_name("N")
      ->check(CLI::NonNegativeNumber)
      ->excludes(steps)
      ->group(group);
  command.add_option("--momentum", o.sgd.momentum, "of SGD")->capture_default_str()->group(group);
  command.add_option("--weight-decay", o.sgd.weight_decay, "of SGD")->capture_default_str()->group(group);
  command.add_flag("--no-nesterov", o.no_nesterov, "plain momentum")->group(group);
  command.add_option("--label-smoothing", o.label_smoothing, "share of the target spread over all classes")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 1.0))
      ->group(group);
  group = "Output";
  command.add_option("--metrics", o.metrics_file, "write one JSON line per step and epoch")
      ->type_name("FILE")
      ->group(group);
  command
      .add_option("--trace", o.trace_file, "write one measured step for ui.perfetto.dev or chrome://tracing")
      ->type_name("FILE")
      ->group(group);
}

}  // namespace

void add_train(CLI::App& app) {
  auto options = std::make_shared<TrainCommandOptions>();
  CLI::App& command = add_command(
      app, "train", "profile, plan and train",
      "mpirun -n 4 antichain train --model resnet18 --data-dir D --batch 128 --microbatches 8 --epochs 2");
  add_network_options(command, options->network);
  add_machine_options(command, options->machine);
  add_training_options(command, *options);
  add_planning_options(command, options->planning);
  add_schedule_option(command, options->schedule);
  command.callback([options] { run(*options); });
}

}  // namespace antichain
