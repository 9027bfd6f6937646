#include "framework/learning_rate.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <utility>

#include "framework/error.h"
#include "framework/known_names.h"

namespace antichain {
namespace {

// Returns the value between `from` and `to` along half a cosine at `share`, 0 … 1.
double anneal(double from, double to, double share) {
  return to + (from - to) / 2 * (1 + std::cos(std::numbers::pi * share));
}

double constant_rate(const LearningRateOptions& o, int64_t, int64_t) { return o.peak; }

double step_rate(const LearningRateOptions& o, int64_t step, int64_t steps) {
  double rate = o.peak;
  for (const double milestone : o.milestones) {
    if (double(step) >= milestone * double(steps)) rate *= o.decay;
  }
  return rate;
}

double cosine_rate(const LearningRateOptions& o, int64_t step, int64_t steps) {
  return anneal(o.peak, o.final_rate, double(step) / double(std::max<int64_t>(steps, 1)));
}

double one_cycle_rate(const LearningRateOptions& o, int64_t step, int64_t steps) {
  const double start = o.peak / o.start_divisor, end = start / o.end_divisor;
  // The rate is highest at step `top`; the course ends at step `last`.
  const double top = o.rise_share * double(steps) - 1, last = double(steps) - 1;
  const double at = double(step);
  if (at <= top) return top > 0 ? anneal(start, o.peak, at / top) : o.peak;
  return anneal(o.peak, end,
                std::min(1.0, (at - std::max(top, 0.0)) / std::max(last - std::max(top, 0.0), 1.0)));
}

bool is_share(double x) { return x >= 0 && x <= 1; }

// Every number is checked, also of schedules that are not this one's.
void check_shape(const LearningRateOptions& o) {
  const auto refuse = [](const std::string& what, const char* must) {
    throw Error(what, must, ExitCode::usage);
  };
  if (!std::ranges::all_of(o.milestones, is_share) || !std::ranges::is_sorted(o.milestones))
    refuse(fmt::format("the learning rate's milestones are {}", fmt::join(o.milestones, ", ")),
           "they must be shares from 0 to 1 in rising order");
  if (!(o.decay > 0 && o.decay <= 1))
    refuse(fmt::format("at a milestone the learning rate is multiplied by {}", o.decay),
           "the factor must be above 0 and at most 1");
  if (!is_share(o.rise_share))
    refuse(fmt::format("the learning rate rises over {} of the steps", o.rise_share),
           "this must be a share from 0 to 1");
  if (!(o.final_rate >= 0 && (o.final_rate == 0 || o.final_rate <= o.peak)))
    refuse(fmt::format("the learning rate falls from {} to {}", o.peak, o.final_rate),
           "the final rate must be from 0 to the peak");
}

}  // namespace

struct LearningRateTable {
  struct Entry {
    const char* name;
    LearningRate::Formula formula;
  };
  static constexpr std::array<Entry, 4> entries{{{"constant", constant_rate},
                                                 {"step", step_rate},
                                                 {"cosine", cosine_rate},
                                                 {"one-cycle", one_cycle_rate}}};
};

LearningRate::LearningRate(LearningRateOptions options, int64_t total_steps)
    : options_(std::move(options)), total_steps_(total_steps), formula_(nullptr) {
  for (const auto& [name, formula] : LearningRateTable::entries) {
    if (options_.schedule == name) formula_ = formula;
  }
  if (formula_ == nullptr) refuse_name("learning-rate schedule", options_.schedule, learning_rate_names());
  if (!(options_.peak > 0) || !std::isfinite(options_.peak) || options_.warmup_steps < 0) {
    throw Error(
        fmt::format("a learning rate of {} after {} warm-up steps", options_.peak, options_.warmup_steps),
        "the rate must be positive and the steps not negative", ExitCode::usage);
  }
  check_shape(options_);
}

double LearningRate::rate(int64_t step) const {
  if (step < options_.warmup_steps) return options_.peak * double(step + 1) / double(options_.warmup_steps);
  return formula_(options_, step - options_.warmup_steps, total_steps_ - options_.warmup_steps);
}

std::vector<std::string> learning_rate_names() {
  std::vector<std::string> names;
  for (const auto& entry : LearningRateTable::entries) names.emplace_back(entry.name);
  return names;
}

}  // namespace antichain
