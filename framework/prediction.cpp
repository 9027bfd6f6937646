#include "framework/prediction.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "framework/averaged.h"
#include "framework/grouped.h"
#include "framework/known_names.h"

namespace antichain {
namespace {

constexpr PredictionMethod table[] = {
    {.name = "spectrain",
     .citation = "Chen et al., \"Efficient and Robust Parallel DNN Training through Model Parallelism on "
                 "Multi-GPU Platform\", arXiv 2018"},
    {.name = "pipeoptim",
     .citation = "Guan et al., \"PipeOptim: Ensuring Effective 1F1B Schedule with Optimizer-Dependent Weight "
                 "Prediction\", arXiv 2023",
     .decays = true},
    {.name = "xpipe",
     .citation = "Guan et al., \"XPipe: Efficient Pipeline Model Parallelism for Multi-GPU DNN Training\", "
                 "arXiv 2019",
     .stashes = true},
    {.name = "momentum",
     .citation = "Eliad et al., \"Fine-tuning Giant Neural Networks on Commodity Hardware with Automatic "
                 "Pipeline Model Parallelism\", USENIX ATC 2021",
     .step_by_step = true,
     .decays = true,
     .stashes = true},
};

}  // namespace

std::span<const PredictionMethod> prediction_methods() { return table; }

std::vector<std::string> prediction_names() {
  std::vector<std::string> names = {"none"};
  for (const PredictionMethod& method : table) names.emplace_back(method.name);
  return names;
}

const PredictionMethod* prediction_method(std::string_view name) {
  if (name == "none") return nullptr;
  const auto found = std::ranges::find(table, name, &PredictionMethod::name);
  if (found == std::end(table)) refuse_name("prediction", std::string(name), prediction_names());
  return found;
}

Prediction::Prediction(std::shared_ptr<const Optimiser> followed, const PredictionMethod& by, int ahead)
    : of(std::move(followed)), method(by), steps(ahead), name_(fmt::format("{} ahead", of->name())) {}

std::string Prediction::str() const {
  return fmt::format("{} steps ahead by {} of {}", steps, method.name, of->str());
}

std::shared_ptr<const Optimiser> prediction_of(const std::shared_ptr<const Optimiser>& optimiser,
                                               const PredictionMethod& method, int steps) {
  if (const Averaged* both = averaged(*optimiser)) return prediction_of(both->of, method, steps);
  const Grouped* all = grouped(*optimiser);
  if (!all) return std::make_shared<Prediction>(optimiser, method, steps);
  std::vector<ParameterGroup> groups = all->groups;
  for (ParameterGroup& group : groups) group.optimiser = prediction_of(group.optimiser, method, steps);
  return std::make_shared<Grouped>(std::move(groups), *all);
}

}  // namespace antichain
