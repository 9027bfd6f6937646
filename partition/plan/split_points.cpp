// torch.distributed.pipelining records what a model runs, and splits the record where a module begins or
// ends.
//
// The record has the order in which the code runs, which a profile does not know. So only those cuts are
// written that are the same in every order: each last node before the cut feeds each first node behind it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "framework/error.h"
#include "partition/plan/runtime_format.h"
#include "partition/profile/json_text.h"

namespace antichain {
namespace {

// Returns whether a module has this name: one that holds parameters has, and so has a numbered one of a list.
// Where the code itself computes with a parameter, the node has the parameter's name.
bool names_a_module(const ProfileNode& node) {
  constexpr std::array<std::string_view, 3> on_a_parameter = {"layer_scale", "mul", "add"};
  const std::string last = node.name.substr(node.name.rfind('.') + 1);
  if (last.find_first_not_of("0123456789") == std::string::npos) return true;
  return node.cost.param_bytes > 0 && !std::ranges::count(on_a_parameter, node.op);
}

bool lies_in(std::string_view name, std::string_view module) {
  return name.starts_with(module) && (name.size() == module.size() || name[module.size()] == '.');
}

bool lies_wholly_in(const ProfileNode& node, std::string_view module) {
  return lies_in(node.name, module) &&
         std::ranges::all_of(node.absorbed, [&](const std::string& name) { return lies_in(name, module); });
}

bool has_a_part_in(const ProfileNode& node, std::string_view module) {
  return lies_in(node.name, module) ||
         std::ranges::any_of(node.absorbed, [&](const std::string& name) { return lies_in(name, module); });
}

// Inputs and losses are in no module.
bool is_of_a_module(const ProfileNode& node) { return node.role == Role::compute; }

// The search for places to split takes time in proportion to the square of the nodes, so larger networks are
// not searched.
constexpr size_t most_nodes_to_search = 3000;

// A ModuleCut is the cut before stage s.
class ModuleCut {
 public:
  ModuleCut(const Profile& profile, const std::vector<int>& stage_of, int s) : nodes_(profile.nodes), s_(s) {
    std::vector<bool> read(nodes_.size()), reads(nodes_.size());  // on the same side of the cut
    for (size_t n = 0; n < nodes_.size(); ++n) {
      behind_.push_back(stage_of[n] >= s);
      for (const int input : nodes_[n].inputs)
        if (is_of_a_module(nodes_[n]) && is_of_a_module(nodes_[input]) && behind_[input] == behind_[n])
          read[input] = reads[n] = true;
    }
    for (size_t n = 0; n < nodes_.size(); ++n) {
      if (!is_of_a_module(nodes_[n])) continue;
      if (!behind_[n] && !read[n]) lasts_.push_back(int(n));
      if (behind_[n] && !reads[n]) firsts_.push_back(int(n));
    }
  }

  bool can_be_split() const { return !why_not_in_order() && (module_at(firsts_) || module_at(lasts_)); }

  // Throws Error where there is none.
  std::string split_point() const {
    if (const std::optional<Error> why = why_not_in_order()) throw *why;
    if (const auto module = module_at(firsts_)) return fmt::format("{}: \"BEGINNING\"", quoted(*module));
    if (const auto module = module_at(lasts_)) return fmt::format("{}: \"END\"", quoted(*module));
    throw Error(fmt::format("PyTorch splits a model where a module begins or ends, but between {} and {}, "
                            "before stage {}, the profile has no such place",
                            nodes_[lasts_[0]].name, nodes_[firsts_[0]].name, s_),
                "plan by the method antichain, which then cuts where a module begins or ends");
  }

 private:
  std::optional<Error> why_not_in_order() const {
    if (firsts_.empty() || lasts_.empty())
      return Error(fmt::format("stage {} has nothing but the loss, which is in no module of PyTorch",
                               firsts_.empty() ? s_ : s_ - 1),
                   "plan for fewer stages");
    for (const int last : lasts_)
      for (const int first : firsts_)
        if (!std::ranges::count(nodes_[first].inputs, last))
          return Error(
              fmt::format("PyTorch splits a model in the order in which its code runs, but {} and {}, "
                          "between which stage {} begins, are in parallel branches",
                          nodes_[last].name, nodes_[first].name, s_),
              "plan by the method antichain, which then cuts where the branches meet");
    return std::nullopt;
  }

  // Returns the outermost module that has all these nodes of the cut, and no node of the other side.
  std::optional<std::string> module_at(const std::vector<int>& at_cut) const {
    const ProfileNode& node = nodes_[at_cut[0]];
    const bool behind = behind_[at_cut[0]];
    for (size_t end = node.name.find('.'); end != std::string::npos; end = node.name.find('.', end + 1))
      if (const std::string module = node.name.substr(0, end); holds(module, at_cut, behind)) return module;
    // What a node absorbed runs after the node itself.
    const bool alone = at_cut.size() == 1 && (behind || node.absorbed.empty());
    if (alone && names_a_module(node) && holds(node.name, {}, behind)) return node.name;
    return std::nullopt;
  }

  bool holds(std::string_view module, const std::vector<int>& at_cut, bool behind) const {
    for (const int n : at_cut)
      if (!lies_wholly_in(nodes_[n], module)) return false;
    for (size_t n = 0; n < nodes_.size(); ++n)
      if (is_of_a_module(nodes_[n]) && behind_[n] != behind && has_a_part_in(nodes_[n], module)) return false;
    return true;
  }

  const std::vector<ProfileNode>& nodes_;
  int s_;
  std::vector<bool> behind_;         // per node
  std::vector<int> lasts_, firsts_;  // the last nodes before the cut, and the first ones behind it
};

}  // namespace

Layers layers_between_split_points(const Profile& profile) {
  Layers layers(1);
  std::vector<int> stage_of(profile.nodes.size(), 1);
  if (profile.nodes.size() > most_nodes_to_search) return {};
  for (size_t n = 0; n < profile.nodes.size(); ++n) {
    stage_of[n] = 0;
    if (!is_of_a_module(profile.nodes[n])) continue;
    layers.back().push_back(int(n));
    if (ModuleCut(profile, stage_of, 1).can_be_split()) layers.emplace_back();
  }
  if (layers.back().empty()) layers.pop_back();
  return layers;
}

std::string split_points(const Plan& plan, const Profile& profile) {
  const std::vector<int> stage_of = plan.stage_of(int(profile.nodes.size()));
  std::vector<std::string> points;
  for (int s = 1; s < int(plan.stages.size()); ++s)
    points.push_back("  " + ModuleCut(profile, stage_of, s).split_point());
  return fmt::format("{{\n{}\n}}\n", fmt::join(points, ",\n"));
}

}  // namespace antichain
