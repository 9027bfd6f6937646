#include "app/train/train_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include <algorithm>

#include "app/cli/number_text.h"
#include "app/cli/option_row.h"
#include "app/train/rate_options.h"
#include "app/train/rebalance.h"
#include "data/mix.h"
#include "framework/error.h"
#include "framework/module.h"

namespace antichain {
namespace {

using enum OptionKind;

constexpr int most_emulated_stages = 1024;

// Asynchronous schedules count weights by steps, and no rank waits for another. So this refuses options that
// leave steps out or keep steps apart.
void check_asynchronous(const TrainCommandOptions& o) {
  const Policy* policy = asynchronous_policy(o);
  if (!policy && o.emulate_delays > 0)
    throw Error(fmt::format("--emulate-delays {} emulates an asynchronous schedule, but {} is not",
                            o.emulate_delays, o.schedule.schedule),
                fmt::format("give --schedule {}, or leave it out", asynchronous_policies_in_words()),
                ExitCode::usage);
  if (!policy && o.synchronous_steps > 0)
    throw Error(fmt::format("--synchronous-steps {} is for an asynchronous schedule, but {} is not",
                            o.synchronous_steps, o.schedule.schedule),
                fmt::format("give --schedule {}, or leave it out", asynchronous_policies_in_words()),
                ExitCode::usage);
  if (!policy && o.delay_correction != "none")
    throw Error(fmt::format("--delay-correction {} corrects the rates of an asynchronous schedule, but {} is "
                            "not",
                            o.delay_correction, o.schedule.schedule),
                fmt::format("give --schedule {}, or leave it out", asynchronous_policies_in_words()),
                ExitCode::usage);
  if (o.annealing_steps > 0 && o.delay_correction == "none")
    throw Error(fmt::format("--annealing-steps {} is of --delay-correction pipemare, which is not given",
                            o.annealing_steps),
                "give it, or leave out --annealing-steps", ExitCode::usage);
  if (!policy) return;
  check_older_weights(o, o.machine.local);
  if (parse_overlap(o.planning.overlap_steps) == Steps::apart)
    throw Error(fmt::format("under --schedule {} steps overlap, but --overlap-steps is off", policy->name),
                "leave out --overlap-steps", ExitCode::usage);
  if (o.machine.device != "cpu")
    throw Error(fmt::format("--schedule {} works on CPU ranks so far, but --device is {}", policy->name,
                            o.machine.device),
                "give --device cpu, or another schedule", ExitCode::usage);
  if (o.emulate_delays > 0 && o.machine.local > 1)
    throw Error(fmt::format("--emulate-delays {} is for one rank, but --local asks for {}", o.emulate_delays,
                            o.machine.local),
                "leave out one of them", ExitCode::usage);
}

void add_length_options(CLI::App& app, TrainCommandOptions& o) {
  const OptionGroup add(app, "Training");
  add("--epochs N", o.epochs, whole_between(1, most_epochs),
      "passes over the training set [the recipe's, or as many as --steps needs]", {extent});
  add("--steps N", o.steps, whole_between(1, most_training_steps), "end after so many steps [whole epochs]",
      {extent});
  add("--seed N", o.seed, whole_between(0, INT64_MAX), "seed of weights, order, augmentation and dropout",
      {recipe, "seed"});
}

}  // namespace

void add_train_options(CLI::App& app, TrainCommandOptions& o) {
  add_network_options(app, o.network);
  add_data_options(app, o.data);
  add_array_options(app, o.data);
  add_text_options(app, o.data);
  add_augment_options(app, o.augmentation);
  add_length_options(app, o);
  add_init_options(app, o.init, "Training");
  app.get_option("--init")->description(
      "start a new run from the weights of this HDF5 or safetensors file, or checkpoint, which must fit; "
      "--resume goes on with a run, and --resume auto reads this file only where there is none");
  add_rate_options(app, o);
  add_optimiser_options(app, o.optimiser);
  add_evaluation_options(app, o.evaluation);
  add_option(app, "Training", "--on-nan NAME", o.on_nan, one_of("way", on_nan_names()),
             "when the loss or a gradient is not finite: abort, skip the step, or rewind to the last "
             "checkpoint and go on with the next batch",
             {extent});
  add_checkpoint_options(app, o.checkpoint);
  add_planning_options(app, o.planning);
  add_measuring_options(app, o.planning);
  add_schedule_option(app, o.schedule);
  add_option(
      app, "Schedule", "--emulate-delays S", o.emulate_delays, whole_between(1, most_emulated_stages),
      "with an asynchronous schedule, on one rank: train with the delays of a pipeline of S stages, to "
      "the same bits [the delays of the ranks there are]",
      {extent});
  add_option(app, "Schedule", "--rebalance NAME", o.rebalance, one_of("answer", {"auto", "off"}),
             "whether nodes move to another rank while the run goes on, to the same bits: auto: where ranks' "
             "speeds change and a new exact plan pays for the move; off (as with --plan)",
             {speed});
  const OptionGroup add(app, "Schedule");
  add("--delay-correction NAME", o.delay_correction, one_of("correction", {"none", "pipemare"}),
      "with an asynchronous schedule: none, or pipemare, which divides the learning rate of a stage by its "
      "delay, by less and less of it over --annealing-steps",
      {recipe, "delay correction"});
  add("--annealing-steps N", o.annealing_steps, whole_between(1, most_training_steps),
      "steps until stages have the whole learning rate [a quarter of its course]",
      {recipe, "steps of annealing"});
  add("--synchronous-steps N", o.synchronous_steps, whole_between(0, most_training_steps),
      "with an asynchronous schedule: so many steps at the beginning are synchronous",
      {recipe, "synchronous steps"});
  add_machine_options(app, o.machine);
  add_transport_option(app, o.machine);
  add_option(app, "Machine", "--augment NAME", o.augment, one_of("place", {"auto", "host", "device"}),
             "where images are augmented and normalised, with the same bits: host, device (a GPU, to which "
             "they travel as bytes), or auto: on the GPU if there is one",
             {speed});
  add_output_option(
      app, "--results DIR", o.results,
      "a folder for all results: the trained weights, run.json (program, command, all settings), "
      "log, profile, plan, metrics, summary");
  add_output_option(app, "--metrics", o.metrics_file, "write one JSON line per step and epoch");
  add_output_option(app, "--trace", o.trace_file,
                    "write one measured step for ui.perfetto.dev or chrome://tracing");
  add_output_option(app, "--json", o.json_file, "write the results");
}

void check_every_option_says_what_it_changes(const CLI::App& train) {
  const std::vector<OptionRow>& rows = rows_of(train);
  const auto rows_that_say =
      std::ranges::count_if(rows, [](const OptionRow& row) { return row.changes.kind != unsaid; });
  ANTICHAIN_CHECK(rows_that_say + 2 == std::ssize(train.get_options()),  // --help and --help-all have no row
                  "each option of train must say what it changes");
}

void check_older_weights(const TrainCommandOptions& o, int ranks) {
  if (parse_on_nan(o.on_nan) != OnNan::abort)
    throw Error(fmt::format("--schedule {} trains with weights of earlier steps, all of which count, but "
                            "--on-nan {} leaves steps out",
                            o.schedule.schedule, o.on_nan),
                "leave out --on-nan", ExitCode::usage);
  if (ranks > 1 && o.optimiser.clip_norm > 0)
    throw Error(
        fmt::format("--schedule {} trains with weights of earlier steps, so no rank waits for another "
                    "before it updates, but for --clip-norm {} all ranks tell their gradients' norms",
                    o.schedule.schedule, o.optimiser.clip_norm),
        "give --clip-norm 0, or another --schedule", ExitCode::usage);
}

void check(const TrainCommandOptions& o) {
  o.network.microbatch();
  check(o.planning, o.schedule.schedule);
  check(o.schedule);
  check_asynchronous(o);
  for (const int replicas : parse_replicas(o.planning.replicas).of_stage)
    if (replicas > o.network.microbatches)
      throw Error(
          fmt::format("--replicas {} gives a stage {} replicas, but the step has {}", o.planning.replicas,
                      replicas, counted(o.network.microbatches, "micro-batch", "micro-batches")),
          "ask for more --microbatches or fewer replicas", ExitCode::usage);
  if (o.network.form != "cifar" && !o.data.dataset.starts_with("hdf5:")) {
    throw Error("the imagenet form is for larger images, but this data set has 32 x 32 pixels",
                "train the cifar form, or --dataset hdf5:FILE; profile, plan and info know both",
                ExitCode::usage);
  }
  const std::string another_device = fmt::format("leave it out, or choose --device {}", module_devices());
  if (o.machine.transport == "nccl" && o.machine.device == "cpu")
    throw Error("--transport nccl moves tensors from GPU to GPU, but the ranks compute on the CPU",
                another_device, ExitCode::usage);
  if (o.planning.shard_optimiser == "on" && o.machine.device != "cpu")
    throw Error(
        fmt::format("--shard-optimiser works on CPU ranks so far, but --device is {}", o.machine.device),
        "leave it out", ExitCode::usage);
  if (o.augment == "device" && o.machine.device == "cpu" && o.machine.why_cpu.empty())
    throw Error("--augment device has a GPU make the images, but the ranks compute on the CPU",
                another_device, ExitCode::usage);
  if (mixes(o.augmentation) && o.network.batch < 2)
    throw Error("--mixup and --cutmix mix the images of a batch, but a batch has one",
                "ask for a larger --batch", ExitCode::usage);
  const LearningRate checked(o.rate, o.steps);
  check(o.data);
  if (parse_on_nan(o.on_nan) == OnNan::rewind && o.checkpoint.folder.empty())
    throw Error("--on-nan rewind has nothing to go back to", "name a folder with --checkpoint",
                ExitCode::usage);
  if (const std::string why = why_ranks_agree(o); !why.empty() && o.planning.overlap_steps == "on")
    throw Error(fmt::format("with {} all ranks agree before any of them updates, so steps can't overlap, but "
                            "--overlap-steps is on",
                            why),
                "leave out one of them", ExitCode::usage);
  check(o.checkpoint);
  if (!o.init.file().empty() && !o.checkpoint.resume.empty() && o.checkpoint.resume != "auto")
    throw Error(fmt::format("{} begins a run from {}, but --resume {} goes on with one",
                            o.init.partial_file.empty() ? "--init" : "--init-partial", o.init.file(),
                            o.checkpoint.resume),
                "leave out one of them, or say --resume auto", ExitCode::usage);
  check(o.evaluation, !o.checkpoint.folder.empty());
  if (const std::string why = why_plan_stays(o); o.rebalance_given && o.rebalance == "auto" && !why.empty())
    throw Error(fmt::format("--rebalance auto moves nodes from rank to rank, but {}", why),
                "leave out one of them, or say --rebalance off", ExitCode::usage);
}

const Policy* asynchronous_policy(const TrainCommandOptions& o) {
  const bool named = is_training_policy(o.schedule.schedule);
  return named && policy(o.schedule.schedule).asynchronous() ? &policy(o.schedule.schedule) : nullptr;
}

std::string why_ranks_agree(const TrainCommandOptions& o) {
  if (parse_on_nan(o.on_nan) != OnNan::abort) return "--on-nan " + o.on_nan;
  return o.optimiser.clip_norm > 0 ? fmt::format("--clip-norm {}", o.optimiser.clip_norm) : "";
}

LearningRate rate_course(const TrainCommandOptions& o, int64_t batches_per_epoch) {
  const int64_t run = total_steps({.epochs = o.epochs, .steps = o.steps}, batches_per_epoch);
  const int64_t steps = std::max(run, o.course_epochs * batches_per_epoch);
  LearningRateOptions rate = o.rate;
  if (o.recipe_warmup_steps > 0) rate.warmup_steps = std::min(o.recipe_warmup_steps, steps * 3 / 10);
  if (o.warmup_epochs > 0) rate.warmup_steps = int64_t(o.warmup_epochs * double(batches_per_epoch));
  return {rate, steps};
}

TrainOptions train_options(const TrainCommandOptions& o, int64_t batches_per_epoch) {
  DelayCorrection correction{.synchronous_steps = o.synchronous_steps};
  if (o.delay_correction != "none")
    correction.annealing_steps =
        o.annealing_steps > 0 ? o.annealing_steps
                              : std::max<int64_t>(1, rate_course(o, batches_per_epoch).total_steps() / 4);
  return {
      .batch = o.network.batch,
      .epochs = o.epochs,
      .steps = o.steps,
      .seed = o.seed,
      .augment = o.augmentation,
      .rate = [course = rate_course(o, batches_per_epoch)](int64_t step) { return float(course.rate(step)); },
      .trace = !o.trace_file.empty(),
      .on_nan = parse_on_nan(o.on_nan),
      .clip_norm = o.optimiser.clip_norm,
      .correction = correction,
      .device_augments = o.augment != "host",
      .evaluate_every = o.evaluation.every,
      .patience = o.evaluation.patience,
      .keep_best = o.evaluation.keep_best};
}

}  // namespace antichain
