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

}  // namespace

std::span<const RuntimeFormat> runtime_formats() { return runtimes; }

std::vector<std::string> runtime_names() {
  std::vector<std::string> names;
  for (const RuntimeFormat& runtime : runtimes) names.push_back(runtime.name);
  return names;
}

Layers layers_for(const std::string& name, const Profile& profile) {
  Layers layers = format_for(name).layers(profile);
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
  return runtime.text(plan, profile);
}

}  // namespace antichain
