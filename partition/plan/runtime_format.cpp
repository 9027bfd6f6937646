#include "partition/plan/runtime_format.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "framework/error.h"

namespace antichain {
namespace {

constexpr std::array<RuntimeFormat, 3> runtimes = {{
    {"torch", "torch.distributed.pipelining", "its split points", split_points, layers_between_split_points},
    {"deepspeed", "DeepSpeed", "the parts of its PipelineModule", layer_parts, layers_of_one_tensor},
    {"megatron", "Megatron-LM", "its --pipeline-model-parallel-layout", layer_layout, transformer_layers},
}};

const RuntimeFormat& format_for(const std::string& name) {
  const auto runtime = std::ranges::find(runtimes, name, &RuntimeFormat::name);
  if (runtime == runtimes.end())
    throw Error(fmt::format("there is no format for the runtime {}", name),
                fmt::format("choose {}", fmt::join(runtime_names(), ", ")), ExitCode::usage);
  return *runtime;
}

void check_equal_replicas(const Plan& plan, const RuntimeFormat& runtime) {
  const size_t ranks = plan.stages[0].ranks.size();
  for (size_t s = 1; s < plan.stages.size(); ++s)
    if (plan.stages[s].ranks.size() != ranks)
      throw Error(
          fmt::format("stage 0 has {} ranks and stage {} has {}, but {} replicates the whole pipeline", ranks,
                      s, plan.stages[s].ranks.size(), runtime.title),
          "plan with --replicas off");
}

void check_nothing_is_recomputed(const Plan& plan, const std::string& runtime) {
  for (size_t s = 0; s < plan.stages.size(); ++s)
    if (!plan.stages[s].recomputed.empty())
      throw Error(
          fmt::format("stage {} of the plan recomputes nodes, which a plan for {} can't say", s, runtime),
          "plan without --recompute, and have that runtime recompute");
}

// Returns an input of the node that the node changes and that lies in another part, or -1. PyTorch can't
// train a stage that changes its own input. Which of several inputs is changed is not known, so each counts.
int changed_in_another_part(const Profile& profile, int node, const std::vector<int>& part_of) {
  if (!profile.nodes[node].in_place) return -1;
  for (const int input : profile.nodes[node].inputs)
    if (part_of[input] >= 0 && part_of[input] != part_of[node]) return input;  // images are in no part
  return -1;
}

void check_nothing_is_changed_across_a_cut(const Plan& plan, const Profile& profile) {
  const std::vector<int> stage_of = plan.stage_of(int(profile.nodes.size()));
  for (int n = 0; n < int(profile.nodes.size()); ++n)
    if (const int input = changed_in_another_part(profile, n, stage_of); input >= 0)
      throw Error(
          fmt::format("{} works in place on the output of {}, but stage {} begins between them, and "
                      "PyTorch can't train a stage that changes its own input",
                      profile.nodes[n].name, profile.nodes[input].name, stage_of[n]),
          "set inplace=False in the model, or plan by the method antichain, which then cuts elsewhere");
}

// Makes one layer of two and all between them where the second changes an output of the first.
Layers without_cuts_before_changes(Layers layers, const Profile& profile) {
  std::vector<int> layer_of(profile.nodes.size(), -1);
  Layers joined;
  for (std::vector<int>& layer : layers) {
    for (const int n : layer) layer_of[n] = int(joined.size());
    int first = int(joined.size());
    for (const int n : layer)
      if (const int input = changed_in_another_part(profile, n, layer_of); input >= 0)
        first = std::min(first, layer_of[input]);
    joined.push_back(std::move(layer));
    for (; int(joined.size()) > first + 1; joined.pop_back())
      joined[joined.size() - 2].insert(joined[joined.size() - 2].end(), joined.back().begin(),
                                       joined.back().end());
    for (const int n : joined.back()) layer_of[n] = first;
  }
  return joined;
}

}  // namespace

std::span<const RuntimeFormat> runtime_formats() { return runtimes; }

std::vector<std::string> runtime_names() {
  std::vector<std::string> names;
  for (const RuntimeFormat& runtime : runtimes) names.push_back(runtime.name);
  return names;
}

Layers layers_for(const std::string& name, const Profile& profile, SplitCuts cuts) {
  Layers layers = without_cuts_before_changes(format_for(name).layers(profile, cuts), profile);
  std::vector<int> layer_of(profile.nodes.size(), -1);
  for (size_t l = 0; l < layers.size(); ++l)
    for (const int n : layers[l]) layer_of[n] = int(l);
  for (size_t n = 0; n < profile.nodes.size(); ++n)
    if (profile.nodes[n].role == Role::loss)
      if (const int layer = layer_of[profile.nodes[n].inputs[0]]; layer >= 0) layers[layer].push_back(int(n));
  return layers;
}

std::string plan_for(const std::string& name, const Plan& plan, const Profile& profile) {
  validate(plan, profile);
  const RuntimeFormat& runtime = format_for(name);
  check_equal_replicas(plan, runtime);
  check_nothing_is_recomputed(plan, name);
  check_nothing_is_changed_across_a_cut(plan, profile);
  return runtime.text(plan, profile);
}

}  // namespace antichain
