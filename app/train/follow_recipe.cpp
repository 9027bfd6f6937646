#include "app/train/follow_recipe.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include <algorithm>

#include "app/cli/number_text.h"
#include "app/cli/table.h"
#include "models/model.h"

namespace antichain {
namespace {

// These are the options that a recipe has a value for.
constexpr const char* filled[] = {"--batch",         "--lr",        "--lr-schedule", "--warmup-steps",
                                  "--warmup-epochs", "--optimiser", "--momentum",    "--weight-decay",
                                  "--decay-groups",  "--beta1",     "--beta2",       "--clip-norm",
                                  "--lr-final",      "--epochs"};

// Returns "cosine" or "200 steps of warm-up, then cosine".
std::string course(const std::string& schedule, int64_t warmup_steps) {
  return warmup_steps == 0 ? schedule : counted(warmup_steps, "step") + " of warm-up, then " + schedule;
}

// Returns what a sentence on the optimiser goes on with where gradients are clipped.
std::string clipping(double norm) { return norm > 0 ? fmt::format(", clipping at norm {:g}", norm) : ""; }

}  // namespace

void follow_recipe(const CLI::App& train, TrainCommandOptions& o) {
  const auto open = [&](const char* option) { return train.get_option(option)->count() == 0; };
  const Recipe recipe = recipe_of(o.network.chosen());
  if (open("--batch")) o.network.batch = recipe.batch;
  follow_recipe(train, recipe, o.optimiser);
  if (open("--lr")) o.rate.peak = usual_peak(o.optimiser, recipe, o.network.batch);
  if (open("--lr-schedule")) {
    o.rate.schedule = recipe.rate.schedule;
    if (open("--warmup-steps") && open("--warmup-epochs")) o.recipe_warmup_steps = recipe.rate.warmup_steps;
    o.course_epochs = recipe.epochs;
    if (open("--lr-final")) o.rate.final_rate = recipe.rate.final_rate * o.rate.peak / recipe.rate.peak;
  }
  if (open("--epochs") && open("--steps")) o.epochs = recipe.epochs;
  if (o.epochs > 0) o.course_epochs = o.epochs;
  for (const char* option : filled)
    if (!open(option)) o.departures.emplace_back(option);
}

std::string describe_recipe(const TrainCommandOptions& o, int64_t batches) {
  const Recipe recipe = recipe_of(o.network.chosen());
  const LearningRate rate = rate_course(o, batches);
  const bool scaled = o.rate.peak == peak_for(recipe, o.network.batch) && o.network.batch != recipe.batch;
  const std::string proportion =
      scaled ? fmt::format(" ({:g} for {} samples, in proportion)", recipe.rate.peak, recipe.batch) : "";
  const std::string length =
      o.rate.schedule == "constant" ? "" : " over " + counted(rate.total_steps(), "step");
  const std::string but =
      o.departures.empty() ? "" : fmt::format(" but for {}", fmt::join(o.departures, ", "));
  return hanging("Recipe", 10,
                 fmt::format("batch {}, rate {:g}{}, {}{}, {}: {}'s{}", o.network.batch, o.rate.peak,
                             proportion, course(o.rate.schedule, rate.options().warmup_steps), length,
                             make_optimiser(o.optimiser)->str() + describe_groups(o.optimiser) +
                                 clipping(o.optimiser.clip_norm),
                             o.network.model, but));
}

WatchedRun watched_run(const TrainCommandOptions& o) {
  return {.model = o.network.model,
          .classes = o.network.outputs(),
          .peak = o.rate.peak,
          .recipe_peak = usual_peak(o.optimiser, recipe_of(o.network.chosen()), o.network.batch)};
}

std::string describe(const Recipe& r) {
  return fmt::format("batch {}, rate {:g}, {}, {}, {} ({})", r.batch, r.rate.peak,
                     course(r.rate.schedule, r.rate.warmup_steps),
                     make_optimiser(usual_options(r.optimiser, r))->str() + clipping(r.clip_norm),
                     counted(r.epochs, "epoch"), r.source);
}

}  // namespace antichain
