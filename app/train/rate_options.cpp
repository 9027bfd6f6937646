#include "app/train/rate_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include "app/cli/option_row.h"
#include "framework/error.h"
#include "framework/parse_number.h"

namespace antichain {
namespace {

constexpr double least_rate = 1e-12, most_rate = 1e6;

// Returns the shares of "0.5,0.75". Their order and range are LearningRate's to check.
std::vector<double> parse_milestones(const std::string& text) {
  const std::optional<std::vector<double>> shares = parse_numbers<double>(text);
  if (!shares)
    throw Error(fmt::format("--lr-milestones takes shares of the course, not '{}'", text),
                "write numbers from 0 to 1 with commas between them: 0.5,0.75", ExitCode::usage);
  return *shares;
}

struct ShapeOption {
  const char* option;
  const char* schedule;  // that has it
};
constexpr ShapeOption shape_options[] = {
    {"--lr-milestones", "step"},
    {"--lr-decay", "step"},
    {"--lr-final", "cosine"},
    {"--lr-rise", "one-cycle"},
};

}  // namespace

void add_rate_options(CLI::App& app, TrainCommandOptions& o) {
  using enum OptionKind;
  LearningRateOptions& rate = o.rate;
  const OptionGroup add(app, "Training");
  add("--lr X", rate.peak, number_between(least_rate, most_rate),
      "the learning rate's peak [the recipe's, in proportion to the batch]", {recipe, "peak learning rate"});
  add("--lr-schedule NAME", rate.schedule, one_of("learning-rate schedule", learning_rate_names()),
      fmt::format("the rate's course over the run's steps: {}. step: a tenth from 50 % and a hundredth from "
                  "75 % of them on; cosine: down to 0; one-cycle: from a 25th up to the peak over 30 % of "
                  "them, then down to nearly 0 [the recipe's; its course is as long as the epochs, also "
                  "where --steps ends the run before]",
                  fmt::join(learning_rate_names(), ", ")),
      {recipe, "learning rate"});
  add("--lr-milestones X,X,…",
      {[&rate](const std::string& text) { rate.milestones = parse_milestones(text); },
       [&rate] { return fmt::format("{}", fmt::join(rate.milestones, ",")); }},
      {}, "step: the rate falls at these shares of the steps after the warm-up, in rising order",
      {recipe, "milestones"});
  add("--lr-decay X", rate.decay, number_between(least_rate, 1), "step: times the rate at each milestone",
      {recipe, "decay at milestones"});
  add("--lr-final X", rate.final_rate, number_between(0, most_rate),
      "cosine: the rate that it falls to, at most the peak", {recipe, "final learning rate"});
  add("--lr-rise X", rate.rise_share, number_between(0, 1),
      "one-cycle: the share of the steps after the warm-up that it rises for", {recipe, "share of the rise"});
  add("--warmup-steps N", rate.warmup_steps, whole_between(0, most_training_steps),
      "rise linearly to the peak for so many steps first [the recipe's, at most 30 % of the course; 0 with "
      "--lr-schedule]",
      {recipe, warmup_fact});
  add("--warmup-epochs X", o.warmup_epochs, number_between(0, most_epochs),
      "the warm-up in epochs, which may be fractions [as --warmup-steps says]", {recipe, "warm-up epochs"});
  app.get_option("--warmup-epochs")->excludes("--warmup-steps");
}

void check_rate_options(const CLI::App& train, const LearningRateOptions& rate) {
  for (const auto& [option, schedule] : shape_options)
    if (train.get_option(option)->count() > 0 && rate.schedule != schedule)
      throw Error(fmt::format("{} belongs to the learning-rate schedule {}, but this run's is {}", option,
                              schedule, rate.schedule),
                  fmt::format("leave it out, or say --lr-schedule {}", schedule), ExitCode::usage);
}

}  // namespace antichain
