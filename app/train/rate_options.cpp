#include "app/train/rate_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include <charconv>
#include <sstream>

#include "app/cli/checks.h"
#include "framework/error.h"

namespace antichain {
namespace {

constexpr const char* group = "Training";
constexpr double least_rate = 1e-12, most_rate = 1e6;

// Returns the shares of "0.5,0.75". Their order and range are LearningRate's to check.
std::vector<double> parse_milestones(const std::string& text) {
  std::vector<double> shares;
  std::istringstream in(text + ",");  // so that each word ends with a comma, an empty one, too
  for (std::string word; std::getline(in, word, ',');) {
    double share = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), share);
    if (error != std::errc() || end != word.data() + word.size())
      throw Error(fmt::format("--lr-milestones takes shares of the course, not '{}'", text),
                  "write numbers from 0 to 1 with commas between them: 0.5,0.75", ExitCode::usage);
    shares.push_back(share);
  }
  return shares;
}

void add_peak_and_schedule(CLI::App& app, LearningRateOptions& rate) {
  CLI::Option* peak = app.add_option("--lr", rate.peak, "the learning rate's peak");
  check_number(peak, least_rate, most_rate)
      ->type_name("X")
      ->default_str("the recipe's, in proportion to the batch")
      ->group(group);
  CLI::Option* shape = app.add_option(
      "--lr-schedule", rate.schedule,
      fmt::format(
          "the rate's course over the run's steps: {}. step: a tenth from 50 % and a hundredth from 75 % of "
          "them on; cosine: down to 0; one-cycle: from a 25th up to the peak over 30 % of them, then "
          "down to nearly 0",
          fmt::join(learning_rate_names(), ", ")));
  check_name(shape, "learning-rate schedule", learning_rate_names())
      ->type_name("NAME")
      ->default_str(
          "the recipe's; its course is as long as the epochs, also where --steps ends the run before")
      ->group(group);
}

// Each of these belongs to one schedule.
void add_shape_options(CLI::App& app, LearningRateOptions& rate) {
  app.add_option_function<std::string>(
         "--lr-milestones", [&rate](const std::string& text) { rate.milestones = parse_milestones(text); },
         "step: the rate falls at these shares of the steps after the warm-up, in rising order")
      ->type_name("X,X,…")
      ->default_str(fmt::format("{}", fmt::join(rate.milestones, ",")))
      ->group(group);
  CLI::Option* decay = app.add_option("--lr-decay", rate.decay, "step: times the rate at each milestone");
  check_number(decay, least_rate, 1)->type_name("X")->capture_default_str()->group(group);
  CLI::Option* final_rate =
      app.add_option("--lr-final", rate.final_rate, "cosine: the rate that it falls to, at most the peak");
  check_number(final_rate, 0, most_rate)->type_name("X")->capture_default_str()->group(group);
  CLI::Option* rise = app.add_option("--lr-rise", rate.rise_share,
                                     "one-cycle: the share of the steps after the warm-up that it rises for");
  check_number(rise, 0, 1)->type_name("X")->capture_default_str()->group(group);
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

void add_warmup_options(CLI::App& app, TrainCommandOptions& o) {
  CLI::Option* steps = app.add_option("--warmup-steps", o.rate.warmup_steps,
                                      "rise linearly to the peak for so many steps first");
  check_whole(steps, 0, most_training_steps)
      ->type_name("N")
      ->default_str("the recipe's, at most 30 % of the course; 0 with --lr-schedule")
      ->group(group);
  CLI::Option* epochs =
      app.add_option("--warmup-epochs", o.warmup_epochs, "the warm-up in epochs, which may be fractions");
  check_number(epochs, 0, most_epochs)->type_name("X")->excludes(steps)->group(group);
}

}  // namespace

void add_rate_options(CLI::App& app, TrainCommandOptions& o) {
  add_peak_and_schedule(app, o.rate);
  add_shape_options(app, o.rate);
  add_warmup_options(app, o);
}

void check_rate_options(const CLI::App& train, const LearningRateOptions& rate) {
  for (const auto& [option, schedule] : shape_options)
    if (train.get_option(option)->count() > 0 && rate.schedule != schedule)
      throw Error(fmt::format("{} belongs to the learning-rate schedule {}, but this run's is {}", option,
                              schedule, rate.schedule),
                  fmt::format("leave it out, or say --lr-schedule {}", schedule), ExitCode::usage);
}

}  // namespace antichain
