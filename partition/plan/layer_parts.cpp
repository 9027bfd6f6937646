// DeepSpeed's PipelineModule is a list of layers, each of which takes the one tensor that the layer before it
// gives. Its engine trains no stage without parameters, because PyTorch's optimisers refuse to have none.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "framework/error.h"
#include "partition/plan/called_modules.h"
#include "partition/plan/runtime_format.h"
#include "partition/profile/json_text.h"

namespace antichain {
namespace {

// Returns the parts of a network between which one tensor passes. They leave out the losses, which DeepSpeed
// has beside the layers.
Layers parts_of_one_tensor(const Profile& profile) {
  const int nodes = int(profile.nodes.size());
  std::vector<int> last_reader(nodes, -1);
  for (int n = 0; n < nodes; ++n)
    for (const int input : profile.nodes[n].inputs)
      last_reader[input] = profile.nodes[n].role == Role::loss ? nodes : n;
  std::vector<int> leaving(nodes + 1);  // how many tensors are read for the last time by node n
  Layers layers(1);
  int passing = 0;  // tensors that nodes behind this one read
  for (int n = 0; n < nodes; ++n) {
    passing -= leaving[n];
    const bool is_labels = profile.nodes[n].role == Role::input && last_reader[n] == nodes;
    if (last_reader[n] > n && !is_labels) {
      ++passing;
      ++leaving[last_reader[n]];
    }
    if (profile.nodes[n].role != Role::compute) continue;
    layers.back().push_back(n);
    if (passing <= 1) layers.emplace_back();
  }
  if (layers.back().empty()) layers.pop_back();
  return layers;
}

// Returns the innermost module around all nodes of a layer, "" where that is the model.
std::string module_around(const std::vector<int>& layer, const Profile& profile) {
  std::string module = path_of(profile, layer[0]);
  // A node's own name is that of no module around it.
  const auto holds = [&](int n) {
    const std::string& path = path_of(profile, n);
    return lies_in(path, module) && (profile.called_once || path != module);
  };
  while (!module.empty() && !std::ranges::all_of(layer, holds))
    module.erase(module.find('.') == std::string::npos ? 0 : module.rfind('.'));
  return module;
}

bool is_in(const std::string& inner, const std::string& module) {
  return !module.empty() && lies_in(inner, module);
}

// Returns the names of what a layer computes. What a layer's only node absorbed are layers, too, because they
// are modules of their own in a list.
std::vector<std::string> listed_layers(const std::vector<int>& layer, const Profile& profile) {
  std::vector<std::string> names;
  for (const int n : layer) {
    names.push_back(quoted(profile.nodes[n].name));
    for (const std::string& name : profile.nodes[n].absorbed) names.push_back(quoted(name));
  }
  if (layer.size() > 1) names = {fmt::format("{}", fmt::join(names, ", "))};
  for (std::string& name : names) name = fmt::format("    [{}]", name);
  return names;
}

bool has_parameters(const std::vector<int>& layer, const Profile& profile) {
  return std::ranges::any_of(layer, [&](int n) { return profile.nodes[n].cost.param_bytes > 0; });
}

// Where branches make a part of several nodes, a layer is the module around them, with what that module
// computes before and behind the branches.
Layers listed_modules(const Profile& profile) {
  Layers layers;
  std::vector<std::string> around;  // per layer
  std::string module;               // of the last layer, where it has branches
  for (const std::vector<int>& part : parts_of_one_tensor(profile)) {
    const std::string name = module_around(part, profile);
    if (is_in(name, module)) {
      layers.back().insert(layers.back().end(), part.begin(), part.end());
      continue;
    }
    module = part.size() > 1 ? name : "";
    size_t first = layers.size();
    while (first > 0 && is_in(around[first - 1], module)) --first;
    layers.push_back(part);
    around.push_back(name);
    if (first + 1 == layers.size()) continue;
    for (size_t l = first + 1; l < layers.size(); ++l)
      layers[first].insert(layers[first].end(), layers[l].begin(), layers[l].end());
    layers.resize(first + 1);
    around.resize(first + 1);
    around[first] = module;
  }
  return layers;
}

}  // namespace

// Any cut is possible that has parameters on both sides, but only one of those between two layers that have
// some: the one at which the fewest bytes cross, and the last of equal ones, which no change in place rules
// out.
Layers layers_of_one_tensor(const Profile& profile, SplitCuts cuts) {
  const Layers modules = listed_modules(profile);
  const auto bytes_before = [&](size_t l) { return profile.nodes[modules[l - 1].back()].cost.output_bytes; };
  std::vector<bool> begins(modules.size());
  std::vector<size_t> possible;  // layers before which the next cut may come
  bool trained = false;
  for (size_t l = 0; l < modules.size(); ++l) {
    if (trained) possible.push_back(l);
    if (!has_parameters(modules[l], profile)) continue;
    if (cuts == SplitCuts::any_at_once && trained)
      possible = {*std::ranges::min_element(possible.rbegin(), possible.rend(), {}, bytes_before)};
    for (const size_t first : possible) begins[first] = true;
    possible.clear();
    trained = true;
  }
  Layers layers(1);
  for (size_t l = 0; l < modules.size(); ++l) {
    if (begins[l]) layers.emplace_back();
    layers.back().insert(layers.back().end(), modules[l].begin(), modules[l].end());
  }
  return layers;
}

std::string layer_parts(const Plan& plan, const Profile& profile) {
  const std::vector<int> stage_of = plan.stage_of(int(profile.nodes.size()));
  std::vector<std::string> lines;
  std::vector<size_t> parts;  // the first layer of each stage
  for (const std::vector<int>& layer : listed_modules(profile)) {
    const int stage = stage_of[layer[0]];
    for (const int n : layer)
      if (stage_of[n] != stage)
        throw Error(fmt::format("DeepSpeed's layers pass one tensor on and are modules of a list, but {} of "
                                "stage {} and {} of stage {} are in one such layer",
                                profile.nodes[layer[0]].name, stage, profile.nodes[n].name, stage_of[n]),
                    "plan by the method antichain, which then cuts where one tensor passes");
    while (int(parts.size()) <= stage) parts.push_back(lines.size());
    const std::vector<std::string> names = listed_layers(layer, profile);
    lines.insert(lines.end(), names.begin(), names.end());
  }
  if (parts.size() < plan.stages.size())
    throw Error(
        fmt::format("stage {} has nothing but the loss, which is no layer of DeepSpeed", parts.size()),
        "plan for fewer stages");
  for (size_t s = 0; s < plan.stages.size(); ++s)
    if (!has_parameters(plan.stages[s].nodes, profile))
      throw Error(fmt::format("stage {}, which begins with {}, has no parameters, and DeepSpeed can't train "
                              "such a stage, because PyTorch's optimisers refuse to have none",
                              s, profile.nodes[plan.stages[s].nodes[0]].name),
                  "plan by the method antichain, which then cuts elsewhere, or for fewer stages");
  parts.push_back(lines.size());
  return fmt::format("{{\n  \"parts\": [{}],\n  \"layers\": [\n{}\n  ]\n}}\n", fmt::join(parts, ", "),
                     fmt::join(lines, ",\n"));
}

}  // namespace antichain
