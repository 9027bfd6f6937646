#include "partition/plan/called_modules.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <unordered_set>

namespace antichain {
namespace {

using NameSet = std::unordered_set<std::string>;

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// Returns "a", "a.b" and "a.b.c" of "a.b.c".
std::vector<std::string> modules_around(const std::string& path) {
  std::vector<std::string> modules;
  for (size_t end = path.find('.'); end != std::string::npos; end = path.find('.', end + 1))
    modules.push_back(path.substr(0, end));
  if (!path.empty()) modules.push_back(path);
  return modules;
}

bool names_a_module(const ProfileNode& node) {
  // Where the code itself computes with a parameter, the node has the parameter's name.
  constexpr std::array<std::string_view, 4> on_a_parameter = {"elementwise", "layer_scale", "mul", "add"};
  return is_number(std::string_view(node.name).substr(node.name.rfind('.') + 1)) ||
         (node.cost.param_bytes + node.cost.frozen_bytes > 0 && !std::ranges::count(on_a_parameter, node.op));
}

// Returns the module whose own code made a sum, a product or a concatenation of that name, or "".
std::string joined_in(const std::string& name) {
  constexpr std::array<std::string_view, 4> joins = {"add", "mul", "cat", "concat"};
  const size_t end = name.rfind('.');
  if (end == std::string::npos) return "";
  return std::ranges::count(joins, without_count(name).substr(end + 1)) ? name.substr(0, end) : "";
}

// Returns the modules that the names of nodes leave no doubt about.
NameSet modules_by_names(const Profile& profile) {
  if (profile.ids_are_names) return {};
  NameSet nodes, counted, around;  // around: names that have others in them
  for (const ProfileNode& node : profile.nodes)
    for (size_t a = 0; node.role == Role::compute && a <= node.absorbed.size(); ++a) {
      const std::string& name = a == 0 ? node.name : node.absorbed[a - 1];
      nodes.insert(name);
      if (const std::string base = without_count(name); base != name) counted.insert(base);
      const std::vector<std::string> modules = modules_around(name);
      around.insert(modules.begin(), modules.end() - 1);
    }
  NameSet known;
  for (const ProfileNode& node : profile.nodes)
    if (node.role == Role::compute && (names_a_module(node) || around.contains(node.name)))
      known.insert(node.name);
  for (const std::string& name : nodes) known.insert(joined_in(name));
  std::erase_if(known, [&](const std::string& name) {
    const std::string base = without_count(name);
    const std::vector<std::string> modules = modules_around(name);
    return name.empty() || (base != name && nodes.contains(base)) ||
           std::ranges::any_of(modules, [&](const std::string& module) { return counted.contains(module); });
  });
  return known;
}

}  // namespace

std::string without_count(const std::string& name) {
  const size_t end = name.rfind('_');
  return end != std::string::npos && is_number(std::string_view(name).substr(end + 1)) ? name.substr(0, end)
                                                                                       : name;
}

bool lies_in(std::string_view name, std::string_view module) {
  return name.starts_with(module) && (name.size() == module.size() || name[module.size()] == '.');
}

const std::string& path_of(const Profile& profile, int node) {
  return profile.called_once ? profile.nodes[node].module : profile.nodes[node].name;
}

std::vector<CalledModule> called_modules(const Profile& profile) {
  const NameSet known = profile.called_once
                            ? NameSet(profile.called_once->begin(), profile.called_once->end())
                            : modules_by_names(profile);
  std::map<std::string, std::vector<int>> nodes_of;
  std::vector<int> position(profile.nodes.size());  // among the computed nodes
  for (int n = 0, computed = 0; n < int(profile.nodes.size()); ++n) {
    if (profile.nodes[n].role != Role::compute) continue;
    position[n] = computed++;
    std::vector<std::string> modules = modules_around(path_of(profile, n));
    for (const std::string& name : profile.nodes[n].absorbed)
      for (std::string& module : modules_around(name)) modules.push_back(std::move(module));
    for (const std::string& module : std::set(modules.begin(), modules.end()))
      if (known.contains(module)) nodes_of[module].push_back(n);
  }
  std::vector<CalledModule> called;
  for (const auto& [name, nodes] : nodes_of)
    if (position[nodes.back()] - position[nodes.front()] + 1 == int(nodes.size()))
      called.push_back({name, nodes.front(), nodes.back()});
  return called;
}

}  // namespace antichain
